/* What a policy decides for one request: its settings. */
#include "common/policy/policy.h"

static void apply_auth(const struct policy *p, const struct config_rule *rule, struct settings *out)
{
    out->auth = rule->auth;
    out->accepted = rule->auth == AUTH_NONE ? 0 : rule->has_accepted ? rule->accepted : p->default_accepted;
}

static void set_block(const struct policy *p, const struct config_rule *rule, struct settings *out)
{
    out->block = rule->block;
    out->block_rule = rule->block == BLOCK_NONE ? -1 : (int) (rule - p->config_rules);
}

static void apply(const struct policy *p, const struct config_rule *rule, struct settings *out)
{
    if (rule->auth != AUTH_UNSET)
        apply_auth(p, rule, out);
    if (rule->has_cors)
        out->cors = rule->cors;
    if (rule->locale != TOGGLE_UNSET)
        out->locale = rule->locale == TOGGLE_ON;
    for (int k = 0; k < KIND_N; k++)
        if (rule->responses[k])
            out->responses[k] = rule->responses[k];
    if (rule->has_body_limit)
        out->body_limit = rule->body_limit;
    if (rule->upstream_timeout_ms != 0)
        out->upstream_timeout_ms = rule->upstream_timeout_ms;
    if (rule->ratelimit_headers != TOGGLE_UNSET)
        out->ratelimit_headers = rule->ratelimit_headers == TOGGLE_ON;
    if (rule->block != BLOCK_UNSET)
        set_block(p, rule, out);
}

/* Of a rule that can't be judged only what protects counts. False: it has nothing of that. */
static bool apply_protection(const struct policy *p, const struct config_rule *rule, struct settings *out)
{
    if (rule->auth == AUTH_REQUIRED)
        apply_auth(p, rule, out);
    if (rule->block == BLOCK_BLOCK)
        set_block(p, rule, out);
    return rule->auth == AUTH_REQUIRED || rule->block == BLOCK_BLOCK;
}

static void apply_kill_switches(const struct policy *p, struct settings *out)
{
    if (p->kill_switch.auth) {
        out->auth = AUTH_NONE;
        out->accepted = 0;
    }
    if (p->kill_switch.block && out->block == BLOCK_BLOCK)
        out->block = BLOCK_LOG;
}

void policy_default_settings(const struct policy *p, struct settings *out)
{
    *out = (struct settings){
        .auth = AUTH_NONE,
        .locale = p->locale.enabled,
        .body_limit = p->limits.body_limit,
        .upstream_timeout_ms = p->limits.upstream_timeout_ms,
        .body_read_timeout_ms = p->limits.body_read_timeout_ms,
        .block = BLOCK_NONE,
        .block_rule = -1,
    };
    memcpy(out->responses, p->defaults, sizeof out->responses);
}

bool policy_config(const struct policy *p, const struct request_view *r, struct arena *a, struct settings *out, struct rule_hits *hits)
{
    struct expr_candidates candidates;
    struct expr_run run;
    struct settings s;

    if (!expr_run_init(&run, p->config_set, &r->facts, a))
        return false;
    expr_run_worth_asking(&run, &candidates);
    policy_default_settings(p, &s);
    hits->n = 0;
    for (size_t i = 0; i < p->n_config_rules; i++) {
        const struct config_rule *rule = &p->config_rules[i];
        if (!expr_is_candidate(&candidates, rule->program))
            continue;
        enum match m = expr_run(&run, rule->program);
        if (m == MATCH_NO || (m == MATCH_ERROR && !apply_protection(p, rule, &s)))
            continue;
        if (m == MATCH_YES)
            apply(p, rule, &s);
        hits->index[hits->n++] = (uint16_t) i;
    }
    apply_kill_switches(p, &s);
    *out = s;
    return true;
}
