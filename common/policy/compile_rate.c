/* Rate-limit rules of a document. */
#include "common/base/parse.h"
#include "common/policy/compile_words_priv.h"
#include "common/policy/warnings_priv.h"

enum { DISTINCT_LIMIT_MAX = 1000, STATUSES_MAX = 50, STATUS_MIN = 100, STATUS_MAX = 499, SCHEMA_OF_DISTINCT = 4 };

static bool is_bucket(enum rate_algorithm a)
{
    return a == RATE_TOKEN_BUCKET || a == RATE_LEAKY_BUCKET;
}

/* False: no such algorithm, so that nothing can be said about what it takes. */
static bool compile_algorithm(struct compile *c, const struct jx *j, struct rate_rule *out)
{
    static const char *const names[] = {"token_bucket", "fixed_window", "sliding_window", "leaky_bucket", "distinct", NULL};
    static const char *const unsupported[] = {NULL, "the algorithm fixed_window", "the algorithm sliding_window", "the algorithm leaky_bucket",
                                              "the algorithm distinct"};
    int i = 0;

    if (!j->value)
        jx_fault(j, ERR_MISSING, "is required: token_bucket, fixed_window, sliding_window, leaky_bucket or distinct");
    if (!jx_enum(j, names, &i))
        return false;
    out->algorithm = (enum rate_algorithm) i;
    if (out->algorithm == RATE_DISTINCT)
        compile_needs(c, SCHEMA_OF_DISTINCT);
    if (unsupported[i])
        compile_unsupported(c, j, unsupported[i]);
    return true;
}

static void compile_params(struct compile *c, const struct jx *rule, enum rate_algorithm algorithm, struct rate_params *out)
{
    struct jx limit = jx_member(rule, "limit"), period = jx_member(rule, "period"), burst = jx_member(rule, "burst");
    int64_t limit_n = 0, burst_n = 0;
    char path[ERR_PATH_MAX];
    struct err e;

    bool ok = jx_need_int(&limit, 1, algorithm == RATE_DISTINCT ? DISTINCT_LIMIT_MAX : RATE_LIMIT_MAX, &limit_n);
    ok = jx_need_duration_ms(&period, RATE_PERIOD_MIN_MS, RATE_PERIOD_MAX_MS, &out->period_ms) && ok;
    burst_n = limit_n;
    if (burst.value)
        ok = jx_int(&burst, 1, RATE_BURST_MAX, &burst_n) && ok;
    if (burst.value && !is_bucket(algorithm)) {
        jx_fault(&burst, ERR_CONFLICT, "is for token_bucket and leaky_bucket only: leave it out");
        return;
    }
    if (!ok)
        return;
    out->limit = (uint64_t) limit_n;
    out->burst = (uint64_t) burst_n;
    err_clear(&e);
    jx_path(&burst, path);
    if (is_bucket(algorithm) && !rate_params_ok(out, path, &e))
        errlist_add_err(c->errors, &e);
}

static bool key_has(const struct rate_rule *rule, const struct key_part *part)
{
    for (size_t i = 0; i < rule->n_key; i++)
        if (key_part_eq(&rule->key[i], part))
            return true;
    return false;
}

static void take_part(struct compile *c, const struct jx *j, struct rate_rule *out)
{
    struct key_part part;

    if (!compile_key_part(c, j, false, &part))
        return;
    if (key_has(out, &part))
        jx_fault(j, ERR_DUPLICATE, "is in this key already");
    else
        out->key[out->n_key++] = part;
}

static bool is_ip_only(const struct rate_rule *rule)
{
    return rule->n_key == 1 && rule->key[0].kind == KEY_PART_IP;
}

