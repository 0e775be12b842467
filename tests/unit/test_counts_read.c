/* What is new to a reader of counters. */
#include <CUnit/CUnit.h>

#include "tests/unit/counts_rig.h"
#include "tests/unit/refuse_memory.h"

/* The last delta of a version and cohort that a reader was handed. */
struct last_delta {
    int64_t version;
    enum cohort cohort;
    size_t n_calls; /* of any version */
    uint64_t requests, rule_a;
    size_t n_rules, n_top;
    struct topk_entry top; /* the largest */
};

static void keep_delta(void *ctx, const struct counts_delta *delta)
{
    struct last_delta *last = ctx;

    last->n_calls++;
    if (delta->config_version != last->version || delta->cohort != last->cohort)
        return;
    last->requests = counts_rig_requests(delta->sums);
    last->n_rules = delta->n_rules;
    last->n_top = delta->n_top;
    if (delta->n_top > 0)
        last->top = *delta->top[0];
    for (size_t i = 0; i < delta->n_rules; i++)
        if (str_eq(delta->rules[i].id, STR("a")))
            last->rule_a = delta->rules[i].counts[0];
}

static struct last_delta read_delta(struct counts *c, struct counts_reader *r, int64_t version, bool forget)
{
    struct last_delta last = {.version = version};

    CU_ASSERT_TRUE(counts_read(c, r, forget, keep_delta, &last));
    return last;
}

static void a_reader_gets_each_request_once(void)
{
    struct counts *c = counts_rig_open();
    struct counts_reader r = {.attached = true}, other = {.seen = NULL};

    counts_rig_prepare(c, 1, COHORT_ACTIVE, "a b", "", "");
    counts_rig_add(c, 1, COHORT_ACTIVE, 200, "a");
    counts_rig_add(c, 1, COHORT_ACTIVE, 500, "a");

    struct last_delta d = read_delta(c, &r, 1, false);
    CU_ASSERT_TRUE(d.n_calls == 1 && d.requests == 2 && d.rule_a == 2 && d.n_rules == 1);
    CU_ASSERT_EQUAL(read_delta(c, &r, 1, false).n_calls, 0);
    counts_rig_add(c, 1, COHORT_ACTIVE, 200, "b");
    d = read_delta(c, &r, 1, false);
    CU_ASSERT_TRUE(d.n_calls == 1 && d.requests == 1 && d.rule_a == 0 && d.n_rules == 1);
    CU_ASSERT_EQUAL(read_delta(c, &other, 1, false).requests, 3);
    counts_reader_release(c, &other);
    counts_reader_release(c, &r);
    counts_close(&c);
    counts_rig_forget();
}

static void a_version_is_not_folded_before_an_attached_reader_has_its_last_numbers(void)
{
    struct counts *c = counts_rig_open();
    struct counts_reader r = {.attached = true}, idle = {.seen = NULL};

    counts_rig_prepare(c, 1, COHORT_ACTIVE, "a", "", "");
    CU_ASSERT_EQUAL(read_delta(c, &r, 1, false).n_calls, 0);
    CU_ASSERT_EQUAL(read_delta(c, &idle, 1, false).n_calls, 0);
    counts_rig_prepare(c, 2, COHORT_ACTIVE, "b", "", "");
    counts_rig_add(c, 1, COHORT_ACTIVE, 200, "a");
    counts_rig_tick(c, COUNTS_RETIRE_MS / 1000 + 5);
    CU_ASSERT_EQUAL(read_delta(c, &r, 1, false).requests, 1);
    counts_rig_tick(c, 1);
    CU_ASSERT_EQUAL(counts_rig_rule(c, COUNT_CONFIG, "a"), UINT64_MAX);
    CU_ASSERT_EQUAL(r.n_missed, 0);
    counts_reader_release(c, &r);
    counts_reader_release(c, &idle);
    counts_close(&c);
    counts_rig_forget();
}

static void where_room_is_needed_a_reader_is_told_what_it_missed(void)
{
    struct counts *c = counts_rig_open();
    struct counts_reader r = {.attached = true};

    counts_rig_prepare(c, 1, COHORT_ACTIVE, "a", "", "");
    counts_rig_add(c, 1, COHORT_ACTIVE, 200, "a");
    CU_ASSERT_EQUAL(read_delta(c, &r, 1, false).requests, 1);
    counts_rig_add(c, 1, COHORT_ACTIVE, 200, "a");
    for (int v = 2; v <= COUNTS_VERSIONS_MAX + 1; v++)
        counts_rig_prepare(c, v, COHORT_ACTIVE, "a", "", "");
    (void)read_delta(c, &r, 1, false);
    CU_ASSERT_EQUAL(r.n_missed, 1);
    counts_reader_release(c, &r);
    counts_close(&c);
    counts_rig_forget();
}

