/* Rate-limit rules of a document. */
#include "common/policy/compile_priv.h"

enum { KEY_PARTS_MAX = 5 };

static void compile_algorithm(const struct jx *j)
{
    static const char *const names[] = {"token_bucket", "fixed_window", "sliding_window", "leaky_bucket", "distinct", NULL};
    int i = 0;

    if (!j->value)
        jx_fault(j, ERR_MISSING, "is required: \"token_bucket\"");
    else if (jx_enum(j, names, &i) && i != 0)
        jx_fault(j, ERR_UNSUPPORTED, "\"%s\" is not supported by this build: use \"token_bucket\"", names[i]);
}

static bool is_known_part(struct str s)
{
    static const char *const whole[] = {"host", "method", "country", "asnum", "ja4", "locale", "constant", NULL};
    static const char *const named[] = {"header:", "cookie:", "query:", "jwt_claim:", NULL};

    for (size_t i = 0; whole[i]; i++)
        if (str_eq(s, str_of(whole[i])))
            return true;
    for (size_t i = 0; named[i]; i++)
        if (str_starts(s, str_of(named[i])) && s.len > str_of(named[i]).len)
            return true;
    return false;
}

static void compile_key_part(const struct jx *j, bool *has_ip)
{
    struct str part;

    if (!jx_str(j, &part))
        return;
    if (str_eq(part, STR("ip"))) {
        if (*has_ip)
            jx_fault(j, ERR_DUPLICATE, "\"ip\" is in this key already");
        *has_ip = true;
    } else if (is_known_part(part)) {
        jx_fault(j, ERR_UNSUPPORTED, "\"%.*s\" is not supported by this build: the key must be [\"ip\"]", STR_ARG(str_cut_utf8(part, 64)));
    } else {
        jx_fault(j, ERR_BAD_VALUE, "\"%.*s\" is nothing that requests are counted by: the key must be [\"ip\"]", STR_ARG(str_cut_utf8(part, 64)));
    }
}

static void compile_key(const struct jx *key)
{
    size_t n = jx_array_len(key);
    bool has_ip = false;

    if (!key->value)
        jx_fault(key, ERR_MISSING, "is required: [\"ip\"]");
    else if (json_is_array(key->value) && n == 0)
        jx_fault(key, ERR_BAD_VALUE, "is empty: use [\"ip\"]");
    else if (n > KEY_PARTS_MAX)
        jx_fault(key, ERR_LIMIT_EXCEEDED, "%zu parts; at most %d are allowed", n, KEY_PARTS_MAX);
    for (size_t i = 0; i < n && i < KEY_PARTS_MAX; i++) {
        struct jx part = jx_item(key, i);
        compile_key_part(&part, &has_ip);
    }
}

static void compile_params(struct compile *c, const struct jx *rule, struct rate_params *out)
{
    struct jx limit = jx_member(rule, "limit"), period = jx_member(rule, "period"), burst = jx_member(rule, "burst");
    int64_t limit_n = 0, burst_n = 0;
    char path[ERR_PATH_MAX];
    struct err e;

    bool ok = jx_need_int(&limit, 1, RATE_LIMIT_MAX, &limit_n);
    ok = jx_need_duration_ms(&period, RATE_PERIOD_MIN_MS, RATE_PERIOD_MAX_MS, &out->period_ms) && ok;
    if (!burst.value)
        burst_n = limit_n;
    else
        ok = jx_int(&burst, 1, RATE_BURST_MAX, &burst_n) && ok;
    if (!ok)
        return;
    out->limit = (uint64_t) limit_n;
    out->burst = (uint64_t) burst_n;
    err_clear(&e);
    jx_path(&burst, path);
    if (!rate_params_ok(out, path, &e))
        errlist_add_err(c->errors, &e);
}

static void compile_behaviour(const struct jx *rule, struct rate_rule *out)
{
    static const char *const missing_names[] = {"skip", "fallback_ip", "reject", NULL};
    static const enum missing_key_mode missing[] = {MISSING_SKIP, MISSING_FALLBACK_IP, MISSING_REJECT};
    static const char *const action_names[] = {"block", "log", NULL};
    static const enum rule_action actions[] = {ACTION_BLOCK, ACTION_LOG};
    static const char *const fail_names[] = {"open", "closed", "local", NULL};
    static const enum fail_mode fails[] = {FAIL_OPEN, FAIL_CLOSED, FAIL_LOCAL};
    struct jx on_missing_key = jx_member(rule, "on_missing_key"), action = jx_member(rule, "action"), fail_mode = jx_member(rule, "fail_mode");
    int i;

    out->on_missing_key = jx_enum(&on_missing_key, missing_names, &i) ? missing[i] : MISSING_FALLBACK_IP;
    out->action = jx_enum(&action, action_names, &i) ? actions[i] : ACTION_BLOCK;
    out->fail_mode = jx_enum(&fail_mode, fail_names, &i) ? fails[i] : FAIL_OPEN;
}

static void compile_rate_rule(struct compile *c, const struct jx *rule, struct rate_rule *out)
{
    static const char *const names[] = {"id",    "enabled", "expression",     "algorithm", "limit",     "period",
                                        "burst", "key",     "on_missing_key", "action",    "fail_mode", NULL};
    static const char *const unsupported[] = {"penalty", "distinct_of", "count_statuses", "expires_at", NULL};
    struct jx algorithm = jx_member(rule, "algorithm"), key = jx_member(rule, "key");

    compile_only(rule, names, unsupported);
    compile_algorithm(&algorithm);
    compile_params(c, rule, &out->params);
    compile_key(&key);
    compile_behaviour(rule, out);
}

void compile_rate_rules(struct compile *c, const struct jx *rules)
{
    size_t n = compile_n_rules(rules), n_kept = 0, n_site_wide = 0;
    struct rate_rule *kept = ARENA_NEW_N(&c->policy->arena, n, struct rate_rule);

    if (!kept) {
        compile_no_memory(rules);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        struct jx rule = jx_item(rules, i), expression = jx_member(&rule, "expression");
        struct rate_rule compiled = {0};
        struct rule_head head = {0};
        if (!jx_is_object(&rule))
            continue;
        bool in = compile_rule_head(c, &rule, EXPR_RATE, c->policy->rate_set, &head);
        compile_rate_rule(c, &rule, &compiled);
        if (!in)
            continue;
        compiled.id = head.id;
        compiled.program = head.program;
        if (!rate_name_make(&compiled.params, head.id, &c->policy->arena, &compiled.name)) {
            compile_no_memory(&rule);
            return;
        }
        compiled.site_wide = expr_is_true(head.x);
        if (compiled.site_wide && ++n_site_wide > POLICY_SITE_WIDE_MAX)
            jx_fault(&expression, ERR_LIMIT_EXCEEDED, "more than %d enabled rate-limit rules have the expression `true`", POLICY_SITE_WIDE_MAX);
        kept[n_kept++] = compiled;
    }
    c->policy->rate_rules = kept;
    c->policy->n_rate_rules = n_kept;
}
