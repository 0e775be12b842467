/* Processes that are killed at any instruction, and what the next one finds. */
#include <CUnit/CUnit.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/unit/counts_rig.h"

/* Short eras of many rules: most kills are to hit a change of structure. */
enum { KILLS = 300, ERA = 40, ERAS_MAX = 60000, RULES = 150, COUNTED_LEAST = 5 };

/* What the processes of a run share with the test. HAProxy's records are those below next: a process takes one off the ring, then counts it. An era is one
 * process of HAProxy and one version of the policy. */
struct run {
    _Atomic uint64_t next;
    uint64_t now_us;
    _Atomic uint32_t begun[ERAS_MAX], noted[ERAS_MAX]; /* numbers of an era that counts_number was called with, and that it returned for */
};
static struct run *run;

static uint64_t run_now(void *ctx)
{
    (void)ctx;
    return run->now_us;
}

static void run_prepare(struct counts *c, uint64_t era)
{
    char rules[RULES * 16];
    int len = snprintf(rules, sizeof(rules), "always own-%u", (unsigned)era);

    for (int i = 0; i < RULES; i++)
        len += snprintf(rules + len, sizeof(rules) - (size_t)len, " rule-%d", i);
    counts_rig_prepare(c, (int64_t)era, COHORT_ACTIVE, rules, "", "");
}

static void run_count(struct counts *c, uint64_t n)
{
    const uint64_t era = n / ERA;

    if (n % ERA == 0)
        run_prepare(c, era);
    if (n % 20 == 0) {
        run->now_us += 400000;
        counts_tick(c);
    }
    atomic_store(&run->begun[era], (uint32_t)(n % ERA) + 1);
    counts_number(c, 100 + era, n % ERA);
    atomic_store(&run->noted[era], (uint32_t)(n % ERA) + 1);
    counts_rig_add(c, (int64_t)era, COHORT_ACTIVE, 200, "always");
}

static void count_until_killed(void *ctx)
{
    static const struct clock clock = {.mono_us = run_now, .real_ms = run_now};
    struct counts *c = NULL;
    struct err e;

    (void)ctx;
    err_clear(&e);
    if (!counts_open(&c, counts_rig.stem, &clock, &e))
        _exit(1);
    run_prepare(c, atomic_load(&run->next) / ERA);
    while (atomic_load(&run->next) < (uint64_t)ERA * ERAS_MAX)
        run_count(c, atomic_fetch_add(&run->next, 1));
}

static uint64_t random_state;
static uint64_t draw(uint64_t below)
{
    random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (random_state >> 33) % below;
}

static void wait_us(uint64_t us)
{
    const struct timespec t = {.tv_nsec = (long)us * 1000};

    (void)nanosleep(&t, NULL);
}

/* Until the process has counted some, however busy the machine is. */
static void wait_counted(pid_t pid)
{
    const uint64_t until = atomic_load(&run->next) + COUNTED_LEAST;

    while (atomic_load(&run->next) < until) {
        CU_ASSERT_EQUAL_FATAL(waitpid(pid, NULL, WNOHANG), 0);
        wait_us(50);
    }
}

struct sums_before {
    uint64_t total, lost, rule;
};

static void check_whole(struct counts *c, struct sums_before *before)
{
    const struct sums_before now = {counts_rig_total(c), counts_lost(c), counts_rig_rule(c, COUNT_CONFIG, "always")};

    CU_ASSERT_TRUE(now.total >= before->total && now.lost >= before->lost);
    CU_ASSERT_TRUE(now.rule >= before->rule && now.rule <= now.total);
    *before = now;
}

/* The last record of an era may be the one that a process was killed with before its number was noted: then nobody can know of it. */
static void check_sums(const struct sums_before *now)
{
    uint64_t noted = 0, begun = 0;

    for (size_t i = 0; i < ERAS_MAX; i++) {
        noted += atomic_load(&run->noted[i]);
        begun += atomic_load(&run->begun[i]);
    }
    CU_ASSERT_TRUE(noted <= now->total + now->lost && now->total + now->lost <= begun);
    CU_ASSERT_TRUE(now->lost <= KILLS && now->rule + KILLS >= now->total);
}

static void a_process_that_is_killed_anywhere_costs_at_most_the_record_in_its_middle(void)
{
    struct sums_before sums = {0};
    struct counts *c = counts_rig_open();

    random_state = 1;
    run = mmap(NULL, sizeof(*run), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CU_ASSERT_TRUE_FATAL(run != MAP_FAILED);
    run->now_us = counts_rig.now_us;
    run_count(c, atomic_fetch_add(&run->next, 1));
    counts_close(&c);
    for (int i = 0; i < KILLS; i++) {
        const pid_t pid = counts_rig_fork(count_until_killed, NULL);

        /* Every other one is killed wherever it is, maybe before its first record. */
        if (i % 2 == 1)
            wait_counted(pid);
        wait_us(500 + draw(4000));
        counts_rig_kill(pid);
        c = counts_rig_open();
        check_whole(c, &sums);
        counts_close(&c);
    }
    CU_ASSERT_TRUE(sums.total > 10 * ERA);
    c = counts_rig_open();
    run_count(c, atomic_fetch_add(&run->next, 1));
    counts_rig.now_us = run->now_us;
    counts_rig_tick(c, 4);
    check_whole(c, &sums);
    check_sums(&sums);
    counts_close(&c);
    munmap(run, sizeof(*run));
    counts_rig_forget();
}

void test_counts_kill_register(void)
{
    CU_pSuite s = CU_add_suite("counts_kill", counts_rig_set_up, counts_rig_tear_down);
    CU_add_test(s, "a process that is killed anywhere costs at most the record in its middle", a_process_that_is_killed_anywhere_costs_at_most_the_record_in_its_middle);
}
