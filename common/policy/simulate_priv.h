/* The parts of simulate: its request is read, decided, then told, all working on one struct simulation. */
#ifndef COMMON_POLICY_SIMULATE_PRIV_H
#define COMMON_POLICY_SIMULATE_PRIV_H

#include "common/policy/identify.h"
#include "common/policy/simulate.h"

/* How far a request got: the last phase whose rules were looked at. */
enum simulate_phase { SIMULATE_NONE, SIMULATE_CONFIG, SIMULATE_LIMITS, SIMULATE_HEADERS };

struct simulation {
    const struct policy *policy; /* NULL: only facts are wanted, and no issuer is known */
    const struct expr_deployment *deployment; /* NULL: none known */

    /* as asked */
    struct identify_input input;
    struct headers headers;
    struct expr_viewer viewer;
    bool verified_bot, says_verified_bot; /* says: the request does, so that the snapshot's ranges are not asked */
    bool has_claims;
    struct expr_claims claims;
    bool has_issuer;
    size_t issuer; /* of policy.issuers */

    /* as decided */
    struct request_view view;
    enum simulate_phase reached;
    struct settings settings;
    struct rule_hits config_hits, header_hits;
    struct limit_choice limits;
    struct rule_hits quiet_limits; /* matched, but are not among limits: they count answers, or refused the request for want of their key */
    struct header_edit edit;
    struct response_edit response_edit;
    const struct issuer *verified_by; /* NULL: no token was verified */
    const char *rejected;             /* NULL: forwarded */
    int status;                       /* of the answer; 0: forwarded */
    const struct template *answer;    /* NULL: forwarded, or an answer without a body */
    const char *challenge;            /* WWW-Authenticate; NULL: none */
};

/* simulate for a request that stands in a larger document: faults get its place and go to the document's list. quiet_limits: as in struct simulation,
 * for who counts the rules that a request reaches. */
MUSTUSE bool simulate_at(const struct policy *p, const struct simulate_options *options, const struct jx *request, json_t **out,
                         struct rule_hits *quiet_limits);

/* Reads the request into s, strictly; faults go to the document's list. */
void simulate_request(const struct jx *request, struct arena *a, struct simulation *s);
/* The claims of a token, as rules see them. */
void simulate_claims(const struct jx *claims, struct arena *a, struct expr_claims *out);
/* Whether the limit finds its key in the request, and its value to tell apart where it counts different ones. */
bool simulate_has_key(const struct simulation *s, const struct rate_rule *rule);
bool simulate_has_value(const struct simulation *s, const struct rate_rule *rule);
/* Fills quiet_limits once limits are chosen. False: no memory. */
MUSTUSE bool simulate_find_quiet_limits(struct simulation *s, struct arena *a);
/* All keys but "explain". NULL: no memory. */
json_t *simulate_result(const struct simulation *s);
/* The value of "explain". NULL: no memory. */
json_t *simulate_explanation(const struct simulation *s, const json_t *document);

/* --- JSON under construction: a value of NULL makes each of them fail, so that one check at the end is enough --- */

static inline json_t *simulate_text(struct str s)
{
    return json_stringn(s.p ? s.p : "", s.len);
}

static inline bool simulate_put(json_t *object, const char *name, json_t *value)
{
    return json_object_set_new(object, name, value) == 0;
}

static inline json_t *simulate_finished(json_t *value, bool ok)
{
    if (ok)
        return value;
    json_decref(value);
    return NULL;
}

#endif
