/* The counters of fail_mode local: a share of each limit, a bounded part for each rule, and counts that outlive a publish. */
#include <CUnit/CUnit.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include "common/rate/shares.h"

static const struct rate_name name;

static struct rate_shares *new_shares(size_t max_keys)
{
    struct rate_shares *s = NULL;
    struct err e;

    err_clear(&e);
    CU_ASSERT_FATAL(rate_shares_new(&s, max_keys, &e));
    return s;
}

static void set(struct rate_shares *s, const struct str *ids, size_t n)
{
    struct err e;
    err_clear(&e);
    CU_ASSERT_FATAL(rate_shares_set(s, ids, n, &e));
}

static struct rate_call call_of(const struct rate_params *p, uint64_t key)
{
    struct rate_call call = {.params = p, .name = &name, .enforce = true};
    key *= 0x9e3779b97f4a7c15U;
    memcpy(call.subject.b, &key, sizeof key);
    return call;
}

static struct rate_call ask(struct rate_shares *s, struct str id, const struct rate_params *p, uint64_t key, uint64_t fleet_size, uint64_t now_ms)
{
    struct rate_call call = call_of(p, key);
    CU_ASSERT(rate_shares_check(s, id, &call, fleet_size, now_ms));
    CU_ASSERT_PTR_EQUAL(call.params, p);
    return call;
}

static unsigned n_allowed(struct rate_shares *s, struct str id, const struct rate_params *p, uint64_t fleet_size, uint64_t now_ms, unsigned n)
{
    unsigned sum = 0;
    while (n--)
        sum += ask(s, id, p, 1, fleet_size, now_ms).verdict.allowed;
    return sum;
}

static const struct str ab[] = {{"a", 1}, {"b", 1}}, bc[] = {{"b", 1}, {"c", 1}}, abc[] = {{"c", 1}, {"a", 1}, {"b", 1}};

static void whole_share(void)
{
    static const struct rate_params p = {60, 30, 60000};
    struct rate_shares *s = new_shares(1000);

    set(s, ab, 2);
    CU_ASSERT_EQUAL(n_allowed(s, ab[0], &p, 3, 5000, 50), 10);
    /* 60 a minute among three: one in three seconds. */
    struct rate_call refused = ask(s, ab[0], &p, 1, 3, 5000);
    CU_ASSERT_EQUAL(refused.verdict.retry_after_ms, 3000);
    CU_ASSERT_EQUAL(n_allowed(s, ab[0], &p, 3, 7999, 5), 0);
    CU_ASSERT_EQUAL(n_allowed(s, ab[0], &p, 3, 8000, 5), 1);
    CU_ASSERT_EQUAL(n_allowed(s, ab[1], &p, 1, 5000, 50), 30);
    rate_shares_free(&s);
    CU_ASSERT_PTR_NULL(s);
}

static void exact_sum(void)
{
    static const struct rate_params p = {100, 7, 1000};
    enum { FLEET = 7, N_PERIODS = 20 };
    unsigned sum = 0;

    for (unsigned agent = 0; agent < FLEET; agent++) {
        struct rate_shares *s = new_shares(100);
        set(s, ab, 1);
        for (uint64_t now_ms = 0; now_ms <= N_PERIODS * 1000; now_ms++)
            sum += ask(s, ab[0], &p, 1, FLEET, now_ms).verdict.allowed;
        rate_shares_free(&s);
    }
    /* 100 is no multiple of 7: a share cut to whole tokens would pass 98 in each period. */
    CU_ASSERT_EQUAL(sum, N_PERIODS * 100 / FLEET * FLEET + FLEET);
}

static void extreme_shares(void)
{
    static const struct rate_params largest[] = {{1, 26062497, 86400000}, {1000000000, 26062497, 86400000}, {1, 1, 86400000}, {1, 9999, 86400000}, {1, 1000000000, 1000}};
    static const uint64_t fleets[] = {0, 1, 2, 9999, 10000, 10001, UINT64_MAX};

    for (size_t i = 0; i < sizeof largest / sizeof *largest; i++) {
        const struct rate_params *p = &largest[i];
        for (size_t f = 0; f < sizeof fleets / sizeof *fleets; f++) {
            uint64_t n = fleets[f] < 1 ? 1 : fleets[f] > RATE_SHARES_FLEET_MAX ? RATE_SHARES_FLEET_MAX : fleets[f];
            uint64_t burst = p->burst / n ? p->burst / n : 1;
            struct rate_shares *s = new_shares(10);
            set(s, ab, 1);
            struct rate_verdict v = ask(s, ab[0], p, 1, fleets[f], 1000).verdict;
            CU_ASSERT(v.allowed && v.remaining == burst - 1 && v.retry_after_ms == 0);
            CU_ASSERT_EQUAL(v.reset_ms, (p->period_ms * n + p->limit - 1) / p->limit);
            rate_shares_free(&s);
        }
    }
}

