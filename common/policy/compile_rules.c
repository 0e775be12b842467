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
    /* What is compiled keeps nothing of the tree, which is the larger of the two. */
    const struct expr *x = expr_decode(j, &c->scratch);
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
    c->in_force = is_enabled;
    out->x = compile_expression(c, &expression, phase);
    if (!out->x || !is_enabled)
        return false;
    if (!expr_set_add(set, out->x, &out->program)) {
        compile_no_memory(&expression);
        return false;
    }
    struct expr_traits traits;
    expr_traits(out->x, &traits);
    c->policy->reads_verified_bot = c->policy->reads_verified_bot || traits.reads_verified_bot;
    return true;
}

static enum block_mode compile_block(const struct jx *j)
{
    static const char *const names[] = {"none", "log", "block", NULL};
    static const enum block_mode modes[] = {BLOCK_NONE, BLOCK_LOG, BLOCK_BLOCK};
    int i;

    return jx_enum(j, names, &i) ? modes[i] : BLOCK_UNSET;
}

static void compile_settings(struct compile *c, const struct jx *settings, struct config_rule *out)
{
    if (!compile_need_object(settings))
        return;
    compile_members(c, settings, OBJECT_SETTINGS);
    struct jx auth = jx_member(settings, "auth"), cors = jx_member(settings, "cors_policy"), locale = jx_member(settings, "locale"),
              responses = jx_member(settings, "responses"), body_limit = jx_member(settings, "body_limit"),
              upstream_timeout = jx_member(settings, "upstream_timeout"), headers = jx_member(settings, "ratelimit_headers"),
              block = jx_member(settings, "block"), upstream = jx_member(settings, "upstream");
    bool send_headers;
    if (upstream.value && c->policy->schema == 1)
        jx_fault(&upstream, ERR_UNKNOWN_MEMBER, "requests are no longer routed by rules: every one goes to the edge's one upstream, so this can't be kept; remove it");
    compile_auth_setting(c, &auth, out);
    compile_cors_choice(c, &cors, out);
    compile_locale_choice(c, &locale, out);
    compile_template_choice(c, &responses, out->responses);
    out->has_body_limit = compile_body_limit(&body_limit, &out->body_limit);
    compile_upstream_timeout(c, &upstream_timeout, &out->upstream_timeout_ms);
    if (jx_bool(&headers, &send_headers))
        out->ratelimit_headers = send_headers ? TOGGLE_ON : TOGGLE_OFF;
    out->block = compile_block(&block);
}

void compile_config_rules(struct compile *c, const struct jx *rules)
{
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
        compile_members(c, &rule, OBJECT_CONFIG_RULE);
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
