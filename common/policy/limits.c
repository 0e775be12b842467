/* The limits that count a request, and the subject that each of them counts. */
#include "common/policy/limits_priv.h"

/* Longer values stand in a subject by their beginning and their digest, which together are longer than any that stands there whole. */
enum { WHOLE_MAX = 512, BEGINNING_LEN = WHOLE_MAX + 1 };

struct str limits_value(const struct key_part *part, const struct expr_facts *f, char number[static LIMITS_NUMBER_MAX])
{
    struct str value = STR_NONE;
    struct buf b;

    switch (part->kind) {
    case KEY_PART_HEADER:
        return expr_facts_header(f, part->name, &value) ? value : STR_NONE;
    case KEY_PART_COOKIE:
        return expr_facts_cookie(f, part->name, &value) ? value : STR_NONE;
    case KEY_PART_QUERY:
        return expr_facts_argument(f, part->name, &value) ? value : STR_NONE;
    case KEY_PART_CLAIM:
        return expr_facts_claim(f, part->name, &value) ? value : STR_NONE;
    case KEY_PART_HOST:
        return f->host;
    case KEY_PART_METHOD:
        return f->method;
    case KEY_PART_COUNTRY:
        return f->viewer.country;
    case KEY_PART_JA4:
        return f->viewer.ja4;
    case KEY_PART_LOCALE:
        return expr_facts_locale(f);
    case KEY_PART_PATH:
        return f->path;
    case KEY_PART_ASNUM:
        buf_init(&b, number, LIMITS_NUMBER_MAX);
        if (f->viewer.has_asnum)
            buf_put_i64(&b, f->viewer.asnum);
        return buf_str(&b);
    case KEY_PART_IP:
    case KEY_PART_CONSTANT:
    case KEY_PART_N:
        break;
    }
    return STR_NONE;
}

static bool has_part(const struct key_part *part, const struct expr_facts *f)
{
    char number[LIMITS_NUMBER_MAX];

    if (part->kind == KEY_PART_IP)
        return f->has_ip;
    return part->kind == KEY_PART_CONSTANT || limits_value(part, f, number).len > 0;
}

bool limits_has_key(const struct rate_rule *rule, const struct expr_facts *f)
{
    for (size_t i = 0; i < rule->n_key; i++)
        if (!has_part(&rule->key[i], f))
            return false;
    return true;
}

/* --- The choice --- */

/* The choice while it is made: which rules, in no order yet. */
struct choosing {
    const struct policy *policy;
    const struct request_view *request;
    struct expr_run run;
    struct expr_candidates candidates;
    bool chosen[POLICY_RULES_MAX];
    int64_t now_ms;
    uint16_t n_slots;
    struct limit_choice *out;
};

static bool is_enforced(const struct policy *p, const struct rate_rule *rule)
{
    return rule->action == ACTION_BLOCK && !p->kill_switch.rate_limit;
}

/* A rule without its key is not counted, unless it says what to count instead; neither is one without a value to tell apart. */
static bool can_count(const struct choosing *c, const struct rate_rule *rule)
{
    const struct expr_facts *f = &c->request->facts;

    if (rule->algorithm == RATE_DISTINCT && !has_part(&rule->distinct_of, f))
        return false;
    return rule->on_missing_key == MISSING_FALLBACK_IP || limits_has_key(rule, f);
}

static bool rejects_missing_key(const struct choosing *c, const struct rate_rule *rule)
{
    return rule->on_missing_key == MISSING_REJECT && is_enforced(c->policy, rule) && !limits_has_key(rule, &c->request->facts);
}

/* An expression that can't be judged counts as a match: a limit protects. */
static bool matches(struct choosing *c, const struct rate_rule *rule)
{
    return expr_is_candidate(&c->candidates, rule->program) && expr_run(&c->run, rule->program) != MATCH_NO;
}

static bool has_expired(const struct choosing *c, const struct rate_rule *rule)
{
    return c->now_ms != 0 && rule->expires_at_ms != 0 && c->now_ms >= rule->expires_at_ms;
}

static void pass_over(struct limit_passed *passed, size_t i)
{
    if (passed->n < LIMIT_PASSED_NAMED_MAX)
        passed->index[passed->n] = (uint16_t) i;
    passed->n++;
}