static void more_attached_readers_than_may_be_are_refused(void)
{
    struct counts *c = counts_rig_open();
    struct counts_reader readers[COUNTS_READERS_MAX + 1] = {{.attached = true}};
    struct last_delta last = {.version = 1};

    for (size_t i = 0; i <= COUNTS_READERS_MAX; i++) {
        readers[i].attached = true;
        CU_ASSERT_EQUAL(counts_read(c, &readers[i], false, keep_delta, &last), i < COUNTS_READERS_MAX);
    }
    counts_reader_release(c, &readers[0]);
    CU_ASSERT_TRUE(counts_read(c, &readers[COUNTS_READERS_MAX], false, keep_delta, &last));
    for (size_t i = 0; i <= COUNTS_READERS_MAX; i++)
        counts_reader_release(c, &readers[i]);
    counts_close(&c);
    counts_rig_forget();
}

static void add_limited(struct counts *c, int64_t version, const char *subjects)
{
    const struct rec rec = {.config_version = version, .decision = DECISION_RATE_LIMITED, .limits = STR("!l:cl"), .subjects = str_of(subjects)};
    const struct outcome o = {.decision = DECISION_RATE_LIMITED, .status = 429};

    counts_add(c, &rec, &o);
}

static void the_most_limited_subjects_are_estimates_and_start_over_when_asked(void)
{
    struct counts *c = counts_rig_open();
    struct counts_reader r = {.attached = true};
    static const char one[] = "l:00112233445566778899aabbccddeeff:X-Api-Key=sk_l\\u2026";

    counts_rig_prepare(c, 1, COHORT_ACTIVE, "", "l", "");
    add_limited(c, 1, one);
    add_limited(c, 1, one);
    add_limited(c, 1, "l:11112233445566778899aabbccddeeff:192.0.2.1,m:00112233445566778899aabbccddeeff:a");
    struct last_delta d = read_delta(c, &r, 1, false);
    CU_ASSERT_EQUAL(d.n_top, 3);
    CU_ASSERT_EQUAL(d.top.count, 2 * COUNTS_SAMPLED_LIMITS);
    CU_ASSERT_STRING_EQUAL(d.top.rule, "l");
    CU_ASSERT_STRING_EQUAL(d.top.subject, "00112233445566778899aabbccddeeff");
    CU_ASSERT_STRING_EQUAL(d.top.display, "X-Api-Key=sk_l\\u2026");
    add_limited(c, 1, "");
    CU_ASSERT_EQUAL(read_delta(c, &r, 1, true).n_top, 3);
    add_limited(c, 1, one);
    d = read_delta(c, &r, 1, true);
    CU_ASSERT_TRUE(d.n_top == 1 && d.top.count == COUNTS_SAMPLED_LIMITS);
    counts_reader_release(c, &r);
    counts_close(&c);
    counts_rig_forget();
}

static void without_memory_nothing_counts_as_seen(void)
{
    struct counts *c = counts_rig_open();
    struct counts_reader r = {.attached = true};
    struct last_delta last = {.version = 1};
    struct counts *none = NULL;
    struct err e;

    counts_rig_prepare(c, 1, COHORT_ACTIVE, "a", "", "");
    counts_rig_add(c, 1, COHORT_ACTIVE, 200, "a");
    for (size_t n = 0; n < 2; n++) {
        refuse_memory(n);
        CU_ASSERT_FALSE(counts_read(c, &r, false, keep_delta, &last));
        CU_ASSERT_TRUE(refuse_memory_end());
    }
    CU_ASSERT_EQUAL(last.n_calls, 0);
    CU_ASSERT_EQUAL(read_delta(c, &r, 1, false).requests, 1);
    err_clear(&e);
    refuse_memory(0);
    CU_ASSERT_FALSE(counts_open(&none, counts_rig.stem, &counts_rig.clock, &e));
    CU_ASSERT_TRUE(refuse_memory_end());
    CU_ASSERT_EQUAL(e.code, ERR_NO_MEMORY);
    counts_reader_release(c, &r);
    counts_close(&c);
    counts_rig_forget();
}

void test_counts_read_register(void)
{
    CU_pSuite s = CU_add_suite("counts_read", counts_rig_set_up, counts_rig_tear_down);
    CU_add_test(s, "a reader gets each request once", a_reader_gets_each_request_once);
    CU_add_test(s, "a version is not folded before an attached reader has its last numbers", a_version_is_not_folded_before_an_attached_reader_has_its_last_numbers);
    CU_add_test(s, "where room is needed a reader is told what it missed", where_room_is_needed_a_reader_is_told_what_it_missed);
    CU_add_test(s, "more attached readers than may be are refused", more_attached_readers_than_may_be_are_refused);
    CU_add_test(s, "the most limited subjects are estimates and start over when asked", the_most_limited_subjects_are_estimates_and_start_over_when_asked);
    CU_add_test(s, "without memory nothing counts as seen", without_memory_nothing_counts_as_seen);
}
