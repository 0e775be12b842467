/* The store of counters: exact under threads, bounded, and forgetting only what nobody can tell from a new counter. */
#include <CUnit/CUnit.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include "common/rate/rate.h"

static struct rate_store *new_store(size_t max_keys)
{
    struct rate_store *s = NULL;
    struct err e;

    err_clear(&e);
    CU_ASSERT_FATAL(rate_store_new(&s, max_keys, &e));
    return s;
}

static const struct rate_name name;

static struct rate_subject key_of(uint64_t n)
{
    struct rate_subject key = {{0}};
    n *= 0x9e3779b97f4a7c15U;
    memcpy(key.b, &n, sizeof n);
    return key;
}

static struct rate_call ask(struct rate_store *s, uint64_t key, const struct rate_params *p, uint64_t now_ms)
{
    struct rate_call call = {.name = &name, .subject = key_of(key), .params = p, .enforce = true};
    rate_store_check(s, &call, 1, now_ms);
    return call;
}

static struct rate_store_stats stats_of(struct rate_store *s)
{
    struct rate_store_stats st;
    rate_store_stats(s, &st);
    return st;
}

static void independent_calls(void)
{
    static const struct rate_params one = {1, 1, 1000}, ten = {10, 10, 1000};
    struct rate_store *s = new_store(100);

    for (int i = 0; i < 3; i++) {
        struct rate_call calls[] = {{.name = &name, .subject = key_of(1), .params = &one, .enforce = true}, {.name = &name, .subject = key_of(2), .params = &ten, .enforce = true}};
        rate_store_check(s, calls, 2, 1000);
        CU_ASSERT_EQUAL(calls[0].verdict.allowed, i == 0);
        CU_ASSERT(calls[1].verdict.allowed);
        CU_ASSERT_EQUAL(calls[1].verdict.remaining, 9U - (unsigned) i);
    }
    rate_store_free(&s);
    CU_ASSERT_PTR_NULL(s);
}

static void shadow_calls(void)
{
    static const struct rate_params one = {1, 1, 1000}, ten = {10, 10, 1000};
    struct rate_store *s = new_store(100);

    for (unsigned i = 0; i < 10; i++) {
        struct rate_call calls[] = {{.name = &name, .subject = key_of(1), .params = &one, .enforce = false}, {.name = &name, .subject = key_of(2), .params = &ten, .enforce = true}};
        rate_store_check(s, calls, 2, 1000);
        CU_ASSERT_EQUAL(calls[0].verdict.allowed, i == 0);
        CU_ASSERT(calls[1].verdict.allowed);
        CU_ASSERT_EQUAL(calls[1].verdict.remaining, 9 - i);
    }
    CU_ASSERT_FALSE(ask(s, 2, &ten, 1000).verdict.allowed);
    rate_store_free(&s);
}

static void full_store(void)
{
    static const struct rate_params one = {1, 1, 60000};
    struct rate_store *s = new_store(1000);

    for (uint64_t k = 0; k < 1000; k++)
        CU_ASSERT_EQUAL(ask(s, k, &one, 5000).counted, RATE_COUNTED);
    for (uint64_t k = 1000; k < 1100; k++) {
        struct rate_call c = ask(s, k, &one, 5000);
        CU_ASSERT(c.verdict.allowed && c.counted == RATE_UNTRACKED);
        CU_ASSERT_EQUAL(c.verdict.retry_after_ms, 0);
    }
    CU_ASSERT_EQUAL(stats_of(s).n_keys, 1000);
    CU_ASSERT_EQUAL(stats_of(s).n_untracked, 100);
    for (uint64_t k = 0; k < 1000; k++) {
        struct rate_call c = ask(s, k, &one, 5000);
        CU_ASSERT(!c.verdict.allowed && c.counted == RATE_COUNTED);
    }
    rate_store_free(&s);
}

/* Keys that came once, in turn, forever: the store must not fill up with buckets that are full again. */
static void forgetting(void)
{
    static const struct rate_params one = {1, 1, 1000};
    struct rate_store *s = new_store(20000);
    uint64_t n_untracked = 0;

    for (uint64_t k = 0; k < 200000; k++) /* 10 new keys a millisecond, each of them needed for a second */
        n_untracked += ask(s, k, &one, k / 10).counted == RATE_UNTRACKED;
    struct rate_store_stats st = stats_of(s);
    CU_ASSERT_EQUAL(n_untracked, 0);
    CU_ASSERT_EQUAL(st.n_untracked, 0);
    CU_ASSERT_EQUAL(st.n_expired + st.n_keys, 200000);
    CU_ASSERT(st.n_keys < 20000);
    rate_store_free(&s);
}

static void full_store_recovers(void)
{
    static const struct rate_params slow = {1, 1, 60000};
    struct rate_store *s = new_store(2000);
    size_t n_tracked = 0;

    for (uint64_t k = 0; k < 2000; k++)
        CU_ASSERT_EQUAL(ask(s, k, &slow, 0).counted, RATE_COUNTED);
    CU_ASSERT_EQUAL(ask(s, 2000, &slow, 59999).counted, RATE_UNTRACKED);
    for (uint64_t k = 3000; k < 5000; k++)
        n_tracked += ask(s, k, &slow, 60000).counted == RATE_COUNTED;
    CU_ASSERT_EQUAL(n_tracked, 2000);
    rate_store_free(&s);
}

static void memory(void)
{
    static const struct rate_params one = {1, 1, 60000};
    enum { N = 200000 };
    struct rate_store *s = new_store(N);
    size_t empty = stats_of(s).memory_bytes;

    for (uint64_t k = 0; k < N; k++)
        CU_ASSERT_EQUAL(ask(s, k, &one, 0).counted, RATE_COUNTED);
    struct rate_store_stats st = stats_of(s);
    CU_ASSERT_EQUAL(st.n_keys, N);
    CU_ASSERT(st.memory_bytes < (size_t) N * 72);
    CU_ASSERT(empty < (size_t) N * 16);
    rate_store_free(&s);
}

