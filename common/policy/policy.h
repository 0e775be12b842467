/* A policy: JSON document -> decode -> compile -> an immutable policy that decides. The one validator of the product: file start,
 * reload, check, simulate and config tests all come through policy_compile. */
#ifndef COMMON_POLICY_POLICY_H
#define COMMON_POLICY_POLICY_H

#include "common/base/arena.h"
#include "common/base/err.h"
#include "common/base/jx.h"
#include "common/expr/expr.h"
#include "common/http/cors.h"
#include "common/http/locale.h"
#include "common/http/response_edit.h"
#include "common/http/template.h"
#include "common/rate/rate.h"

enum { POLICY_SCHEMA_MIN = 1, POLICY_SCHEMA_MAX = 6, POLICY_RULES_MAX = 200, POLICY_SITE_WIDE_MAX = 2, POLICY_LIMITED_RULES_MAX = 5, POLICY_COUNTING_RULES_MAX = 5 };
/* Rules that a request matched and that do not count it: so many are named. Bytes of a subject as people are shown it. */
enum { LIMIT_PASSED_NAMED_MAX = 32, LIMIT_DISPLAY_MAX = 160 };
/* Bounds of our own. Header names: different ones that the enabled header rules write. Issuers: bits of a word. */
enum { POLICY_TEMPLATES_MAX = 200, POLICY_RULE_OPS_MAX = 32, POLICY_HEADER_NAMES_MAX = 48, POLICY_ISSUERS_MAX = 32, POLICY_KEY_PARTS_MAX = 5 };

enum kind {
#define KIND_ROW(id, name, status, meaning) KIND_##id,
#include "schemas/kinds.def"
#undef KIND_ROW
    KIND_N
};
const char *kind_name(enum kind k);
int kind_status(enum kind k);

enum decision {
#define DECISION_ROW(id, name, meaning) DECISION_##id,
#include "schemas/decisions.def"
#undef DECISION_ROW
    DECISION_N
};
const char *decision_name(enum decision d);

/* Which of two policies that are served at once a request was given: all of them the active one, unless a candidate is tried. */
enum cohort { COHORT_ACTIVE, COHORT_CANDIDATE };
const char *cohort_name(enum cohort c);

enum toggle { TOGGLE_UNSET, TOGGLE_OFF, TOGGLE_ON };
enum block_mode { BLOCK_UNSET, BLOCK_NONE, BLOCK_LOG, BLOCK_BLOCK };
enum rule_action { ACTION_BLOCK, ACTION_LOG };
enum fail_mode { FAIL_OPEN, FAIL_CLOSED, FAIL_LOCAL };
enum missing_key_mode { MISSING_SKIP, MISSING_FALLBACK_IP, MISSING_REJECT };
enum auth_mode { AUTH_UNSET, AUTH_NONE, AUTH_OPTIONAL, AUTH_REQUIRED };
enum charge_mode { CHARGE_INDEPENDENT, CHARGE_ALL_OR_NOTHING };

/* --- What rules refer to --- */

enum jws_algorithm {
#define ALGORITHM_ROW(id, name) JWS_##id,
#include "schemas/jws_algorithms.def"
#undef ALGORITHM_ROW
    JWS_N
};
const char *jws_algorithm_name(enum jws_algorithm a);

struct issuer {
    struct str id, issuer;
    struct str_list audiences;
    struct str jwks_url, jwks_file; /* exactly one of them is set */
    enum jws_algorithm algorithm;
};

enum forward_mode { FORWARD_ALL, FORWARD_ALLOWLIST, FORWARD_DENYLIST };
struct forward_filter {
    enum forward_mode mode;
    struct str_list names; /* lower case, sorted, each once */
};

struct locale_settings {
    bool enabled;              /* where no config rule says otherwise */
    struct str_list supported; /* BCP 47 tags as written; empty: the policy has no locale */
    struct str fallback;       /* "default" of the document; one of supported */
    const struct locale_matcher *matcher; /* of the two; NULL where supported is empty */
};

/* A local token bucket for each client; limit 0: the policy sets none. */
struct backstop_settings {
    struct rate_params params;
    uint64_t max_entries;
};

/* --- Rules --- */

struct config_rule {
    struct str id;
    size_t program; /* of policy.config_set */
    enum auth_mode auth;
    bool has_accepted;
    uint32_t accepted; /* 1 << index of policy.issuers; where has_accepted is false: default_accepted */
    bool has_cors;
    const struct cors_policy *cors; /* NULL where has_cors: "none" */
    enum toggle locale;
    const struct template *responses[KIND_N]; /* NULL: not set by this rule */
    bool has_body_limit;
    uint64_t body_limit;          /* bytes */
    uint64_t upstream_timeout_ms; /* 0: not set */
    enum toggle ratelimit_headers;
    enum block_mode block;
};

enum rate_algorithm { RATE_TOKEN_BUCKET, RATE_FIXED_WINDOW, RATE_SLIDING_WINDOW, RATE_LEAKY_BUCKET, RATE_DISTINCT };

