/* What simulate tells about limits beside those that count the request. */
#include "common/policy/simulate_priv.h"

/* A rule that has no key in this request counts it under the address alone, in a domain of its own. */
static bool finds_key(const struct simulation *s, const struct rate_rule *rule)
{
    char storage[RATE_SUBJECT_MAX];
    struct buf subject;

    buf_init(&subject, storage, sizeof storage);
    policy_limit_subject(rule, &s->view, &subject);
    return subject.len == 0 || subject.p[0] != RATE_DOMAIN_FALLBACK_IP;
}

bool simulate_has_key(const struct simulation *s, const struct rate_rule *rule)
{
    return rule->on_missing_key == MISSING_FALLBACK_IP || finds_key(s, rule);
}

bool simulate_has_value(const struct simulation *s, const struct rate_rule *rule)
{
    struct rate_rule by_value = *rule;

    by_value.key[0] = rule->distinct_of;
    by_value.n_key = 1;
    return rule->algorithm != RATE_DISTINCT || finds_key(s, &by_value);
}

static bool is_quiet(const struct simulation *s, const struct rate_rule *rule)
{
    bool enforced = rule->action == ACTION_BLOCK && !s->policy->kill_switch.rate_limit;

    return rule->count_statuses || (s->limits.reject_missing_key && enforced && rule->on_missing_key == MISSING_REJECT && !simulate_has_key(s, rule));
}

bool simulate_find_quiet_limits(struct simulation *s, struct arena *a)
{
    struct expr_run run;

    if (!expr_run_init(&run, s->policy->rate_set, &s->view.facts, a))
        return false;
    for (size_t i = 0; i < s->policy->n_rate_rules; i++)
        if (is_quiet(s, &s->policy->rate_rules[i]) && expr_run(&run, s->policy->rate_rules[i].program) != MATCH_NO)
            s->quiet_limits.index[s->quiet_limits.n++] = (uint16_t) i;
    return true;
}