static void small_burst(void)
{
    static const struct rate_params p = {1, 2, 1000};
    struct rate_shares *s = new_shares(10);

    set(s, ab, 1);
    CU_ASSERT_EQUAL(n_allowed(s, ab[0], &p, 10, 0, 5), 1);
    CU_ASSERT_EQUAL(n_allowed(s, ab[0], &p, 10, 9999, 5), 0);
    CU_ASSERT_EQUAL(n_allowed(s, ab[0], &p, 10, 10000, 5), 1);
    rate_shares_free(&s);
}

static void publish_keeps(void)
{
    static const struct rate_params p = {1, 5, 60000};
    struct rate_shares *s = new_shares(100);

    set(s, ab, 2);
    CU_ASSERT_EQUAL(n_allowed(s, ab[0], &p, 1, 1000, 9), 5);
    CU_ASSERT_EQUAL(n_allowed(s, ab[1], &p, 1, 1000, 9), 5);
    set(s, ab, 2);
    CU_ASSERT_EQUAL(n_allowed(s, ab[0], &p, 1, 1000, 9), 0);
    /* b stays, in another place; a makes room for c. */
    set(s, bc, 2);
    CU_ASSERT_EQUAL(n_allowed(s, ab[1], &p, 1, 1000, 9), 0);
    CU_ASSERT_EQUAL(n_allowed(s, bc[1], &p, 1, 1000, 9), 5);
    rate_shares_free(&s);
}

static void other_number(void)
{
    static const struct rate_params p = {1, 5, 60000};
    struct rate_shares *s = new_shares(100);

    set(s, ab, 2);
    CU_ASSERT_EQUAL(n_allowed(s, ab[0], &p, 1, 1000, 9), 5);
    set(s, abc, 3);
    CU_ASSERT_EQUAL(n_allowed(s, ab[0], &p, 1, 1000, 9), 5);
    set(s, ab, 2);
    CU_ASSERT_EQUAL(n_allowed(s, ab[0], &p, 1, 1000, 9), 5);
    CU_ASSERT_EQUAL(rate_shares_n_keys(s), 1);
    set(s, NULL, 0);
    CU_ASSERT_EQUAL(rate_shares_n_keys(s), 0);
    rate_shares_free(&s);
}

static void fleet_change(void)
{
    static const struct rate_params p = {60, 100, 60000};
    struct rate_shares *s = new_shares(100);

    set(s, ab, 1);
    CU_ASSERT_EQUAL(n_allowed(s, ab[0], &p, 2, 1000, 99), 50);
    CU_ASSERT_EQUAL(n_allowed(s, ab[0], &p, 4, 1000, 99), 0);
    CU_ASSERT_EQUAL(n_allowed(s, ab[0], &p, 1, 1000, 99), 0);
    rate_shares_free(&s);
}

static void even_split(void)
{
    static const struct rate_params p = {1, 1, 60000};
    struct rate_shares *s = new_shares(301);
    unsigned n_tracked = 0;

    set(s, abc, 3);
    for (uint64_t key = 0; key < 1000; key++)
        n_tracked += ask(s, ab[0], &p, key, 1, 1000).counted == RATE_COUNTED;
    CU_ASSERT_EQUAL(n_tracked, 100);
    CU_ASSERT_EQUAL(rate_shares_n_keys(s), 100);
    /* The other rules have their parts untouched, and what does not fit passes. */
    for (uint64_t key = 0; key < 100; key++)
        CU_ASSERT_EQUAL(ask(s, ab[1], &p, key, 1, 1000).counted, RATE_COUNTED);
    CU_ASSERT(ask(s, ab[0], &p, 5000, 1, 1000).verdict.allowed);
    rate_shares_free(&s);
}

/* More rules than keys: each rule has one. */
static void tiny_parts(void)
{
    static const struct rate_params p = {1, 1, 60000};
    struct rate_shares *s = new_shares(1);

    set(s, abc, 3);
    for (size_t i = 0; i < 3; i++)
        CU_ASSERT_EQUAL(n_allowed(s, abc[i], &p, 1, 1000, 3), 1);
    rate_shares_free(&s);
}

static void unknown_rule(void)
{
    static const struct rate_params p = {1, 1, 60000};
    struct rate_shares *s = new_shares(10);
    struct rate_call call = call_of(&p, 1);

    call.verdict.remaining = 4242;
    CU_ASSERT_FALSE(rate_shares_check(s, ab[0], &call, 1, 1000));
    set(s, ab, 2);
    CU_ASSERT_FALSE(rate_shares_check(s, STR("ab"), &call, 1, 1000));
    CU_ASSERT_FALSE(rate_shares_check(s, STR(""), &call, 1, 1000));
    CU_ASSERT_EQUAL(call.verdict.remaining, 4242);
    CU_ASSERT_EQUAL(rate_shares_n_keys(s), 0);
    rate_shares_free(&s);
}