static void compile_key(struct compile *c, const struct jx *key, struct rate_rule *out)
{
    size_t n = jx_array_len(key);

    if (!key->value)
        jx_fault(key, ERR_MISSING, "is required: what requests are counted by, such as [\"ip\"]");
    else if (json_is_array(key->value) && n == 0)
        jx_fault(key, ERR_BAD_VALUE, "is empty: name what requests are counted by, such as [\"ip\"], or [\"constant\"] for one counter");
    else if (n > POLICY_KEY_PARTS_MAX)
        jx_fault(key, ERR_LIMIT_EXCEEDED, "%zu parts; at most %d are allowed", n, POLICY_KEY_PARTS_MAX);
    for (size_t i = 0; i < n && i < POLICY_KEY_PARTS_MAX; i++) {
        struct jx part = jx_item(key, i);
        take_part(c, &part, out);
    }
    if (out->n_key == n && n > 0 && !is_ip_only(out))
        compile_unsupported(c, key, "keys other than [\"ip\"]");
}

static void compile_distinct_of(struct compile *c, const struct jx *j, bool algorithm_known, struct rate_rule *out)
{
    if (!j->value && out->algorithm == RATE_DISTINCT)
        jx_fault(j, ERR_MISSING, "is required for distinct: path, query:<name>, ip, asnum or ja4");
    if (!j->value || !compile_key_part(c, j, true, &out->distinct_of) || !algorithm_known)
        return;
    if (out->algorithm != RATE_DISTINCT)
        jx_fault(j, ERR_CONFLICT, "is for the algorithm distinct only: leave it out, or count different values by it");
    else if (key_has(out, &out->distinct_of))
        jx_fault(j, ERR_CONFLICT, "is in the key too, where each value has a limit of its own: no limit would ever see a second one");
    else
        compile_unsupported(c, j, "distinct_of");
}

/* --- Counting answers --- */

/* 0 when there was a fault. */
static uint16_t status_of(const struct jx *j)
{
    struct str text;
    uint64_t status = 0;

    if (!jx_str(j, &text))
        return 0;
    bool is_number = text.len == 3 && parse_digits(text, 999, &status);
    if (is_number && status / 100 == 5)
        jx_fault(j, ERR_BAD_VALUE, "5xx answers are mostly the upstream's own fault: counting them would lock clients out after an outage");
    else if (!is_number || status < STATUS_MIN || status > STATUS_MAX)
        jx_fault(j, ERR_BAD_VALUE, "\"%.*s\" is no status that is counted: write \"%d\" to \"%d\"", STR_ARG(str_cut_utf8(text, 64)), STATUS_MIN, STATUS_MAX);
    else
        return (uint16_t) status;
    return 0;
}

/* Adds status in order. False when it is there. */
static bool add_status(uint16_t *statuses, size_t *n, uint16_t status)
{
    size_t at = *n;

    while (at > 0 && statuses[at - 1] > status)
        at--;
    if (at > 0 && statuses[at - 1] == status)
        return false;
    memmove(&statuses[at + 1], &statuses[at], (*n - at) * sizeof *statuses);
    statuses[at] = status;
    (*n)++;
    return true;
}

static void take_statuses(struct compile *c, const struct jx *j, struct rate_rule *out)
{
    size_t n = jx_array_len(j), kept = 0;

    if (n > STATUSES_MAX) {
        jx_fault(j, ERR_LIMIT_EXCEEDED, "%zu statuses; at most %d are allowed", n, STATUSES_MAX);
        return;
    }
    if (json_is_array(j->value) && n == 0)
        jx_fault(j, ERR_BAD_VALUE, "is empty: name the statuses to count, such as [\"404\"], or leave it out to count requests");
    uint16_t *statuses = ARENA_NEW_N(&c->policy->arena, n, uint16_t);
    if (!statuses) {
        compile_no_memory(j);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        struct jx item = jx_item(j, i);
        uint16_t status = status_of(&item);
        if (status != 0 && !add_status(statuses, &kept, status))
            jx_fault(&item, ERR_DUPLICATE, "\"%u\" is in this list already", (unsigned) status);
    }
    out->count_statuses = statuses;
    out->n_count_statuses = kept;
}