/* What a limit counts by, or counts different values of: KEY_PART_ROW(id, name, named, source, client). */
enum key_part_kind {
#define KEY_PART_ROW(id, name, named, source, client, distinct, meaning) KEY_PART_##id,
#include "schemas/key_parts.def"
#undef KEY_PART_ROW
    KEY_PART_N
};
struct key_part {
    enum key_part_kind kind;
    struct str name; /* of a header (lower case), cookie, query parameter or claim */
};

struct rate_rule {
    struct str id;
    size_t program; /* of policy.rate_set */
    bool site_wide; /* the expression is `true`, and it counts requests */
    enum rate_algorithm algorithm;
    struct rate_params params; /* burst = limit where the algorithm has none */
    struct rate_name name;     /* of its counters; of token buckets only */
    struct key_part key[POLICY_KEY_PARTS_MAX];
    size_t n_key;
    struct key_part distinct_of; /* of RATE_DISTINCT */
    enum rule_action action; /* as written; kill_switch.rate_limit is applied by policy_select_limits */
    enum missing_key_mode on_missing_key;
    enum fail_mode fail_mode;
    uint64_t penalty_ms; /* 0: none */
    const uint16_t *count_statuses; /* sorted, each once; NULL: it counts requests */
    size_t n_count_statuses;
    int64_t expires_at_ms; /* since 1970 UTC; 0: never */
};

/* A header value: literal text and placeholders {{name}} or {{name:key}}, in order. */
enum value_part_kind {
    VALUE_LITERAL,
#define PLACEHOLDER_ROW(id, name, named, source, meaning) VALUE_##id,
#include "schemas/placeholders.def"
#undef PLACEHOLDER_ROW
    VALUE_N
};
struct value_part {
    enum value_part_kind kind;
    struct str text; /* of a literal; of a header (lower case), cookie, query parameter or claim the name */
};

enum header_op_kind { HEADER_SET, HEADER_ADD, HEADER_REMOVE, HEADER_COPY, HEADER_RENAME, HEADER_FORWARD };
struct header_op {
    enum header_op_kind kind;
    struct str name;                /* what is written or removed (copy, rename: "to"); lower case */
    struct str from;                /* copy, rename */
    const struct value_part *parts; /* set, add */
    size_t n_parts;
    struct forward_filter filter; /* forward */
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
    int64_t needs_schema;  /* the lowest that has all that the document uses; at least `schema` is what an edge must read */
    uint64_t max_inflight; /* 0: the policy sets none */
    struct {
        bool rate_limit, auth, block;
    } kill_switch;
    enum charge_mode charge;
    struct backstop_settings backstop;
    struct {
        uint64_t body_limit, upstream_timeout_ms, body_read_timeout_ms;
    } limits; /* of global.defaults */
    const struct template *defaults[KIND_N];
    const struct cors_policy *cors_policies;
    size_t n_cors_policies;
    struct locale_settings locale;
    struct forward_filter forward;
    const struct issuer *issuers;
    size_t n_issuers;
    uint32_t default_accepted; /* 1 << index of issuers */
    struct expr_set *config_set, *rate_set, *header_set;
    const struct config_rule *config_rules;
    const struct rate_rule *rate_rules;
    const struct header_rule *header_rules;
    size_t n_config_rules, n_rate_rules, n_header_rules;
    bool counts_answers, expires; /* a rate-limit rule has count_statuses, expires_at */
    bool reads_verified_bot; /* an enabled rule reads client.verified_bot */
    struct addr_set verified_bots; /* the snapshot's ranges; empty when no rule reads them */
};

/* What surrounds the document. */
struct policy_options {
    const struct expr_deployment *deployment;
    /* true: for serving; what this build cannot enforce is a fault (ERR_UNSUPPORTED). false: for looking at it; a warning (not_enforced). */
    bool to_serve;
    uint64_t connect_timeout_ms; /* an upstream_timeout below it is warned about; 0: unknown */
    int64_t now_ms;              /* since 1970 UTC, for rules that have expired (a warning); 0: not asked */
};
/* Every field available, nothing to serve, no connect timeout, no time. */
extern const struct policy_options policy_options_any;

/* document: a bare <config> or an envelope (has "active"; then that is compiled and paths start with /active; a "candidate" is held to the
 * same rules and dropped). On any error *out is untouched. Faults and warnings are added, all at once, in the order of the language's
 * members; a schema that is too new is the only fault then, since nothing else of such a document can be judged, and so are refusals of memory. The
 * policy keeps nothing of the document. Members, their defaults and bounds: schemas/policy.def. Disabled rules are checked like others, but do not count as
 * site-wide. */
MUSTUSE bool policy_compile(const json_t *document, const struct policy_options *options, struct policy **out, struct errlist *errors,
                            struct errlist *warnings);
