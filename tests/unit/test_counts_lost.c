/* Records that never came, as HAProxy's numbers tell. */
#include <CUnit/CUnit.h>
#include <unistd.h>

#include "tests/unit/counts_rig.h"

/* A record of process pid with that number has come. */
static void come(struct counts *c, uint64_t pid, uint64_t number)
{
    counts_number(c, pid, number);
    counts_rig_add(c, 1, COHORT_ACTIVE, 200, "");
}

static void come_from_to(struct counts *c, uint64_t pid, uint64_t from, uint64_t to)
{
    for (uint64_t i = from; i <= to; i++)
        come(c, pid, i);
}

static void end(struct counts *c)
{
    counts_close(&c);
    counts_rig_forget();
}

static void a_gap_that_lasts_for_two_seconds_is_a_loss(void)
{
    struct counts *c = counts_rig_open();

    come_from_to(c, 10, 0, 5);
    counts_rig_tick(c, 3);
    CU_ASSERT_EQUAL(counts_lost(c), 0);
    come_from_to(c, 10, 9, 12);
    counts_rig_tick(c, 2);
    CU_ASSERT_EQUAL(counts_lost(c), 0); /* the gap came in the second that the first of these ticks ended */
    counts_rig_tick(c, 1);
    CU_ASSERT_EQUAL(counts_lost(c), 3);
    counts_rig_tick(c, 10);
    CU_ASSERT_EQUAL(counts_lost(c), 3);
    CU_ASSERT_EQUAL(counts_rig_total(c) + counts_lost(c), 13);
    end(c);
}

static void records_of_others_are_no_loss(void)
{
    struct counts *c = counts_rig_open();

    for (uint64_t i = 0; i < 100; i++) {
        counts_number(c, 10, i);
        if (i % 2 == 0)
            counts_other(c);
        else
            counts_rig_add(c, 1, COHORT_ACTIVE, 200, "");
    }
    counts_rig_tick(c, 5);
    CU_ASSERT_EQUAL(counts_lost(c), 0);
    CU_ASSERT_EQUAL(counts_rig_total(c), 50);
    end(c);
}

static void a_record_that_others_overtook_is_no_loss(void)
{
    struct counts *c = counts_rig_open();

    come(c, 10, 0);
    for (uint64_t second = 0; second < 10; second++) { /* at every tick one is on its way */
        const uint64_t base = 1 + 10 * second;

        come(c, 10, base + 1);
        come(c, 10, base);
        come_from_to(c, 10, base + 2, base + 8);
        counts_rig_tick(c, 1);
        come(c, 10, base + 9);
    }
    counts_rig_tick(c, 5);
    CU_ASSERT_EQUAL(counts_lost(c), 0);
    end(c);
}

static void always_one_under_way_at_the_tick_is_no_loss(void)
{
    struct counts *c = counts_rig_open();

    come(c, 10, 0);
    for (uint64_t i = 1; i < 21; i += 2) {
        come(c, 10, i + 1);
        counts_rig_tick(c, 1);
        come(c, 10, i);
    }
    counts_rig_tick(c, 5);
    CU_ASSERT_EQUAL(counts_lost(c), 0);
    end(c);
}

static void two_threads_with_one_number_hide_no_loss(void)
{
    struct counts *c = counts_rig_open();

    come_from_to(c, 10, 0, 3);
    come(c, 10, 3); /* the fifth record */
    come(c, 10, 7); /* 5 and 6 are missing */
    counts_rig_tick(c, 4);
    CU_ASSERT_EQUAL(counts_lost(c), 2);
    end(c);
}

static void numbers_begin_again_behind_32_bits(void)
{
    struct counts *c = counts_rig_open();

    come_from_to(c, 10, UINT32_MAX - 3, UINT32_MAX);
    come_from_to(c, 10, 0, 3);
    come(c, 10, 6); /* 4 and 5 are missing */
    counts_rig_tick(c, 4);
    CU_ASSERT_EQUAL(counts_lost(c), 2);
    end(c);
}

static void the_first_process_may_have_run_before_and_later_ones_begin_at_0(void)
{
    struct counts *c = counts_rig_open();

    come(c, 10, 1001); /* overtook 1000 */
    come(c, 10, 1000);
    come_from_to(c, 10, 1002, 1009);
    counts_rig_tick(c, 4);
    CU_ASSERT_EQUAL(counts_lost(c), 0);
    come(c, 11, 2); /* 0 and 1 are missing */
    come(c, 10, 1011);
    counts_rig_tick(c, 4);
    CU_ASSERT_EQUAL(counts_lost(c), 3);
    end(c);
}

static void a_pid_that_comes_again_is_another_process(void)
{
    struct counts *c = counts_rig_open();

    come_from_to(c, 10, 0, 99);
    counts_rig_tick(c, 60);
    come_from_to(c, 10, 1, 20); /* 0 is missing */
    counts_rig_tick(c, 4);
    CU_ASSERT_EQUAL(counts_lost(c), 1);
    CU_ASSERT_EQUAL(counts_rig_total(c), 120);
    end(c);
}

