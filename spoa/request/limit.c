/* LIMIT: charges the rate limits that match, in Valkey or in this agent's memory, and refuses when an enforced one is spent. */
#include "spoa/request/request.h"

_Static_assert(RATE_CALLS_MAX >= POLICY_SITE_WIDE_MAX + POLICY_LIMITED_RULES_MAX, "one command carries all rules of a request");

static uint32_t seconds_up(uint64_t ms)
{
    return (uint32_t) ((ms + 999) / 1000);
}

static uint64_t now_ms(const struct request *r)
{
    return clock_mono_us(r->context->settings.clock) / 1000;
}

static void count(struct request *r, enum metric metric)
{
    counter_add(&r->context->counters.plain[metric], 1);
}

static const struct rate_rule *rule_of(const struct request *r, size_t i)
{
    return &r->policy->rate_rules[r->limits.choice.index[i]];
}

static bool calls_make(struct request *r)
{
    struct request_limits *l = &r->limits;
    char *storage = arena_take_bytes(&r->arena, RATE_SUBJECT_MAX);
    if (storage == NULL)
        return false;
    for (size_t i = 0; i < l->choice.n; i++) {
        const struct rate_rule *rule = rule_of(r, i);
        struct buf text;
        buf_init(&text, storage, RATE_SUBJECT_MAX);
        policy_limit_subject(rule, &r->view, &text);
        l->calls[i] = (struct rate_call){.params = &rule->params, .name = &rule->name, .enforce = l->choice.enforce[i]};
        if (text.full || !rate_subject_hash(buf_str(&text), &l->calls[i].subject))
            return false;
    }
    return true;
}

/* What the rules say together. */
struct judgement {
    const struct rate_call *worst; /* of the enforced ones that refuse */
    const struct rate_rule *refusing, *shadow, *closed;
};

/* The store could not be asked about rule i: its fail_mode decides. True: calls[i].verdict holds, counted in this agent. A shadow rule never
 * fails closed. */
static bool fail(struct request *r, size_t i, struct judgement *j)
{
    struct rate_call *call = &r->limits.calls[i];
    const struct rate_rule *rule = rule_of(r, i);
    const struct request_settings *s = &r->context->settings;

    if (rule->fail_mode == FAIL_LOCAL && rate_shares_check(s->shares, rule->id, call, s->fleet_size, now_ms(r))) {
        count(r, METRIC_LIMIT_FAILED_LOCAL);
        return true;
    }
    if (rule->fail_mode == FAIL_CLOSED && call->enforce) {
        count(r, METRIC_LIMIT_FAILED_CLOSED);
        j->closed = rule;
    } else {
        count(r, METRIC_LIMIT_FAILED_OPEN);
    }
    return false;
}

/* Several refusals: the client is told the longest wait, since only after it none of them stands in the way. */
static void note(struct request *r, size_t i, struct judgement *j)
{
    const struct rate_call *call = &r->limits.calls[i];

    if (call->counted == RATE_UNTRACKED)
        count(r, METRIC_LIMIT_UNTRACKED);
    if (call->verdict.allowed)
        return;
    if (!call->enforce) {
        r->verdict.decision = DECISION_WOULD_BLOCK;
        if (j->shadow == NULL)
            j->shadow = rule_of(r, i);
    } else if (j->worst == NULL || call->verdict.retry_after_ms > j->worst->verdict.retry_after_ms) {
        j->worst = call;
        j->refusing = rule_of(r, i);
    }
}

/* Verdicts of all rules that were counted, wherever: reports of the enforced ones are left in reports. */
static size_t gather(struct request *r, bool asked, struct judgement *j, struct limit_report reports[static RATE_CALLS_MAX])
{
    size_t n = 0;
    for (size_t i = 0; i < r->limits.choice.n; i++) {
        const struct rate_call *call = &r->limits.calls[i];
        bool readable = asked && call->counted != RATE_UNREADABLE;
        if (asked && !readable)
            count(r, METRIC_LIMIT_UNREADABLE);
        if (!readable && !fail(r, i, j))
            continue;
        note(r, i, j);
        if (call->enforce)
            reports[n++] = (struct limit_report){.rule = rule_of(r, i), .verdict = call->verdict};
    }
    return n;
}

/* asked: the store has answered. A shadow rule is named only where no enforced one refuses. */
static enum step_result judge(struct request *r, bool asked)
{
    struct judgement j = {0};
    struct limit_report reports[RATE_CALLS_MAX];
    size_t n = gather(r, asked, &j, reports);

    if (r->settings.ratelimit_headers && n > 0 && !policy_limit_headers(reports, n, &r->arena, &r->response_edit))
        return request_fail(r, METRIC_INTERNAL);
    r->verdict.rate_rule = j.refusing != NULL ? j.refusing : j.closed != NULL ? j.closed : j.shadow;
    if (j.worst != NULL)
        return request_refuse(r, DECISION_RATE_LIMITED, KIND_RATE_LIMITED, seconds_up(j.worst->verdict.retry_after_ms));
    if (j.closed != NULL)
        return request_refuse(r, DECISION_UNAVAILABLE, KIND_UNAVAILABLE, 1);
    return STEP_NEXT;
}

static void on_answer(struct valkey_waiter *w, enum store_outcome outcome)
{
    struct request *r = (struct request *) (void *) ((char *) w - offsetof(struct request, limits.waiter));
    request_resume(r, judge(r, outcome == STORE_ANSWERED));
}

enum step_result step_limit(struct request *r)
{
    struct request_limits *l = &r->limits;
    if (!policy_select_limits(r->policy, &r->view, &r->arena, &l->choice))
        return request_fail(r, METRIC_INTERNAL);
    counter_add(&r->context->counters.plain[METRIC_LIMIT_CAPPED], l->choice.n_capped);
    if (l->choice.reject_missing_key)
        return request_refuse(r, DECISION_BAD_REQUEST, KIND_BAD_REQUEST, 0);
    if (l->choice.n == 0)
        return STEP_NEXT;
    if (!calls_make(r))
        return request_fail(r, METRIC_INTERNAL);

    if (r->context->valkey == NULL) {
        rate_store_check(r->context->settings.store, l->calls, l->choice.n, now_ms(r));
        return judge(r, true);
    }
    enum store_outcome outcome;
    l->waiter.done = on_answer;
    return valkey_charge(r->context->valkey, l->calls, l->choice.n, &l->waiter, &outcome) ? STEP_WAIT : judge(r, false);
}