static void bounds(void)
{
    struct rate_store *s = NULL;
    struct err e;

    err_clear(&e);
    CU_ASSERT_FALSE(rate_store_new(&s, 0, &e));
    CU_ASSERT_EQUAL(e.code, ERR_BAD_VALUE);
    err_clear(&e);
    CU_ASSERT_FALSE(rate_store_new(&s, (size_t) RATE_STORE_KEYS_MAX + 1, &e));
    CU_ASSERT_EQUAL(e.code, ERR_BAD_VALUE);
    CU_ASSERT_PTR_NULL(s);
    rate_store_free(&s);
}

/* Against plain buckets that are never forgotten: keys come and go at random, so entries expire and are used again all the time. */
static bool simulation(uint64_t seed)
{
    enum { N_KEYS = 400, N_STEPS = 20000 };
    static const struct rate_params params[] = {{5, 3, 1000}, {1, 1, 2000}, {50, 20, 1000}};
    struct rate_state states[N_KEYS] = {{0}};
    bool known[N_KEYS] = {false};
    struct rate_store *s = new_store(N_KEYS);
    uint64_t now_ms = 0, x = seed;
    bool ok = true;

    for (int i = 0; ok && i < N_STEPS; i++) {
        x = x * 6364136223846793005U + 1442695040888963407U;
        size_t key = (size_t) (x >> 33) % N_KEYS;
        if (x >> 60 == 0)
            now_ms += x >> 20 & 0x3ff;
        const struct rate_params *p = &params[key % 3];
        struct rate_verdict want = rate_step(p, &states[key], !known[key], now_ms);
        struct rate_call got = ask(s, key, p, now_ms);
        known[key] = true;
        ok = got.counted == RATE_COUNTED && got.verdict.allowed == want.allowed && got.verdict.remaining == want.remaining &&
             got.verdict.retry_after_ms == want.retry_after_ms && got.verdict.reset_ms == want.reset_ms;
    }
    ok = ok && stats_of(s).n_expired > 0;
    rate_store_free(&s);
    return ok;
}

static void simulations(void)
{
    for (uint64_t seed = 1; seed <= 20; seed++) {
        bool ok = simulation(seed);
        CU_ASSERT(ok);
        if (!ok)
            fprintf(stderr, "\n    seed %ju\n", (uintmax_t) seed);
    }
}

enum { N_THREADS = 8, N_REQUESTS = 2000, BURST = 5000 };
static const struct rate_params shared = {1, BURST, 60000};

struct crowd {
    struct rate_store *store;
    pthread_barrier_t start;
    _Atomic unsigned n_allowed, n_keys_wrong;
};

/* Each thread asks for the shared key, and for new keys beside it so that shards grow and are swept meanwhile. */
static void *hammer(void *arg)
{
    struct crowd *c = arg;
    static _Atomic uint64_t next_key;
    struct rate_subject made, again;

    pthread_barrier_wait(&c->start);
    for (unsigned i = 0; i < N_REQUESTS; i++) {
        static const struct rate_params other = {1, 1, 1000};
        struct rate_call calls[] = {{.name = &name, .subject = key_of(0), .params = &shared, .enforce = true},
                                    {.name = &name, .subject = key_of(1 + atomic_fetch_add(&next_key, 1)), .params = &other, .enforce = true}};
        rate_store_check(c->store, calls, 2, 1000 + i / 1000);
        if (calls[0].verdict.allowed)
            atomic_fetch_add(&c->n_allowed, 1);
        if (!rate_subject_hash(STR("subject"), &made) || !rate_subject_hash(STR("subject"), &again) ||
            memcmp(&made, &again, sizeof made) != 0)
            atomic_fetch_add(&c->n_keys_wrong, 1);
    }
    return NULL;
}

static void threads(void)
{
    struct crowd c = {.store = new_store(100000)};
    pthread_t ids[N_THREADS];

    pthread_barrier_init(&c.start, NULL, N_THREADS);
    for (size_t i = 0; i < N_THREADS; i++)
        CU_ASSERT_FATAL(pthread_create(&ids[i], NULL, hammer, &c) == 0);
    for (size_t i = 0; i < N_THREADS; i++)
        pthread_join(ids[i], NULL);
    CU_ASSERT_EQUAL(c.n_allowed, BURST);
    CU_ASSERT_EQUAL(c.n_keys_wrong, 0);
    CU_ASSERT_EQUAL(stats_of(c.store).n_keys, N_THREADS * N_REQUESTS + 1);
    pthread_barrier_destroy(&c.start);
    rate_store_free(&c.store);
}

void test_rate_store_register(void)
{
    CU_pSuite s = CU_add_suite("rate_store", NULL, NULL);
    CU_add_test(s, "each call is charged even when another one refuses the request", independent_calls);
    CU_add_test(s, "an exhausted shadow rule neither refuses nor spares another rule", shadow_calls);
    CU_add_test(s, "a full store lets new keys pass, counts them, and goes on limiting the keys it has", full_store);
    CU_add_test(s, "buckets that are full again make room for new keys", forgetting);
    CU_add_test(s, "a full store takes new keys as soon as its buckets are full again, and no earlier", full_store_recovers);
    CU_add_test(s, "a key takes at most 72 bytes of memory in a full store", memory);
    CU_add_test(s, "a store of no keys or too many is refused", bounds);
    CU_add_test(s, "random traffic over keys that come and go is judged as by buckets that are never forgotten", simulations);
    CU_add_test(s, "of concurrent requests on one key exactly burst pass", threads);
}
