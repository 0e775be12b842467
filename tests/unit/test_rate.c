/* The token bucket: its arithmetic against rows of data and against a model written another way, and the keys of counters. */
#include <CUnit/CUnit.h>
#include <stdio.h>

#include "common/base/codec.h"
#include "common/rate/rate.h"
#include "tests/unit/cases.h"

static uint64_t number(const json_t *row, const char *name, uint64_t otherwise)
{
    const json_t *value = json_object_get(row, name);
    return value ? (uint64_t) json_integer_value(value) : otherwise;
}

static void check_step(const json_t *row, const json_t *step, struct rate_params p, struct rate_state *s, bool *fresh)
{
    struct rate_verdict v = {0};
    bool wanted = json_is_true(json_object_get(step, "allowed"));

    p.burst = number(step, "burst", p.burst);
    p.limit = number(step, "limit", p.limit);
    for (uint64_t n = number(step, "times", 1); n; n--) {
        v = rate_step(&p, s, *fresh, number(step, "at", 0));
        *fresh = false;
        if (v.allowed != wanted)
            break;
    }
    bool ok = CASE_CHECK(step, v.allowed == wanted);
    ok = CASE_CHECK(step, v.remaining == number(step, "remaining", v.remaining)) && ok;
    ok = CASE_CHECK(step, v.retry_after_ms == number(step, "retry_after_ms", v.retry_after_ms)) && ok;
    ok = CASE_CHECK(step, v.reset_ms == number(step, "reset_ms", v.reset_ms)) && ok;
    if (!ok)
        fprintf(stderr, "    of \"%s\": remaining %ju, retry after %ju, reset %ju\n", json_string_value(json_object_get(row, "name")),
                (uintmax_t) v.remaining, (uintmax_t) v.retry_after_ms, (uintmax_t) v.reset_ms);
}

static void step_rows(void)
{
    json_t *rows = cases_load("tests/cases/rate/step.json"), *row, *step;
    size_t i, j;

    json_array_foreach(rows, i, row)
    {
        struct rate_params p = {number(row, "limit", 0), number(row, "burst", 0), number(row, "period_ms", 0)};
        struct rate_state s = {0};
        bool fresh = true;
        json_array_foreach(json_object_get(row, "steps"), j, step) check_step(row, step, p, &s, &fresh);
    }
    json_decref(rows);
}

static void params_rows(void)
{
    json_t *rows = cases_load("tests/cases/rate/params.json"), *row;
    size_t i;

    json_array_foreach(rows, i, row)
    {
        struct rate_params p = {number(row, "limit", 0), number(row, "burst", 0), number(row, "period_ms", 0)};
        struct str says = case_str(row, "says");
        struct err e;
        err_clear(&e);
        bool ok = rate_params_ok(&p, "/here", &e);
        CASE_CHECK(row, ok == json_is_true(json_object_get(row, "ok")));
        CASE_CHECK(row, ok || (e.code == ERR_BAD_VALUE && strcmp(e.path, "/here") == 0 && str_find(str_of(e.text), says) != SIZE_MAX));
    }
    json_decref(rows);
}

/* xorshift64*: repeatable from its seed. */
static uint64_t draw(uint64_t *seed, uint64_t below)
{
    *seed ^= *seed >> 12;
    *seed ^= *seed << 25;
    *seed ^= *seed >> 27;
    return (*seed * 2685821657736338717U >> 11) % below;
}

/* The model keeps no content but the instant at which the bucket is full again, as a fraction of a millisecond over `limit`, in 128 bits:
 * a request moves that instant by one period/limit and passes when it then lies at most burst of them ahead. */
struct model {
    unsigned __int128 full_at; /* in 1/limit ms */
    uint64_t seen_ms;
};

static uint64_t ceil_ms(unsigned __int128 span, uint64_t limit)
{
    return (uint64_t) ((span + limit - 1) / limit);
}

static struct rate_verdict model_step(struct model *m, const struct rate_params *p, uint64_t at_ms)
{
    struct rate_verdict v = {0};