static void compile_count_statuses(struct compile *c, const struct jx *j, struct rate_rule *out)
{
    if (!j->value)
        return;
    take_statuses(c, j, out);
    if (out->algorithm == RATE_DISTINCT)
        jx_fault(j, ERR_CONFLICT, "does not go with the algorithm distinct, which counts values of requests: leave one out");
    else if (out->n_count_statuses > 0)
        compile_unsupported(c, j, "count_statuses");
}

/* --- What happens, and when --- */

static void compile_fail_mode(const struct jx *j, bool counts_answers, struct rate_rule *out)
{
    static const char *const names[] = {"open", "closed", "local", NULL};
    static const enum fail_mode modes[] = {FAIL_OPEN, FAIL_CLOSED, FAIL_LOCAL};
    int i;

    out->fail_mode = jx_enum(j, names, &i) ? modes[i] : FAIL_OPEN;
    if (j->value && counts_answers)
        jx_fault(j, ERR_CONFLICT, "does not go with count_statuses: answers are counted in the edge's own memory, which does not fail; leave it out");
    else if (out->fail_mode == FAIL_LOCAL && out->algorithm == RATE_DISTINCT)
        jx_fault(j, ERR_CONFLICT, "\"local\" does not go with the algorithm distinct, whose state is too large for the edge's memory: use open or closed");
}

static void compile_penalty(struct compile *c, const struct jx *j, struct rate_rule *out)
{
    if (!jx_duration_ms(j, RATE_PERIOD_MIN_MS, RATE_PERIOD_MAX_MS, &out->penalty_ms))
        return;
    if (out->action != ACTION_BLOCK)
        jx_fault(j, ERR_CONFLICT, "is for the action \"block\" only: a rule that logs refuses nobody");
    else
        compile_unsupported(c, j, "penalty");
}

static void compile_expiry(struct compile *c, const struct jx *j, struct rate_rule *out)
{
    struct str text;
    int64_t at_ms;

    if (!jx_str(j, &text))
        return;
    if (!parse_time_ms(text, &at_ms)) {
        jx_fault(j, ERR_BAD_VALUE, "must be a time such as \"2026-01-31T12:00:00Z\" (RFC 3339)");
        return;
    }
    out->expires_at_ms = at_ms == 0 ? -1 : at_ms; /* 0 stands for never */
    compile_unsupported(c, j, "expires_at");
}

static void compile_behaviour(struct compile *c, const struct jx *rule, bool counts_answers, struct rate_rule *out)
{
    static const char *const missing_names[] = {"skip", "fallback_ip", "reject", NULL};
    static const enum missing_key_mode missing[] = {MISSING_SKIP, MISSING_FALLBACK_IP, MISSING_REJECT};
    static const char *const action_names[] = {"block", "log", NULL};
    static const enum rule_action actions[] = {ACTION_BLOCK, ACTION_LOG};
    struct jx on_missing_key = jx_member(rule, "on_missing_key"), action = jx_member(rule, "action"), penalty = jx_member(rule, "penalty"),
              fail_mode = jx_member(rule, "fail_mode");
    int i;

    out->on_missing_key = jx_enum(&on_missing_key, missing_names, &i) ? missing[i] : MISSING_FALLBACK_IP;
    out->action = jx_enum(&action, action_names, &i) ? actions[i] : ACTION_BLOCK;
    compile_penalty(c, &penalty, out);
    compile_fail_mode(&fail_mode, counts_answers, out);
}

static void compile_rate_rule(struct compile *c, const struct jx *rule, struct rate_rule *out)
{
    struct jx algorithm = jx_member(rule, "algorithm"), key = jx_member(rule, "key"), distinct_of = jx_member(rule, "distinct_of"),
              count_statuses = jx_member(rule, "count_statuses"), expires_at = jx_member(rule, "expires_at");

    bool algorithm_known = compile_algorithm(c, &algorithm, out);
    compile_params(c, rule, out->algorithm, &out->params);
    compile_key(c, &key, out);
    compile_behaviour(c, rule, count_statuses.value != NULL, out);
    compile_distinct_of(c, &distinct_of, algorithm_known, out);
    compile_count_statuses(c, &count_statuses, out);
    compile_expiry(c, &expires_at, out);
}

