/* A policy: JSON document -> decode -> compile -> an immutable policy that decides. The one validator of the product: file start,
 * reload, check and simulate all come through policy_compile. */
#ifndef COMMON_POLICY_POLICY_H
#define COMMON_POLICY_POLICY_H

#include "common/base/arena.h"
#include "common/base/err.h"
#include "common/base/jx.h"
#include "common/expr/expr.h"
#include "common/http/headers.h"
#include "common/http/template.h"
#include "common/rate/rate.h"

enum { POLICY_SCHEMA_MIN = 2, POLICY_SCHEMA_MAX = 6, POLICY_RULES_MAX = 200, POLICY_SITE_WIDE_MAX = 2, POLICY_LIMITED_RULES_MAX = 5 };
/* Bounds of our own. Header names: different ones that the enabled header rules write. */
enum { POLICY_TEMPLATES_MAX = 200, POLICY_RULE_OPS_MAX = 32, POLICY_HEADER_NAMES_MAX = 48 };

enum kind {
#define KIND_ROW(id, name, status) KIND_##id,
#include "schemas/kinds.def"
#undef KIND_ROW
    KIND_N
};
const char *kind_name(enum kind k);
int kind_status(enum kind k);

enum decision {
#define DECISION_ROW(id, name) DECISION_##id,
#include "schemas/decisions.def"
#undef DECISION_ROW
    DECISION_N
};
const char *decision_name(enum decision d);

enum toggle { TOGGLE_UNSET, TOGGLE_OFF, TOGGLE_ON };
enum block_mode { BLOCK_UNSET, BLOCK_NONE, BLOCK_LOG, BLOCK_BLOCK };
enum rule_action { ACTION_BLOCK, ACTION_LOG };
enum fail_mode { FAIL_OPEN, FAIL_CLOSED, FAIL_LOCAL };
enum missing_key_mode { MISSING_SKIP, MISSING_FALLBACK_IP, MISSING_REJECT };

struct config_rule {
    struct str id;
    size_t program; /* of policy.config_set */
    enum block_mode block;
    enum toggle ratelimit_headers;
    const struct template *responses[KIND_N]; /* NULL: not set by this rule */
};

struct rate_rule {
    struct str id;
    size_t program; /* of policy.rate_set */
    bool site_wide; /* the expression is `true` */
    struct rate_params params;
    struct rate_name name; /* of its counters */
    enum rule_action action; /* as written; kill_switch.rate_limit is applied by policy_select_limits */
    enum missing_key_mode on_missing_key;
    enum fail_mode fail_mode;
};

struct header_op {
    struct str name, value; /* set; the name in lower case */
};

struct header_rule {
    struct str id;
    size_t program; /* of policy.header_set */
    const struct header_op *ops;
    size_t n_ops;
};

/* Immutable once compiled; readable by any thread. Rules that are `"enabled": false` are not in the lists. */
struct policy {
    struct arena arena;
    int64_t schema, version;
    uint64_t max_inflight; /* 0: the policy sets none */
    struct {
        bool rate_limit, block;
    } kill_switch;
    const struct template *defaults[KIND_N];
    struct expr_set *config_set, *rate_set, *header_set;
    const struct config_rule *config_rules;
    const struct rate_rule *rate_rules;
    const struct header_rule *header_rules;
    size_t n_config_rules, n_rate_rules, n_header_rules;
};

/* document: a bare <config> or an envelope (has "active"; then that is compiled and paths start with /active). On any error *out is untouched.
 * Faults and warnings are added, all at once, in the order of the language's members; a schema that is too new is the only fault then, since
 * nothing else of such a document can be judged. The policy keeps nothing of the document.
 *
 * Defaults where a member is absent: enabled true; burst = limit; action block; on_missing_key fallback_ip; fail_mode open; kill switches off;
 * no rules. Required: schema, version, global.defaults.responses (every kind; forbidden may be missing while nothing of schema 4 is used: no
 * block setting, no forbidden response, kill_switch.block not on), of each rule id, expression and settings or ops, of a rate-limit rule
 * algorithm, limit, period and key. Disabled rules are checked like others, but do not count as site-wide.
 *
 * Parts of the language that this build cannot enforce are refused by name (ERR_UNSUPPORTED), whatever their value. */
MUSTUSE bool policy_compile(const json_t *document, struct policy **out, struct errlist *errors, struct errlist *warnings);
/* jx_load, then policy_compile. */
MUSTUSE bool policy_load(const char *file, struct policy **out, struct errlist *errors, struct errlist *warnings);
void policy_free(struct policy **p);

/* --- Decisions about one request: pure functions, called by the agent's steps and by simulate in the same order. --- */

/* What identification makes of a request (spoa fills it; simulate from its JSON). */
struct request_view {
    struct expr_facts facts;
    const struct headers *headers;
};

struct rule_hits {
    uint16_t index[POLICY_RULES_MAX]; /* of the rules that matched, in order */
    uint16_t n;
};

struct settings {
    enum block_mode block; /* after kill_switch.block: BLOCK_UNSET reads as none */
    bool ratelimit_headers;
    const struct template *responses[KIND_N];
};
/* Rules apply in order, a later one overwrites the same setting (responses: per kind). False: no memory. */
MUSTUSE bool policy_config(const struct policy *p, const struct request_view *r, struct arena *a, struct settings *out, struct rule_hits *hits);

/* The rate-limit rules to charge: site-wide ones always, then matching ones in order up to the cap, blocking ones before shadow ones (the
 * chosen are reported in list order). n_capped: how many matching ones the cap left out. */
struct limit_choice {
    uint16_t index[POLICY_SITE_WIDE_MAX + POLICY_LIMITED_RULES_MAX];
    bool enforce[POLICY_SITE_WIDE_MAX + POLICY_LIMITED_RULES_MAX]; /* false: shadow, by action or kill switch */
    uint16_t n, n_capped;
    bool reject_missing_key; /* an enforcing rule with on_missing_key reject had no key: answer 400 bad_request */
};
MUSTUSE bool policy_select_limits(const struct policy *p, const struct request_view *r, struct arena *a, struct limit_choice *out);
/* The subject of rule for this request, into b (RATE_SUBJECT_MAX). Without a client address, which only simulate lets through,
 * fallback_ip counts all such requests as one subject. */
void policy_limit_subject(const struct rate_rule *rule, const struct request_view *r, struct buf *b);

/* Operations on the response as HAProxy's binary lists, whoever makes it: names to delete, headers to add after that. */
struct response_edit {
    struct str del, add; /* empty when there is nothing to do */
};
/* RateLimit-Policy and RateLimit (IETF draft-ietf-httpapi-ratelimit-headers-11), one item for each enforced rule that was counted, named by its id,
 * in place of the upstream's. names and verdicts: of the enforced rules only. n 0: nothing to do. False: no memory. */
struct limit_report {
    const struct rate_rule *rule;
    struct rate_verdict verdict;
};
MUSTUSE bool policy_limit_headers(const struct limit_report *reports, size_t n, struct arena *a, struct response_edit *out);

/* Header operations of the matching rules, in order, on a working copy of the request's headers; del and add are the difference as
 * HAProxy's binary lists, names lower case: each changed name is deleted once and added with the values it has now. result: the headers after
 * that. False: no memory or the lists do not fit (compile bounds what `set` can write, so it always fits). */
struct header_edit {
    struct headers result;
    struct str del, add; /* empty when there is nothing to do */
};
MUSTUSE bool policy_headers(const struct policy *p, const struct request_view *r, struct arena *a, struct header_edit *out, struct rule_hits *hits);

#endif