/* jx_load, then policy_compile. */
MUSTUSE bool policy_load(const char *file, const struct policy_options *options, struct policy **out, struct errlist *errors,
                         struct errlist *warnings);
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
    enum auth_mode auth;            /* after kill_switch.auth: never AUTH_UNSET */
    uint32_t accepted;              /* issuers; 0 where auth is none */
    const struct cors_policy *cors; /* NULL: none */
    bool locale;
    const struct template *responses[KIND_N];
    uint64_t body_limit, upstream_timeout_ms, body_read_timeout_ms;
    bool ratelimit_headers;
    enum block_mode block; /* after kill_switch.block: BLOCK_UNSET reads as none */
    int block_rule;        /* index of the config rule that this block is of; -1 where it is none */
};
/* The settings of a request that no rule matches. */
void policy_default_settings(const struct policy *p, struct settings *out);
/* Rules apply in order, a later one overwrites the same setting (responses: per kind; auth: mode and accepted together). A rule whose
 * expression ends in an error contributes `block: block` and `auth: required` only. False: no memory. */
MUSTUSE bool policy_config(const struct policy *p, const struct request_view *r, struct arena *a, struct settings *out, struct rule_hits *hits);

/* Matching rules that are passed over. */
struct limit_passed {
    uint16_t index[LIMIT_PASSED_NAMED_MAX]; /* the first ones */
    uint16_t n;                             /* all of them: may be more than are named */
};
/* The rate-limit rules to charge: site-wide ones always, then matching ones in order up to the cap, blocking ones before shadow ones (the
 * chosen are reported in list order). Rules that count answers are no part of it, nor are those that lack what they count. now_ms: since 1970 UTC, for
 * rules that have expired, which take no slot; 0: none has. */
struct limit_choice {
    uint16_t index[POLICY_SITE_WIDE_MAX + POLICY_LIMITED_RULES_MAX];
    bool enforce[POLICY_SITE_WIDE_MAX + POLICY_LIMITED_RULES_MAX]; /* false: shadow, by action or kill switch */
    uint16_t n;
    struct limit_passed capped, expired; /* left out by the cap; past their expires_at */
    bool reject_missing_key; /* an enforcing rule with on_missing_key reject had no key: answer 400 bad_request */
    uint16_t rejecting;      /* the first such rule, where there is one */
};
MUSTUSE bool policy_select_limits(const struct policy *p, const struct request_view *r, struct arena *a, int64_t now_ms, struct limit_choice *out);

/* Rules that count answers (count_statuses), with whom they count: the first matching ones in list order. One without its key counts by the address with
 * on_missing_key fallback_ip and else not at all: reject refuses nothing, since such a rule asks for no key before there is an answer. now_ms as above.
 * False: no memory, or a subject could not be hashed. */
struct count_choice {
    uint16_t index[POLICY_COUNTING_RULES_MAX];
    struct rate_subject subject[POLICY_COUNTING_RULES_MAX];
    uint16_t n;
};
MUSTUSE bool policy_select_counts(const struct policy *p, const struct request_view *r, struct arena *a, int64_t now_ms, struct count_choice *out);
/* The subject of rule for this request, into b (RATE_SUBJECT_MAX, which holds every one): its key's values; where one is missing or empty the
 * address. Without a client address, which only simulate lets through, fallback_ip counts all such requests as one subject. */
void policy_limit_subject(const struct rate_rule *rule, const struct request_view *r, struct buf *b);
/* The same subject for people to recognise, at most LIMIT_DISPLAY_MAX bytes of b: parts joined by a blank. Address, AS number, host, method, country,
 * locale and fingerprint in full; headers, cookies, parameters and claims, which may be secrets, as name=beginning: at most four characters
 * and never more than half of them, then an ellipsis. What can't be printed is '?'. UTF-8; what has no room is cut between characters. */
void policy_limit_display(const struct rate_rule *rule, const struct request_view *r, struct buf *b);

/* RateLimit-Policy and RateLimit (IETF draft-ietf-httpapi-ratelimit-headers-11), one item for each enforced rule that was counted, named by its id,
 * in place of the upstream's, added to out. names and verdicts: of the enforced rules only. n 0: nothing to do. False: no memory, and out is untouched. */
struct limit_report {
    const struct rate_rule *rule;
    struct rate_verdict verdict;
};
MUSTUSE bool policy_limit_headers(const struct limit_report *reports, size_t n, struct arena *a, struct response_edit *out);

/* Filters (the policy's own, then those of the matching rules), then the operations of the matching rules, in order, on a working copy of the
 * request's headers; del and add are the difference as HAProxy's binary lists: each changed name is deleted once and added with the values it has
 * now, without control characters and without blanks at their ends. result: the headers after that. Placeholders read the request as it came.
 * False, and the request is to be answered 503: no memory, the lists do not fit, a value over 8 KiB or more than 2 * HEADERS_MAX headers; nothing
 * is cut, since a part of an identity may be another one. */
struct header_edit {
    struct headers result;
    struct str del, add; /* empty when there is nothing to do */
};
MUSTUSE bool policy_headers(const struct policy *p, const struct request_view *r, struct arena *a, struct header_edit *out, struct rule_hits *hits);

#endif
