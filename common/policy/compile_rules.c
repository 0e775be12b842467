/* What rules of all phases have in common, and the config rules. */
#include "common/policy/compile_priv.h"

size_t compile_n_rules(const struct jx *rules)
{
    size_t n = jx_array_len(rules);

    if (n <= POLICY_RULES_MAX)
        return n;
    jx_fault(rules, ERR_LIMIT_EXCEEDED, "%zu rules; at most %d are allowed in a phase", n, POLICY_RULES_MAX);
    return POLICY_RULES_MAX;
}

static void check_id(struct compile *c, const struct jx *j, struct str id)
{
    char path[ERR_PATH_MAX];
    void *existing = NULL;
    struct str kept;

    if (!compile_check_name(j, id))
        return;
    if (str_starts(id, STR("ap-")))
        jx_fault(j, ERR_RESERVED, "ids that begin with \"ap-\" belong to rules that the product writes itself");
    jx_path(j, path);
    char *mine = arena_copy_str(&c->scratch, str_of(path), &kept) ? (char *) (uintptr_t) kept.p : NULL;
    if (!mine || !map_add(&c->ids, id, mine, &existing)) {
        compile_no_memory(j);
        return;
    }
    if (existing)
        jx_fault(j, ERR_DUPLICATE, "\"%.*s\" is the id at %s already; ids are unique in all phases", STR_ARG(id), (const char *) existing);
}

/* NULL when there was a fault. */
static const struct expr *compile_expression(struct compile *c, const struct jx *j, enum expr_phase phase)
{
    char path[ERR_PATH_MAX];

    if (!j->value) {
        jx_fault(j, ERR_MISSING, "is required; `true` matches every request");
        return NULL;
    }
    const struct expr *x = expr_decode(j, &c->policy->arena);
    jx_path(j, path);
    struct expr_context context = {.phase = phase, .deployment = c->options->deployment, .schema = c->policy->schema, .path = path};
    return x && expr_check(x, &context, c->errors, c->warnings) ? x : NULL;
}

bool compile_rule_head(struct compile *c, const struct jx *rule, enum expr_phase phase, struct expr_set *set, struct rule_head *out)
{
    struct jx id = jx_member(rule, "id"), enabled = jx_member(rule, "enabled"), expression = jx_member(rule, "expression");
    bool is_enabled = true;

    if (jx_need_str(&id, &out->id))
        check_id(c, &id, out->id);
    jx_bool(&enabled, &is_enabled);
    out->x = compile_expression(c, &expression, phase);
    if (!out->x || !is_enabled)
        return false;
    if (expr_set_add(set, out->x, &out->program))
        return true;
    compile_no_memory(&expression);
    return false;
}

static enum block_mode compile_block(struct compile *c, const struct jx *j)
{
    static const char *const names[] = {"none", "log", "block", NULL};
    static const enum block_mode modes[] = {BLOCK_NONE, BLOCK_LOG, BLOCK_BLOCK};
    int i;

    c->uses_schema_4 = c->uses_schema_4 || j->value;
    return jx_enum(j, names, &i) ? modes[i] : BLOCK_UNSET;
}

static void compile_settings(struct compile *c, const struct jx *settings, struct config_rule *out)
{
    static const char *const names[] = {"responses", "ratelimit_headers", "block", NULL};
    static const char *const unsupported[] = {"auth", "cors_policy", "locale", "body_limit", "upstream_timeout", NULL};

    if (!compile_need_object(settings))
        return;
    compile_only(settings, names, unsupported);
    struct jx responses = jx_member(settings, "responses"), headers = jx_member(settings, "ratelimit_headers"),
              block = jx_member(settings, "block");
    bool send_headers;
    compile_template_choice(c, &responses, out->responses);
    if (json_is_object(responses.value) && json_object_get(responses.value, kind_name(KIND_FORBIDDEN)))
        c->uses_schema_4 = true;
    if (jx_bool(&headers, &send_headers))
        out->ratelimit_headers = send_headers ? TOGGLE_ON : TOGGLE_OFF;
    out->block = compile_block(c, &block);
}

void compile_config_rules(struct compile *c, const struct jx *rules)
{
    static const char *const names[] = {"id", "enabled", "expression", "settings", NULL};
    size_t n = compile_n_rules(rules), n_kept = 0;
    struct config_rule *kept = ARENA_NEW_N(&c->policy->arena, n, struct config_rule);
    struct config_note *notes = ARENA_NEW_N(&c->scratch, n, struct config_note);

    if (!kept || !notes) {
        compile_no_memory(rules);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        struct jx rule = jx_item(rules, i), settings = jx_member(&rule, "settings");
        struct config_rule compiled = {0};
        struct rule_head head = {0};
        if (!jx_is_object(&rule))
            continue;
        jx_only(&rule, names);
        bool in = compile_rule_head(c, &rule, EXPR_CONFIG, c->policy->config_set, &head);
        compile_settings(c, &settings, &compiled);
        if (!in)
            continue;
        compiled.id = head.id;
        compiled.program = head.program;
        kept[n_kept] = compiled;
        notes[n_kept] = (struct config_note){.rule = &kept[n_kept], .x = head.x, .index = i};
        n_kept++;
    }
    c->policy->config_rules = kept;
    c->policy->n_config_rules = n_kept;
    compile_config_warnings(c, rules, notes, n_kept);
}