static void refused_sets(void)
{
    static const struct rate_params p = {1, 1, 60000};
    static const struct str twice[] = {{"x", 1}, {"a", 1}, {"x", 1}};
    struct rate_shares *s = NULL;
    struct err e;

    err_clear(&e);
    CU_ASSERT_FALSE(rate_shares_new(&s, 0, &e));
    err_clear(&e);
    CU_ASSERT_FALSE(rate_shares_new(&s, RATE_SHARES_KEYS_MAX + 1, &e));
    CU_ASSERT(e.code == ERR_BAD_VALUE && !s);
    rate_shares_free(&s);

    s = new_shares(10);
    set(s, abc, 3);
    CU_ASSERT_EQUAL(n_allowed(s, ab[0], &p, 1, 1000, 3), 1);
    err_clear(&e);
    CU_ASSERT_FALSE(rate_shares_set(s, twice, 3, &e));
    CU_ASSERT_EQUAL(e.code, ERR_BAD_VALUE);
    CU_ASSERT_EQUAL(n_allowed(s, ab[0], &p, 1, 1000, 3), 0);
    rate_shares_free(&s);
}

enum { N_THREADS = 4, N_REQUESTS = 3000, BURST = 4000, N_PUBLISHES = 200 };

struct crowd {
    struct rate_shares *shares;
    pthread_barrier_t start;
    _Atomic unsigned n_allowed, n_unknown;
};

/* b is in every set of this test, and its number never changes: its count must survive all of them. */
static void *hammer(void *arg)
{
    static const struct rate_params p = {1, BURST, 86400000};
    struct crowd *c = arg;

    pthread_barrier_wait(&c->start);
    for (unsigned i = 0; i < N_REQUESTS; i++) {
        struct rate_call call = call_of(&p, 1), other = call_of(&p, i);
        if (!rate_shares_check(c->shares, ab[1], &call, 1, 1000))
            atomic_fetch_add(&c->n_unknown, 1);
        else if (call.verdict.allowed)
            atomic_fetch_add(&c->n_allowed, 1);
        if (rate_shares_check(c->shares, ab[0], &other, 1, 1000) && !other.verdict.allowed)
            atomic_fetch_add(&c->n_unknown, 1);
    }
    return NULL;
}

static void threads(void)
{
    struct crowd c = {.shares = new_shares(1000)};
    pthread_t ids[N_THREADS];

    set(c.shares, ab, 2);
    pthread_barrier_init(&c.start, NULL, N_THREADS + 1);
    for (size_t i = 0; i < N_THREADS; i++)
        CU_ASSERT_FATAL(pthread_create(&ids[i], NULL, hammer, &c) == 0);
    pthread_barrier_wait(&c.start);
    for (size_t i = 0; i < N_PUBLISHES; i++) {
        set(c.shares, i % 2 ? ab : bc, 2);
        CU_ASSERT(rate_shares_n_keys(c.shares) <= 1000);
    }
    for (size_t i = 0; i < N_THREADS; i++)
        pthread_join(ids[i], NULL);
    CU_ASSERT_EQUAL(c.n_allowed, BURST);
    CU_ASSERT_EQUAL(c.n_unknown, 0);
    pthread_barrier_destroy(&c.start);
    rate_shares_free(&c.shares);
}

void test_shares_register(void)
{
    CU_pSuite s = CU_add_suite("shares", NULL, NULL);
    CU_add_test(s, "an agent of a fleet passes its share of burst and limit, all of it and no more", whole_share);
    CU_add_test(s, "a limit that the fleet does not divide is not rounded: the agents together pass it exactly", exact_sum);
    CU_add_test(s, "the largest limits, periods and fleets are counted without overflow", extreme_shares);
    CU_add_test(s, "a burst smaller than the fleet still passes one request", small_burst);
    CU_add_test(s, "a publish during an outage resets no count of a rule that stays", publish_keeps);
    CU_add_test(s, "counts start fresh when the number of rules changes", other_number);
    CU_add_test(s, "a fleet that changes its size gives nobody a fresh bucket", fleet_change);
    CU_add_test(s, "a rule whose keys clients choose fills only its own part", even_split);
    CU_add_test(s, "with more rules than keys each rule still counts one", tiny_parts);
    CU_add_test(s, "a rule that was not set is not counted, and its call is untouched", unknown_rule);
    CU_add_test(s, "a set that is refused leaves the counts as they were", refused_sets);
    CU_add_test(s, "of concurrent requests exactly burst pass, while policies are published meanwhile", threads);
}
