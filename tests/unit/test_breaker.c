/* The breaker, step by step, and raced for its one probe. What holds over long random runs is in tests/sim. */
#include <CUnit/CUnit.h>
#include <pthread.h>

#include "spoa/store/breaker.h"

enum { THREADS = 4, ROUNDS = 200 };

static void open_it(struct breaker *b, uint64_t now_us)
{
    breaker_init(b);
    for (int i = 0; i < BREAKER_FAILURES; i++)
        breaker_failure(b, now_us);
}

static void opens_after_failures_in_a_row(void)
{
    struct breaker b;

    breaker_init(&b);
    for (int i = 0; i < BREAKER_FAILURES - 1; i++)
        breaker_failure(&b, 1000);
    CU_ASSERT_FALSE(breaker_is_open(&b));
    CU_ASSERT_TRUE(breaker_allow(&b, 1000));
    breaker_success(&b);
    for (int i = 0; i < BREAKER_FAILURES - 1; i++)
        breaker_failure(&b, 1000);
    CU_ASSERT_FALSE(breaker_is_open(&b));
    CU_ASSERT_EQUAL(b.n_opened, 0);
    breaker_failure(&b, 1000);
    CU_ASSERT_TRUE(breaker_is_open(&b));
    CU_ASSERT_EQUAL(b.n_opened, 1);
}

static void rests_then_probes(void)
{
    struct breaker b;

    open_it(&b, 1000);
    CU_ASSERT_FALSE(breaker_allow(&b, 1000));
    CU_ASSERT_FALSE(breaker_allow(&b, 1000 + BREAKER_REST_US - 1));
    CU_ASSERT_TRUE(breaker_allow(&b, 1000 + BREAKER_REST_US));
    CU_ASSERT_FALSE(breaker_allow(&b, 1000 + BREAKER_REST_US));
    CU_ASSERT_FALSE(breaker_allow(&b, 1000 + 2 * BREAKER_REST_US - 1));
    CU_ASSERT_TRUE(breaker_is_open(&b));
}

static void probe_decides(void)
{
    struct breaker b;

    open_it(&b, 0);
    CU_ASSERT_TRUE(breaker_allow(&b, BREAKER_REST_US));
    breaker_failure(&b, BREAKER_REST_US + 10);
    CU_ASSERT_FALSE(breaker_allow(&b, 2 * BREAKER_REST_US - 1));
    CU_ASSERT_EQUAL(b.n_opened, 1);
    CU_ASSERT_TRUE(breaker_allow(&b, 2 * BREAKER_REST_US));
    breaker_success(&b);
    CU_ASSERT_FALSE(breaker_is_open(&b));
    CU_ASSERT_TRUE(breaker_allow(&b, 2 * BREAKER_REST_US));
    CU_ASSERT_TRUE(breaker_allow(&b, 2 * BREAKER_REST_US));
}

static void late_failures_move_nothing(void)
{
    struct breaker b;

    open_it(&b, 0);
    for (int i = 0; i < 100; i++)
        breaker_failure(&b, BREAKER_REST_US / 2);
    CU_ASSERT_TRUE(breaker_allow(&b, BREAKER_REST_US));
    CU_ASSERT_EQUAL(b.n_opened, 1);
}

static void silent_probe_costs_one_rest(void)
{
    struct breaker b;

    open_it(&b, 0);
    CU_ASSERT_TRUE(breaker_allow(&b, BREAKER_REST_US));
    CU_ASSERT_FALSE(breaker_allow(&b, 2 * BREAKER_REST_US - 1));
    CU_ASSERT_TRUE(breaker_allow(&b, 2 * BREAKER_REST_US));
}

struct race {
    struct breaker breaker;
    pthread_barrier_t start;
    _Atomic unsigned n_allowed[ROUNDS];
};

static void *race_for_the_probe(void *ctx)
{
    struct race *r = ctx;

    for (uint64_t round = 0; round < ROUNDS; round++) {
        (void)pthread_barrier_wait(&r->start);
        if (breaker_allow(&r->breaker, (round + 1) * BREAKER_REST_US))
            atomic_fetch_add(&r->n_allowed[round], 1);
    }
    return NULL;
}

static void one_of_many_gets_the_probe(void)
{
    static struct race r;
    pthread_t threads[THREADS];

    open_it(&r.breaker, 0);
    CU_ASSERT_EQUAL_FATAL(pthread_barrier_init(&r.start, NULL, THREADS), 0);
    for (int i = 0; i < THREADS; i++)
        CU_ASSERT_EQUAL_FATAL(pthread_create(&threads[i], NULL, race_for_the_probe, &r), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < ROUNDS; i++)
        CU_ASSERT_EQUAL(r.n_allowed[i], 1);
    pthread_barrier_destroy(&r.start);
}

static void *report_at_random(void *ctx)
{
    struct breaker *b = ctx;

    for (uint64_t i = 0; i < 20000; i++) {
        if (!breaker_allow(b, i * 100))
            continue;
        if (i % 7 < 5)
            breaker_failure(b, i * 100);
        else
            breaker_success(b);
    }
    return NULL;
}

/* Whatever the workers did at the same time, the node's next answers close it. */
static void recovers_from_any_mix(void)
{
    struct breaker b;
    pthread_t threads[THREADS];

    breaker_init(&b);
    for (int i = 0; i < THREADS; i++)
        CU_ASSERT_EQUAL_FATAL(pthread_create(&threads[i], NULL, report_at_random, &b), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    CU_ASSERT_TRUE(breaker_allow(&b, 20000 * 100 + BREAKER_REST_US));
    breaker_success(&b);
    CU_ASSERT_FALSE(breaker_is_open(&b));
    CU_ASSERT_TRUE(breaker_allow(&b, 0));
}

void test_breaker_register(void)
{
    CU_pSuite s = CU_add_suite("breaker", NULL, NULL);
    CU_add_test(s, "failures in a row open it, a success in between begins the count anew",
                opens_after_failures_in_a_row);
    CU_add_test(s, "an open breaker lets nothing through for a rest, then one probe", rests_then_probes);
    CU_add_test(s, "a probe that fails costs another rest, one that succeeds closes the breaker", probe_decides);
    CU_add_test(s, "failures of calls that were under way do not put off the probe", late_failures_move_nothing);
    CU_add_test(s, "a probe that never reports costs one rest, not the breaker", silent_probe_costs_one_rest);
    CU_add_test(s, "of many threads exactly one gets the probe", one_of_many_gets_the_probe);
    CU_add_test(s, "after any mix of reports from many threads, one rest and one success close it",
                recovers_from_any_mix);
}