static void two_records_after_a_quiet_time_that_overtook_each_other_are_of_one_process(void)
{
    struct counts *c = counts_rig_open();

    come_from_to(c, 10, 0, 99);
    counts_rig_tick(c, 3600);
    come(c, 10, 102);
    come(c, 10, 100);
    come(c, 10, 101);
    counts_rig_tick(c, 4);
    CU_ASSERT_EQUAL(counts_lost(c), 0);
    come(c, 10, 103);
    counts_rig_tick(c, 4);
    CU_ASSERT_EQUAL(counts_lost(c), 0);
    end(c);
}

static void more_processes_than_are_kept_apart_lose_no_loss(void)
{
    struct counts *c = counts_rig_open();
    const uint64_t ended = UINT64_C(1) << 32; /* no process has such a pid */
    uint64_t lost = 0;

    come_from_to(c, (uint64_t)getpid(), 0, 1000); /* quiet for longest, but it runs, with a long stream maybe */
    counts_rig_tick(c, 3);
    for (uint64_t pid = ended; pid < ended + 150; pid++) {
        come_from_to(c, pid, 0, pid - ended);
        come(c, pid, pid - ended + 3); /* two are missing */
        lost += 2;
        counts_rig_tick(c, 3);
        CU_ASSERT_TRUE(counts_lost(c) <= lost && counts_lost(c) + 2 >= lost);
    }
    come(c, (uint64_t)getpid(), 1001);
    counts_rig_tick(c, 4);
    CU_ASSERT_EQUAL(counts_lost(c), lost);
    end(c);
}

static void what_was_lost_while_no_process_read_is_missed_by_the_next(void)
{
    struct counts *c = counts_rig_open();

    come_from_to(c, 10, 0, 9);
    counts_close(&c);
    counts_rig.now_us += 60000000;
    c = counts_rig_open();
    come_from_to(c, 10, 15, 20);
    counts_rig_tick(c, 4);
    CU_ASSERT_EQUAL(counts_lost(c), 5);
    counts_close(&c);
    c = counts_rig_open();
    CU_ASSERT_EQUAL(counts_lost(c), 5);
    CU_ASSERT_EQUAL(counts_rig_total(c), 16);
    end(c);
}

/* During an exchange each of the two sees gaps that are records on their way to the other. */
static void what_comes_to_another_process_a_little_later_is_no_loss(void)
{
    struct counts *one = counts_rig_open(), *two = counts_rig_open();

    come(one, 10, 0);
    for (uint64_t i = 1; i < 21; i += 2) {
        come(one, 10, i + 1);
        counts_rig_tick(one, 1);
        counts_tick(two);
        come(two, 10, i);
    }
    CU_ASSERT_EQUAL(counts_lost(one), 0);
    come(one, 10, 22); /* 21 is missing */
    counts_rig_tick(one, 4);
    CU_ASSERT_EQUAL(counts_lost(two), 1);
    counts_close(&two);
    end(one);
}

static void a_process_without_a_number_is_not_looked_at(void)
{
    struct counts *c = counts_rig_open();

    come_from_to(c, 0, 50, 60);
    come(c, 10, 5);
    counts_rig_tick(c, 4);
    CU_ASSERT_EQUAL(counts_lost(c), 0);
    end(c);
}

void test_counts_lost_register(void)
{
    CU_pSuite s = CU_add_suite("counts_lost", counts_rig_set_up, counts_rig_tear_down);
    CU_add_test(s, "a gap that lasts for two seconds is a loss", a_gap_that_lasts_for_two_seconds_is_a_loss);
    CU_add_test(s, "records of others are no loss", records_of_others_are_no_loss);
    CU_add_test(s, "a record that others overtook is no loss", a_record_that_others_overtook_is_no_loss);
    CU_add_test(s, "always one under way at the tick is no loss", always_one_under_way_at_the_tick_is_no_loss);
    CU_add_test(s, "two threads with one number hide no loss", two_threads_with_one_number_hide_no_loss);
    CU_add_test(s, "numbers begin again behind 32 bits", numbers_begin_again_behind_32_bits);
    CU_add_test(s, "the first process may have run before and later ones begin at 0", the_first_process_may_have_run_before_and_later_ones_begin_at_0);
    CU_add_test(s, "a pid that comes again is another process", a_pid_that_comes_again_is_another_process);
    CU_add_test(s, "two records after a quiet time that overtook each other are of one process", two_records_after_a_quiet_time_that_overtook_each_other_are_of_one_process);
    CU_add_test(s, "more processes than are kept apart lose no loss", more_processes_than_are_kept_apart_lose_no_loss);
    CU_add_test(s, "what was lost while no process read is missed by the next", what_was_lost_while_no_process_read_is_missed_by_the_next);
    CU_add_test(s, "what comes to another process a little later is no loss", what_comes_to_another_process_a_little_later_is_no_loss);
    CU_add_test(s, "a process without a number is not looked at", a_process_without_a_number_is_not_looked_at);
}
