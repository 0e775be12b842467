/* What the edge would do with one request, by the same functions in the same order; limits are selected but never counted. */
#ifndef COMMON_POLICY_SIMULATE_H
#define COMMON_POLICY_SIMULATE_H

#include "common/policy/policy.h"

/* request: {"method","host","path" (as sent, with the query)} and optionally "ip" (absent: a missing value, no refusal), "headers" {name: value
 * or [values]} without Host, "http_version", "ssl", "country", "continent", "asnum", "ja3", "ja4", "jwt_claims", "jwt_issuer" (checked for their
 * type; no rule of this build reads them). Strict: every fault is noted at its JSON pointer and gives false.
 *
 * *out, which the caller owns: {"rejected": null|"path"|"method"|"block"|"missing_key", "status": 0 or the status answered, "config_rules",
 * "settings", "rate_limit_rules", "request_header_rules", "upstream_headers", "response_headers", "locale": null}, always all of them.
 * settings are the policy's defaults when the request is refused before the config rules. It leaves out body_limit, upstream_timeout and
 * body_read_timeout, which this build does not decide. upstream_headers (empty when rejected) are without Host and what depends on the
 * deployment; response_headers are those of an answer of the edge. Names are lower case, a value is an array when a name stands there more
 * than once. */
MUSTUSE bool simulate(const struct policy *p, const json_t *request, json_t **out, struct errlist *errors);

#endif