    if (at_ms > m->seen_ms)
        m->seen_ms = at_ms;
    unsigned __int128 seen = (unsigned __int128) m->seen_ms * p->limit, asked = (unsigned __int128) at_ms * p->limit;
    unsigned __int128 horizon = seen + (unsigned __int128) p->burst * p->period_ms;
    if (m->full_at < seen)
        m->full_at = seen;
    v.allowed = m->full_at + p->period_ms <= horizon;
    if (v.allowed)
        m->full_at += p->period_ms;
    else
        v.retry_after_ms = ceil_ms(m->full_at + p->period_ms - horizon, p->limit) + ceil_ms(seen - asked, p->limit);
    v.remaining = (uint64_t) ((horizon - m->full_at) / p->period_ms);
    v.reset_ms = ceil_ms(m->full_at - seen, p->limit) + ceil_ms(seen - asked, p->limit);
    return v;
}

static struct rate_params draw_params(uint64_t *seed)
{
    static const uint64_t tens[] = {1, 10, 100, 1000, 10000, 100000, 1000000};
    struct rate_params p = {.period_ms = draw(seed, 2) ? 1000 : 1000 + draw(seed, 86399001)};

    p.limit = 1 + draw(seed, tens[draw(seed, 7)]);
    p.burst = 1 + draw(seed, draw(seed, 3) ? 10 : 26062497);
    return p;
}

static uint64_t draw_time(uint64_t *seed, uint64_t now_ms, const struct rate_params *p)
{
    uint64_t a_token_ms = p->period_ms / p->limit + 2;

    switch (draw(seed, 8)) {
    case 0:
        return now_ms - draw(seed, now_ms < 5000 ? now_ms + 1 : 5000); /* the clock steps back */
    case 1:
        return now_ms + draw(seed, 3 * p->period_ms);
    case 2:
    case 3:
        return now_ms;
    default:
        return now_ms + draw(seed, a_token_ms);
    }
}

static bool equal(struct rate_verdict a, struct rate_verdict b)
{
    return a.allowed == b.allowed && a.remaining == b.remaining && a.retry_after_ms == b.retry_after_ms && a.reset_ms == b.reset_ms;
}

/* Waiting exactly what a refusal says passes, and one millisecond less does not. */
static bool wait_is_exact(const struct rate_params *p, struct rate_state s, uint64_t now_ms, uint64_t retry_after_ms)
{
    struct rate_state early = s, late = s;
    return !rate_step(p, &early, false, now_ms + retry_after_ms - 1).allowed && rate_step(p, &late, false, now_ms + retry_after_ms).allowed;
}

static bool run_sequence(uint64_t seed)
{
    struct rate_params p = draw_params(&seed);
    uint64_t now_ms = draw(&seed, 2) ? draw(&seed, 1000) : draw(&seed, (uint64_t) 1 << 45);
    struct rate_state s = {0};
    struct model m = {0};

    if (!rate_params_ok(&p, "", &(struct err){0}))
        return false;
    for (int i = 0; i < 200; i++) {
        now_ms = draw_time(&seed, now_ms, &p);
        struct rate_verdict want = model_step(&m, &p, now_ms), got = rate_step(&p, &s, i == 0, now_ms);
        if (!equal(want, got) || (!got.allowed && !wait_is_exact(&p, s, now_ms, got.retry_after_ms)) || got.retry_after_ms > got.reset_ms)
            return false;
    }
    return true;
}

static void refusals_leave_no_trace(void)
{
    size_t n_refused = 0;

    for (uint64_t seed = 1; seed <= 500; seed++) {
        uint64_t x = seed * 0x9e3779b97f4a7c15U, now_ms = draw(&x, (uint64_t) 1 << 45);
        struct rate_params p = draw_params(&x);
        struct rate_state s = {0};
        for (int i = 0; i < 50; i++) {
            struct rate_state before = s;
            now_ms = draw_time(&x, now_ms, &p);
            if (rate_step(&p, &s, i == 0, now_ms).allowed)
                continue;
            n_refused++;
            CU_ASSERT(s.a == before.a && s.b == before.b);
        }
    }
    CU_ASSERT(n_refused > 1000);
}

static void model_agrees(void)
{
    for (uint64_t seed = 1; seed <= 3000; seed++) {
        bool agrees = run_sequence(seed * 0x9e3779b97f4a7c15U);
        CU_ASSERT(agrees);
        if (!agrees) {
            fprintf(stderr, "\n    seed %ju\n", (uintmax_t) seed);
            return;
        }
    }
}