/* --- Rules together --- */

/* Whether the client can get a counter of its own choice. */
static bool needs_partner(const struct rate_rule *rule)
{
    bool clients = false;

    for (size_t i = 0; i < rule->n_key; i++) {
        if (rule->key[i].kind == KEY_PART_IP || rule->key[i].kind == KEY_PART_CLAIM)
            return false;
        clients = clients || key_part_is_clients(&rule->key[i]);
    }
    return clients;
}

/* A rule that holds every client to a rate of requests, whatever it sends. */
static bool is_partner(const struct rate_rule *rule)
{
    return rule->site_wide && rule->algorithm != RATE_DISTINCT && is_ip_only(rule);
}

/* all: the rules of the document, enabled or not. */
static void check_partners(const struct jx *rules, const struct rate_rule *all, size_t n, bool has_partner)
{
    for (size_t i = 0; i < n && !has_partner; i++) {
        struct jx rule = jx_item(rules, i), key = jx_member(&rule, "key");
        if (needs_partner(&all[i]))
            jx_fault(&key, ERR_KEY_NEEDS_PARTNER,
                     "the client chooses what it is counted by, and so gets a new counter at will: add \"ip\" or a jwt_claim to the key, or a rule with "
                     "the expression `true` and the key [\"ip\"]");
    }
}

/* What being in force makes of a rule. False: no memory. */
static bool finish_rule(struct compile *c, const struct jx *rule, const struct rule_head *head, struct rate_rule *out, size_t *n_site_wide)
{
    struct jx expression = jx_member(rule, "expression"), count_statuses = jx_member(rule, "count_statuses");

    out->id = head->id;
    out->program = head->program;
    out->site_wide = expr_is_true(head->x) && !count_statuses.value;
    if (out->site_wide && ++*n_site_wide > POLICY_SITE_WIDE_MAX)
        jx_fault(&expression, ERR_LIMIT_EXCEEDED, "more than %d enabled rate-limit rules have the expression `true`", POLICY_SITE_WIDE_MAX);
    if (out->algorithm != RATE_TOKEN_BUCKET || rate_name_make(&out->params, head->id, &c->policy->arena, &out->name))
        return true;
    compile_no_memory(rule);
    return false;
}

void compile_rate_rules(struct compile *c, const struct jx *rules)
{
    size_t n = compile_n_rules(rules), n_kept = 0, n_site_wide = 0;
    struct rate_rule *kept = ARENA_NEW_N(&c->policy->arena, n, struct rate_rule), *all = ARENA_NEW_N(&c->scratch, n, struct rate_rule);
    struct rate_note *notes = ARENA_NEW_N(&c->scratch, n, struct rate_note);
    bool has_partner = false;

    if (!kept || !all || !notes) {
        compile_no_memory(rules);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        struct jx rule = jx_item(rules, i);
        struct rule_head head = {0};
        if (!jx_is_object(&rule))
            continue;
        compile_members(c, &rule, OBJECT_RATE_RULE);
        bool in = compile_rule_head(c, &rule, EXPR_RATE, c->policy->rate_set, &head);
        compile_rate_rule(c, &rule, &all[i]);
        if (!in)
            continue;
        if (!finish_rule(c, &rule, &head, &all[i], &n_site_wide))
            return;
        has_partner = has_partner || is_partner(&all[i]);
        c->policy->counts_answers = c->policy->counts_answers || all[i].count_statuses;
        c->policy->expires = c->policy->expires || all[i].expires_at_ms != 0;
        kept[n_kept] = all[i];
        notes[n_kept] = (struct rate_note){.rule = &kept[n_kept], .x = head.x, .index = i};
        n_kept++;
    }
    c->in_force = true;
    check_partners(rules, all, n, has_partner);
    c->policy->rate_rules = kept;
    c->policy->n_rate_rules = n_kept;
    compile_rate_warnings(c, rules, notes, n_kept);
}
