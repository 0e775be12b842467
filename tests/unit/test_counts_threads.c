/* Counters between the threads of an agent: intake, policy feed, readers. */
#include <CUnit/CUnit.h>
#include <pthread.h>
#include <stdatomic.h>

#include "tests/unit/counts_rig.h"

enum { REQUESTS = 60000, VERSIONS = 60 };

struct threads {
    struct counts *c;
    _Atomic int64_t version; /* published */
    _Atomic bool ended;      /* the intake */
    uint64_t n_read;         /* requests of all deltas */
};

static void *take_in(void *arg)
{
    struct threads *t = arg;

    for (uint64_t i = 0; i < REQUESTS; i++) {
        const struct rec rec = {.config_version = atomic_load(&t->version),
                                .config_rules = STR("a,!b"),
                                .limits = STR("l:cl"),
                                .subjects = STR("l:00112233445566778899aabbccddeeff:x")};
        const struct outcome o = {.decision = DECISION_ALLOW, .status = 200};

        counts_number(t->c, 10 + i / 1000, i % 1000);
        if (i % 5 == 0)
            counts_other(t->c);
        else
            counts_add(t->c, &rec, &o);
        if (i % 100 == 0)
            counts_tick(t->c);
    }
    atomic_store(&t->ended, true);
    return NULL;
}

static void *publish(void *arg)
{
    struct threads *t = arg;

    for (int64_t v = 2; v < VERSIONS && !atomic_load(&t->ended); v++) {
        counts_rig_prepare(t->c, v, COHORT_ACTIVE, "a b c", "l", "h");
        atomic_store(&t->version, v);
    }
    return NULL;
}

static void add_up(void *ctx, const struct counts_delta *delta)
{
    ((struct threads *)ctx)->n_read += counts_rig_requests(delta->sums);
}

static void none(void *ctx, const struct counts_rule *rule)
{
    (void)ctx;
    CU_ASSERT_TRUE_FATAL(rule->id.len == 1);
}

static void every_thread_sees_whole_numbers(void)
{
    struct threads t = {.c = counts_rig_open()};
    struct counts_reader r = {.attached = true};
    pthread_t intake, feed;
    uint64_t before = 0, lost_before = 0;

    counts_rig_prepare(t.c, 1, COHORT_ACTIVE, "a b", "l", "");
    atomic_store(&t.version, 1);
    CU_ASSERT_TRUE(counts_read(t.c, &r, true, add_up, &t));
    CU_ASSERT_EQUAL_FATAL(pthread_create(&intake, NULL, take_in, &t), 0);
    CU_ASSERT_EQUAL_FATAL(pthread_create(&feed, NULL, publish, &t), 0);
    while (!atomic_load(&t.ended)) {
        const uint64_t total = counts_rig_total(t.c), lost = counts_lost(t.c);

        CU_ASSERT_TRUE(total >= before && lost >= lost_before);
        before = total;
        lost_before = lost;
        CU_ASSERT_TRUE(counts_read(t.c, &r, true, add_up, &t));
        counts_each_rule(t.c, none, NULL);
        CU_ASSERT_EQUAL(counts_rules_left_out(t.c), 0);
    }
    pthread_join(intake, NULL);
    pthread_join(feed, NULL);
    CU_ASSERT_TRUE(counts_read(t.c, &r, true, add_up, &t));
    CU_ASSERT_EQUAL(counts_rig_total(t.c), REQUESTS / 5 * 4);
    /* Room was needed often: what was folded unseen is told, but for requests whose version was not there any more. */
    CU_ASSERT_TRUE(t.n_read + r.n_missed <= REQUESTS / 5 * 4 && t.n_read > 0);
    counts_rig_tick(t.c, 4);
    CU_ASSERT_EQUAL(counts_lost(t.c), 0);
    counts_reader_release(t.c, &r);
    counts_close(&t.c);
    counts_rig_forget();
}

void test_counts_threads_register(void)
{
    CU_pSuite s = CU_add_suite("counts_threads", counts_rig_set_up, counts_rig_tear_down);
    CU_add_test(s, "every thread sees whole numbers", every_thread_sees_whole_numbers);
}
