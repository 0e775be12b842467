/* What a policy decides for one request: its settings, and the limits that count it. */
#include "common/policy/policy.h"

static void apply(const struct config_rule *rule, struct settings *out)
{
    if (rule->block != BLOCK_UNSET)
        out->block = rule->block;
    if (rule->ratelimit_headers != TOGGLE_UNSET)
        out->ratelimit_headers = rule->ratelimit_headers == TOGGLE_ON;
    for (int k = 0; k < KIND_N; k++)
        if (rule->responses[k])
            out->responses[k] = rule->responses[k];
}

bool policy_config(const struct policy *p, const struct request_view *r, struct arena *a, struct settings *out, struct rule_hits *hits)
{
    struct expr_run run;
    struct settings s = {.block = BLOCK_NONE};

    if (!expr_run_init(&run, p->config_set, &r->facts, a))
        return false;
    memcpy(s.responses, p->defaults, sizeof s.responses);
    hits->n = 0;
    for (size_t i = 0; i < p->n_config_rules; i++) {
        const struct config_rule *rule = &p->config_rules[i];
        enum match m = expr_run(&run, rule->program);
        /* Of a rule that can't be judged only what protects counts: its block. */
        if (m == MATCH_NO || (m == MATCH_ERROR && rule->block != BLOCK_BLOCK))
            continue;
        if (m == MATCH_YES)
            apply(rule, &s);
        else
            s.block = BLOCK_BLOCK;
        hits->index[hits->n++] = (uint16_t) i;
    }
    if (p->kill_switch.block && s.block == BLOCK_BLOCK)
        s.block = BLOCK_LOG;
    *out = s;
    return true;
}

/* The choice while it is made: which rules, in no order yet. */
struct choosing {
    const struct policy *policy;
    const struct request_view *request;
    struct expr_run run;
    bool chosen[POLICY_RULES_MAX];
    bool reject;
    uint16_t n_slots, n_capped;
};

static bool is_enforced(const struct policy *p, const struct rate_rule *rule)
{
    return rule->action == ACTION_BLOCK && !p->kill_switch.rate_limit;
}

/* A rule without its key is not counted, unless it says what to count instead. */
static bool has_key(const struct choosing *c, const struct rate_rule *rule)
{
    return c->request->facts.has_ip || rule->on_missing_key == MISSING_FALLBACK_IP;
}

static bool rejects_missing_key(const struct choosing *c, const struct rate_rule *rule)
{
    return !has_key(c, rule) && rule->on_missing_key == MISSING_REJECT && is_enforced(c->policy, rule);
}

static void consider(struct choosing *c, size_t i)
{
    const struct rate_rule *rule = &c->policy->rate_rules[i];
    bool rejects = rejects_missing_key(c, rule);

    /* An expression that can't be judged counts as a match: a limit protects. */
    if (!rule->site_wide && expr_run(&c->run, rule->program) == MATCH_NO)
        return;
    if (!has_key(c, rule) && !rejects)
        return;
    if (!rule->site_wide && c->n_slots == POLICY_LIMITED_RULES_MAX) {
        c->n_capped++;
        return;
    }
    c->n_slots = (uint16_t) (c->n_slots + (rule->site_wide ? 0 : 1));
    c->chosen[i] = !rejects;
    c->reject = c->reject || rejects;
}

bool policy_select_limits(const struct policy *p, const struct request_view *r, struct arena *a, struct limit_choice *out)
{
    struct choosing c = {.policy = p, .request = r};

    if (!expr_run_init(&c.run, p->rate_set, &r->facts, a))
        return false;
    for (size_t i = 0; i < p->n_rate_rules; i++)
        if (is_enforced(p, &p->rate_rules[i]))
            consider(&c, i);
    for (size_t i = 0; i < p->n_rate_rules; i++)
        if (!is_enforced(p, &p->rate_rules[i]))
            consider(&c, i);

    *out = (struct limit_choice){.n_capped = c.n_capped, .reject_missing_key = c.reject};
    for (size_t i = 0; i < p->n_rate_rules && !c.reject; i++) {
        if (!c.chosen[i])
            continue;
        out->index[out->n] = (uint16_t) i;
        out->enforce[out->n] = is_enforced(p, &p->rate_rules[i]);
        out->n++;
    }
    return true;
}

void policy_limit_subject(const struct rate_rule *rule, const struct request_view *r, struct buf *b)
{
    (void) rule; /* every rule of this build is keyed on the address */
    if (r->facts.has_ip) {
        rate_subject_begin(b, RATE_DOMAIN_KEY);
        rate_subject_ip(b, &r->facts.ip);
    } else {
        rate_subject_begin(b, RATE_DOMAIN_FALLBACK_IP);
        rate_subject_value(b, STR_NONE);
    }
}
