/* LIMIT: charges the rate limits that match, in Valkey or in this agent's memory, and refuses when an enforced one is spent. */
#include "spoa/record/counts.h"
#include "spoa/request/request.h"

_Static_assert(RATE_CALLS_MAX >= POLICY_SITE_WIDE_MAX + POLICY_LIMITED_RULES_MAX, "one command carries all rules of a request");

static uint64_t now_ms(const struct request *r)
{
    return clock_mono_us(r->context->settings.clock) / 1000;
}

/* The time that rules expire by; 0 where none does. */
static int64_t expiry_ms(const struct request *r)
{
    return r->policy->expires ? (int64_t) clock_real_ms(r->context->settings.clock) : 0;
}

static void count(struct request *r, enum metric metric)
{
    counter_add(&r->context->counters.plain[metric], 1);
}

static const struct rate_rule *rule_of(const struct request *r, size_t i)
{
    return &r->policy->rate_rules[r->limits.choice.index[i]];
}

/* --- What the record says --- */

enum limit_letter {
#define RULE_COUNT_ROW(phase, id, letter, name, meaning) LETTER_##phase##_##id = letter,
#include "schemas/rule_counts.def"
#undef RULE_COUNT_ROW
};

void request_limits_forget(struct request_limits *l)
{
    l->n_notes = l->n_not_noted = 0;
    l->sampled = false;
    l->counts.n = 0;
}

static struct limit_note *note_add(struct request_limits *l, const struct rate_rule *rule)
{
    struct limit_note *note = &l->notes[l->n_notes++];
    note->rule = rule;
    note->n_letters = 0;
    note->subject = NULL;
    return note;
}

static void letter_add(struct limit_note *note, enum limit_letter letter)
{
    note->letters[note->n_letters++] = (char) letter;
}

static void note_passed(struct request *r, const struct limit_passed *passed, enum limit_letter letter)
{
    size_t n = passed->n < LIMIT_PASSED_NAMED_MAX ? passed->n : LIMIT_PASSED_NAMED_MAX;
    for (size_t i = 0; i < n; i++)
        letter_add(note_add(&r->limits, &r->policy->rate_rules[passed->index[i]]), letter);
    r->limits.n_not_noted += passed->n - n;
}

/* Behind the rules that were evaluated, which come first where not all find room. */
static void note_all_passed(struct request *r)
{
    note_passed(r, &r->limits.choice.expired, LETTER_RATE_EXPIRED);
    note_passed(r, &r->limits.choice.capped, LETTER_RATE_CAPPED);
}

/* --- The charge --- */

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
    bool any_limited; /* in earnest or not */
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
static void weigh(struct request *r, size_t i, struct limit_note *note, struct judgement *j)
{
    const struct rate_call *call = &r->limits.calls[i];

    letter_add(note, LETTER_RATE_CHECKED);
    if (call->counted == RATE_UNTRACKED)
        count(r, METRIC_LIMIT_UNTRACKED);
    if (call->verdict.allowed)
        return;
    letter_add(note, call->enforce ? LETTER_RATE_LIMITED : LETTER_RATE_WOULD_LIMIT);
    note->subject = &call->subject;
    j->any_limited = true;
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
        struct limit_note *note = note_add(&r->limits, rule_of(r, i));
        bool readable = asked && call->counted != RATE_UNREADABLE;
        if (asked && !readable)
            count(r, METRIC_LIMIT_UNREADABLE);
        if (!readable) {
            letter_add(note, LETTER_RATE_FAILED);
            if (!fail(r, i, j))
                continue;
        }
        weigh(r, i, note, j);
        if (call->enforce)
            reports[n++] = (struct limit_report){.rule = rule_of(r, i), .verdict = call->verdict};
    }
    return n;
}

/* Nothing refuses: the answer will count for the rules that count answers. */
static enum step_result pass(struct request *r)
{
    if (r->policy->counts_answers && !policy_select_counts(r->policy, &r->view, &r->arena, expiry_ms(r), &r->limits.counts))
        return request_fail(r, METRIC_INTERNAL);
    return STEP_NEXT;
}

/* asked: the store has answered. A shadow rule is named only where no enforced one refuses. */
static enum step_result judge(struct request *r, bool asked)
{
    struct judgement j = {0};
    struct limit_report reports[RATE_CALLS_MAX];
    size_t n = gather(r, asked, &j, reports);

    note_all_passed(r);
    if (j.any_limited)
        r->limits.sampled = r->context->n_limited++ % COUNTS_SAMPLED_LIMITS == 0;
    if (r->settings.ratelimit_headers && n > 0 && !policy_limit_headers(reports, n, &r->arena, &r->response_edit))
        return request_fail(r, METRIC_INTERNAL);
    r->verdict.rate_rule = j.refusing != NULL ? j.refusing : j.closed != NULL ? j.closed : j.shadow;
    if (j.worst != NULL)
        return request_refuse(r, DECISION_RATE_LIMITED, KIND_RATE_LIMITED, (uint32_t) rate_seconds_up(j.worst->verdict.retry_after_ms));
    if (j.closed != NULL)
        return request_refuse(r, DECISION_UNAVAILABLE, KIND_UNAVAILABLE, 1);
    return pass(r);
}

static void on_answer(struct valkey_waiter *w, enum store_outcome outcome)
{
    struct request *r = (struct request *) (void *) ((char *) w - offsetof(struct request, limits.waiter));
    request_resume(r, judge(r, outcome == STORE_ANSWERED));
}

/* Nothing is charged. */
static enum step_result refuse_missing_key(struct request *r)
{
    r->verdict.rate_rule = &r->policy->rate_rules[r->limits.choice.rejecting];
    note_add(&r->limits, r->verdict.rate_rule);
    note_all_passed(r);
    return request_refuse(r, DECISION_MISSING_KEY, KIND_BAD_REQUEST, 0);
}

enum step_result step_limit(struct request *r)
{
    struct request_limits *l = &r->limits;
    if (!policy_select_limits(r->policy, &r->view, &r->arena, expiry_ms(r), &l->choice))
        return request_fail(r, METRIC_INTERNAL);
    counter_add(&r->context->counters.plain[METRIC_LIMIT_CAPPED], l->choice.capped.n);
    if (l->choice.reject_missing_key)
        return refuse_missing_key(r);
    if (l->choice.n == 0) {
        note_all_passed(r);
        return pass(r);
    }
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