static void build_subject(const json_t *row, struct buf *b)
{
    struct str ip = case_str(row, "ip"), fallback = case_str(row, "fallback_ip");
    struct addr a;
    json_t *value;
    size_t i;

    rate_subject_begin(b, fallback.len ? RATE_DOMAIN_FALLBACK_IP : RATE_DOMAIN_KEY);
    if (ip.len + fallback.len) {
        CU_ASSERT_FATAL(addr_parse(ip.len ? ip : fallback, &a));
        rate_subject_ip(b, &a);
    }
    json_array_foreach(json_object_get(row, "values"), i, value) rate_subject_value(b, str_of(json_string_value(value)));
}

static void key_rows(void)
{
    json_t *rows = cases_load("tests/cases/rate/keys.json"), *row;
    struct arena a;
    size_t i;

    arena_init(&a, 4096, 65536);

    json_array_foreach(rows, i, row)
    {
        char storage[RATE_SUBJECT_MAX], subject[256], text[RATE_KEY_TEXT_MAX];
        struct rate_params p = {.limit = 1, .burst = 1, .period_ms = number(row, "period_ms", 0)};
        struct rate_name name;
        struct rate_subject hashed;
        struct buf b, key;
        buf_init(&key, text, sizeof text);
        buf_init(&b, storage, sizeof storage);
        build_subject(row, &b);
        CASE_CHECK(row, str_eq(buf_str(&b), case_bytes(row, "subject", subject, sizeof subject)));
        CASE_CHECK(row, rate_name_make(&p, case_str(row, "rule"), &a, &name) && rate_subject_hash(buf_str(&b), &hashed));
        rate_key_put(&key, &name, &hashed);
        CASE_CHECK(row, str_eq(buf_str(&key), case_str(row, "key")));
    }
    arena_release(&a);
    json_decref(rows);
}

static void large_subject(void)
{
    static char storage[RATE_SUBJECT_MAX], value[RATE_SUBJECT_MAX + 1];
    struct buf b;

    buf_init(&b, storage, sizeof storage);
    rate_subject_begin(&b, RATE_DOMAIN_KEY);
    rate_subject_value(&b, (struct str){value, RATE_SUBJECT_MAX - 5});
    CU_ASSERT_FALSE(b.full);
    rate_subject_value(&b, STR(""));
    CU_ASSERT(b.full);
    buf_init(&b, storage, sizeof storage);
    rate_subject_value(&b, (struct str){value, RATE_SUBJECT_MAX + 1});
    CU_ASSERT(b.full);
}

static void long_rule_id(void)
{
    struct rate_params p = {1, 1, 86400000};
    struct rate_name name = {.prefix = STR("untouched")};
    struct rate_subject subject = {{0}};
    char id[200], text[RATE_KEY_TEXT_MAX];
    struct arena a;
    struct buf key;

    arena_init(&a, 4096, 65536);
    buf_init(&key, text, sizeof text);
    memset(id, 'a', sizeof id);
    CU_ASSERT_FALSE(rate_name_make(&p, (struct str){id, sizeof id}, &a, &name));
    CU_ASSERT(str_eq(name.prefix, STR("untouched")));
    CU_ASSERT(rate_name_make(&p, (struct str){id, 64}, &a, &name));
    rate_key_put(&key, &name, &subject);
    CU_ASSERT_FALSE(key.full);
    arena_release(&a);
}

void test_rate_register(void)
{
    CU_pSuite s = CU_add_suite("rate", NULL, NULL);
    CU_add_test(s, "a token bucket counts as its rows of data say", step_rows);
    CU_add_test(s, "a bucket that could not be counted exactly is refused with the largest burst that fits", params_rows);
    CU_add_test(s, "random requests are judged as an exact model judges them, and waiting Retry-After passes to the millisecond", model_agrees);
    CU_add_test(s, "a refused request leaves the state as it was, so that a blocked subject costs no write", refusals_leave_no_trace);
    CU_add_test(s, "a subject and its key have the published bytes, so no value can spell another client's counter", key_rows);
    CU_add_test(s, "a subject that is too large is refused, not cut", large_subject);
    CU_add_test(s, "a rule id that does not fit gives no key, not a shared one", long_rule_id);
}
