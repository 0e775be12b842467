/* What the edge would do with one request, by the same functions in the same order; limits are selected but never counted. */
#ifndef COMMON_POLICY_SIMULATE_H
#define COMMON_POLICY_SIMULATE_H

#include "common/policy/policy.h"

struct simulate_options {
    const struct expr_deployment *deployment; /* whose source headers rules do not see and the upstream does not get. NULL: none known */
    const json_t *document;                   /* what the policy was compiled from, bare or in its envelope: then the result is explained. NULL: not */
};

/* request: object TEST_REQUEST of schemas/policy.def, strictly: every fault is noted at its JSON pointer and gives false. Values are read as the
 * edge reads them from its sources: http_version also as "HTTP/2", any other than 1.0, 1.1, 2.0, 3.0 is absent; country and continent in upper
 * case, absent where they are none (XX, Europe); number 0 of an autonomous system is none; a fingerprint or a certificate means TLS unless "ssl" is given, and fingerprints that are malformed,
 * or given together with "ssl": false, are absent; client headers X-Edge-* are gone before any rule looks.
 * jwt_claims: those of a valid token of jwt_issuer (an issuer of the policy), else of the first issuer that the request accepts; a claim is a text, a
 * boolean, a number, or a list of those; other values are no claims.
 *
 * *out, which the caller owns: {"rejected": null|"path"|"method"|"identity"|"block"|"preflight"|"auth"|"missing_key", "status": 0 or the status
 * answered, "config_rules", "settings", "rate_limit_rules", "request_header_rules", "upstream_headers", "response_headers", "locale"}, always all of
 * them, and "explain" when asked for. It stops where the edge would answer, in the order of the names above. "identity" is a request whose host is
 * doubtful; without "ip" the address is a missing value. settings are the policy's defaults when the request is refused before config rules are looked
 * at; auth_accepted is in the order of auth.issuers. upstream_headers (empty when rejected) are without Host and without what only a live request has:
 * X-Edge-Client-IP, X-Forwarded-*, X-Request-Id; X-Edge-Geo-* and X-Edge-TLS-JA4 are of what the request says and the deployment has a source for.
 * Names are lower case, a value is an array when a name stands there more than once.
 *
 * response_headers are those that the edge adds: to its own answer, or to the upstream's, which they then stand beside (of a CORS policy: in place of every
 * Access-Control-* there). locale: the tag chosen where the request's settings turn it on, also when it is answered later on; else, and where it is refused
 * before config rules are looked at, null.
 *
 * There is no clock: a limit counts whatever its expires_at.
 *
 * "explain": {"config_rules", "rate_limit_rules", "request_header_rules": one entry for each rule of the document, in order; none where the request was
 *   answered before that phase: {"id", "enabled", "result": true|false|"error", or null when disabled, "condition": what expr_explain says, or null};
 *   limits also "counted", "enforced" (false: shadow) and "reason": null when counted, else "disabled", "no_match", "counts_answers" (count_statuses),
 *   "missing_key", "missing_value" (of distinct_of), "cap" or "rejected" (the request was answered for another limit's missing key),
 *  "set_by": {setting: id of the config rule that set it last, or null: the defaults}, "responses" in it by kind,
 *  "kill_switch": the policy's}. */
MUSTUSE bool simulate(const struct policy *p, const struct simulate_options *options, const json_t *request, json_t **out, struct errlist *errors);

/* What expressions see of a request, in the phase that sees most: the same request, read as strictly; jwt_claims count as verified, whoever issued them. A
 * request that no rule would see is a fault. edge.locale is empty, for what it is chosen among stands in a policy. *out borrows from the request and from a. */
MUSTUSE bool simulate_facts(const struct expr_deployment *deployment, const json_t *request, struct arena *a, struct expr_facts *out,
                            struct errlist *errors);

/* What differs between two results: {"same": bool, "differences": [{"path", "a", "b"}]}. path: a JSON pointer (RFC 6901) into the results; a member that
 * one of them lacks is null there. Lists that differ are told whole. The caller owns it; NULL: no memory. */
json_t *simulate_differences(const json_t *a, const json_t *b);

#endif
