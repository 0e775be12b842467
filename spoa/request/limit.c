/* LIMIT: charges the rate limits that match and refuses when an enforced one is spent. */
#include "spoa/request/request.h"

enum { LIMITS_MAX = POLICY_SITE_WIDE_MAX + POLICY_LIMITED_RULES_MAX };

static uint32_t seconds_up(uint64_t ms)
{
    return (uint32_t) ((ms + 999) / 1000);
}

static bool calls_make(struct request *r, const struct limit_choice *choice, struct rate_call calls[static LIMITS_MAX])
{
    char *storage = arena_take_bytes(&r->arena, RATE_SUBJECT_MAX);
    if (storage == NULL)
        return false;
    for (size_t i = 0; i < choice->n; i++) {
        const struct rate_rule *rule = &r->policy->rate_rules[choice->index[i]];
        struct buf subject;
        buf_init(&subject, storage, RATE_SUBJECT_MAX);
        policy_limit_subject(rule, &r->view, &subject);
        calls[i] = (struct rate_call){.params = &rule->params, .enforce = choice->enforce[i]};
        if (subject.full || !rate_key_make(&rule->params, rule->id, buf_str(&subject), &calls[i].key))
            return false;
    }
    return true;
}

/* Several refusals: the client is told the longest wait, since only after it none of them stands in the way. A shadow rule is
 * named only where no enforced one refuses. */
static enum step_result judge(struct request *r, const struct limit_choice *choice, const struct rate_call *calls)
{
    const struct rate_call *worst = NULL;
    for (size_t i = 0; i < choice->n; i++) {
        const struct rate_rule *rule = &r->policy->rate_rules[choice->index[i]];
        if (!calls[i].tracked)
            counter_add(&r->context->counters.plain[METRIC_LIMIT_UNTRACKED], 1);
        if (calls[i].verdict.allowed)
            continue;
        if (!calls[i].enforce) {
            r->verdict.decision = DECISION_WOULD_BLOCK;
            if (worst == NULL && r->verdict.rate_rule == NULL)
                r->verdict.rate_rule = rule;
        } else if (worst == NULL || calls[i].verdict.retry_after_ms > worst->verdict.retry_after_ms) {
            worst = &calls[i];
            r->verdict.rate_rule = rule;
        }
    }
    if (worst == NULL)
        return STEP_NEXT;
    return request_refuse(r, DECISION_RATE_LIMITED, KIND_RATE_LIMITED, seconds_up(worst->verdict.retry_after_ms));
}

enum step_result step_limit(struct request *r)
{
    struct limit_choice choice;
    if (!policy_select_limits(r->policy, &r->view, &r->arena, &choice))
        return request_fail(r, METRIC_INTERNAL);
    counter_add(&r->context->counters.plain[METRIC_LIMIT_CAPPED], choice.n_capped);
    if (choice.reject_missing_key)
        return request_refuse(r, DECISION_BAD_REQUEST, KIND_BAD_REQUEST, 0);
    if (choice.n == 0)
        return STEP_NEXT;

    struct rate_call calls[LIMITS_MAX];
    if (!calls_make(r, &choice, calls))
        return request_fail(r, METRIC_INTERNAL);
    rate_store_check(r->context->store, calls, choice.n, clock_mono_us(r->context->clock) / 1000);
    return judge(r, &choice, calls);
}