static void consider(struct choosing *c, size_t i)
{
    const struct rate_rule *rule = &c->policy->rate_rules[i];
    bool expired = has_expired(c, rule);

    if (rule->count_statuses && !expired)
        return; /* counts answers, in the edge's own memory */
    if (!rule->site_wide && !matches(c, rule))
        return;
    if (expired) {
        pass_over(&c->out->expired, i);
        return;
    }
    bool rejects = rejects_missing_key(c, rule);
    if (!rejects && !can_count(c, rule))
        return;
    if (!rule->site_wide && c->n_slots == POLICY_LIMITED_RULES_MAX) {
        pass_over(&c->out->capped, i);
        return;
    }
    c->n_slots = (uint16_t) (c->n_slots + (rule->site_wide ? 0 : 1));
    c->chosen[i] = !rejects;
    if (rejects && !c->out->reject_missing_key)
        c->out->rejecting = (uint16_t) i;
    c->out->reject_missing_key = c->out->reject_missing_key || rejects;
}

static bool choosing_begin(struct choosing *c, struct arena *a)
{
    if (!expr_run_init(&c->run, c->policy->rate_set, &c->request->facts, a))
        return false;
    expr_run_worth_asking(&c->run, &c->candidates);
    return true;
}

bool policy_select_limits(const struct policy *p, const struct request_view *r, struct arena *a, int64_t now_ms, struct limit_choice *out)
{
    struct limit_choice choice = {0};
    struct choosing c = {.policy = p, .request = r, .now_ms = now_ms, .out = &choice};

    if (!choosing_begin(&c, a))
        return false;
    for (size_t i = 0; i < p->n_rate_rules; i++)
        if (is_enforced(p, &p->rate_rules[i]))
            consider(&c, i);
    for (size_t i = 0; i < p->n_rate_rules; i++)
        if (!is_enforced(p, &p->rate_rules[i]))
            consider(&c, i);

    for (size_t i = 0; i < p->n_rate_rules && !choice.reject_missing_key; i++) {
        if (!c.chosen[i])
            continue;
        choice.index[choice.n] = (uint16_t) i;
        choice.enforce[choice.n] = is_enforced(p, &p->rate_rules[i]);
        choice.n++;
    }
    *out = choice;
    return true;
}

bool policy_select_counts(const struct policy *p, const struct request_view *r, struct arena *a, int64_t now_ms, struct count_choice *out)
{
    struct choosing c = {.policy = p, .request = r, .now_ms = now_ms};
    struct count_choice choice = {0};
    char *storage = arena_take_bytes(a, RATE_SUBJECT_MAX);

    if (!storage || !choosing_begin(&c, a))
        return false;
    for (size_t i = 0; i < p->n_rate_rules && choice.n < POLICY_COUNTING_RULES_MAX; i++) {
        const struct rate_rule *rule = &p->rate_rules[i];
        struct buf subject;
        if (!rule->count_statuses || has_expired(&c, rule) || !matches(&c, rule) || !can_count(&c, rule))
            continue;
        buf_init(&subject, storage, RATE_SUBJECT_MAX);
        policy_limit_subject(rule, r, &subject);
        if (subject.full || !rate_subject_hash(buf_str(&subject), &choice.subject[choice.n]))
            return false;
        choice.index[choice.n++] = (uint16_t) i;
    }
    *out = choice;
    return true;
}

/* --- The subject --- */

static void put_value(struct buf *b, struct str value)
{
    char storage[BEGINNING_LEN + sizeof(struct rate_subject)];
    struct rate_subject digest;
    struct buf shortened;

    if (value.len <= WHOLE_MAX) {
        rate_subject_value(b, value);
        return;
    }
    buf_init(&shortened, storage, sizeof storage);
    buf_put(&shortened, str_sub(value, 0, BEGINNING_LEN));
    if (!rate_subject_hash(value, &digest)) {
        b->full = true;
        return;
    }
    buf_put(&shortened, (struct str){(const char *) digest.b, sizeof digest.b});
    rate_subject_value(b, buf_str(&shortened));
}

void policy_limit_subject(const struct rate_rule *rule, const struct request_view *r, struct buf *b)
{
    const struct expr_facts *f = &r->facts;
    char number[LIMITS_NUMBER_MAX];

    if (!limits_has_key(rule, f)) {
        rate_subject_begin(b, RATE_DOMAIN_FALLBACK_IP);
        if (f->has_ip)
            rate_subject_ip(b, &f->ip);
        else
            rate_subject_value(b, STR_NONE);
        return;
    }
    rate_subject_begin(b, RATE_DOMAIN_KEY);
    for (size_t i = 0; i < rule->n_key; i++) {
        if (rule->key[i].kind == KEY_PART_IP)
            rate_subject_ip(b, &f->ip);
        else
            put_value(b, limits_value(&rule->key[i], f, number));
    }
}
