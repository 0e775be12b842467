/* The most frequent subjects against exact counts. */
#include <CUnit/CUnit.h>
#include <stdio.h>

#include "spoa/record/topk.h"

static struct topk topk;

static uint64_t random_state;
static uint64_t draw(uint64_t below)
{
    random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (random_state >> 33) % below;
}

static void add(unsigned subject, uint64_t weight)
{
    char hash[TOPK_HASH_LEN + 1];

    (void)snprintf(hash, sizeof(hash), "%032x", subject);
    topk_add(&topk, STR("limit"), str_of(hash), STR("192.0.2.1"), weight);
}

enum { SUBJECTS = 4000, EVENTS = 60000 };

/* Some few often, many seldom, in an order that changes with the seed. */
static unsigned subject_drawn(void)
{
    return (unsigned)(draw(3) == 0 ? draw(40) : draw(draw(SUBJECTS) + 1));
}

static void check_bounds(const uint64_t *exact, uint64_t n)
{
    bool is_in[SUBJECTS] = {false};

    for (size_t i = 0; i < topk.n; i++) {
        const struct topk_entry *e = &topk.entries[i];
        unsigned subject;

        CU_ASSERT_EQUAL_FATAL(sscanf(e->subject, "%x", &subject), 1);
        CU_ASSERT_TRUE(e->count >= exact[subject] && exact[subject] >= e->count - e->err);
        CU_ASSERT_FALSE(is_in[subject]);
        is_in[subject] = true;
    }
    for (size_t i = 0; i < SUBJECTS; i++)
        CU_ASSERT_TRUE(is_in[i] || exact[i] <= n / TOPK_SUBJECTS);
}

static void what_has_more_than_its_share_is_there_and_no_count_is_too_low(void)
{
    for (uint64_t seed = 1; seed <= 10; seed++) {
        uint64_t exact[SUBJECTS] = {0}, n = 0;

        random_state = seed;
        topk_clear(&topk);
        for (int i = 0; i < EVENTS; i++) {
            const unsigned subject = subject_drawn();
            const uint64_t weight = draw(2) == 0 ? 1 : 16;

            add(subject, weight);
            exact[subject] += weight;
            n += weight;
        }
        check_bounds(exact, n);
    }
}

static void the_largest_come_first_and_equal_ones_as_they_came(void)
{
    static const unsigned want[] = {300, 7, 2, 9, 11};
    const struct topk_entry *largest[5];

    topk_clear(&topk);
    add(2, 3);
    add(9, 3);
    add(4, 2);
    add(7, 5);
    for (unsigned i = 20; topk.n < TOPK_SUBJECTS; i++)
        add(i, 2);
    add(11, 1); /* takes the place of 4, inherits its 2 */
    add(300, 9);
    add(4, 1);
    CU_ASSERT_EQUAL_FATAL(topk_largest(&topk, largest, 5), 5);
    for (size_t i = 0; i < 5; i++) {
        unsigned subject;

        CU_ASSERT_EQUAL_FATAL(sscanf(largest[i]->subject, "%x", &subject), 1);
        CU_ASSERT_EQUAL(subject, want[i]);
    }
    CU_ASSERT_EQUAL(largest[4]->count, 3);
    CU_ASSERT_EQUAL(largest[4]->err, 2);
}

static void no_more_are_given_than_asked_for(void)
{
    const struct topk_entry *largest[TOPK_SUBJECTS];

    topk_clear(&topk);
    CU_ASSERT_EQUAL(topk_largest(&topk, largest, TOPK_SUBJECTS), 0);
    for (unsigned i = 0; i < 10; i++)
        add(i, i + 1);
    CU_ASSERT_EQUAL(topk_largest(&topk, largest, 0), 0);
    CU_ASSERT_EQUAL(topk_largest(&topk, largest, 3), 3);
    CU_ASSERT_EQUAL(largest[0]->count, 10);
    CU_ASSERT_EQUAL(largest[2]->count, 8);
    CU_ASSERT_EQUAL(topk_largest(&topk, largest, TOPK_SUBJECTS), 10);
}

static void one_hash_under_two_rules_is_two_subjects(void)
{
    topk_clear(&topk);
    topk_add(&topk, STR("a"), STR("00"), STR("x"), 1);
    topk_add(&topk, STR("ab"), STR("00"), STR("x"), 1);
    topk_add(&topk, STR("a"), STR("0"), STR("x"), 1);
    topk_add(&topk, STR_NONE, STR_NONE, STR_NONE, 1);
    topk_add(&topk, STR_NONE, STR_NONE, STR_NONE, 1);
    topk_add(&topk, STR("a"), STR("00"), STR("y"), 1);
    CU_ASSERT_EQUAL_FATAL(topk.n, 4);
    CU_ASSERT_EQUAL(topk.entries[0].count, 2);
    CU_ASSERT_EQUAL(topk.entries[3].count, 2);
}

/* tail: what ends a display that is one byte longer than fits, behind as many 'a' as that takes; kept: what is left of it. */
static const struct cut_row {
    const char *tail, *kept;
} cuts[] = {
    {"xyz", "xy"},
    {"\\u00e9", ""},
    {"\\u00e9z", "\\u00e9"},
    {"\\u00e9zz", "\\u00e9z"},
    {"\\\\", ""},
    {"\\\"z", "\\\""},
    {"\\ud83d\\ude00", ""},
    {"\\ud83d\\ude00z", "\\ud83d\\ude00"},
    {"\\uD83D\\uDE00", ""},
    {"\\ud7ff\\u00e9", "\\ud7ff"},
};

static void a_display_that_is_too_long_is_cut_before_an_escape(void)
{
    for (size_t i = 0; i < sizeof(cuts) / sizeof(cuts[0]); i++) {
        const size_t tail = strlen(cuts[i].tail), kept = strlen(cuts[i].kept), fill = TOPK_DISPLAY_MAX - tail;
        char display[TOPK_DISPLAY_MAX + 1];

        memset(display, 'a', fill);
        memcpy(display + fill, cuts[i].tail, tail + 1);
        topk_clear(&topk);
        topk_add(&topk, STR("a"), STR("0"), str_of(display), 1);
        CU_ASSERT_EQUAL(strlen(topk.entries[0].display), fill + kept);
        CU_ASSERT_STRING_EQUAL(topk.entries[0].display + fill, cuts[i].kept);
    }
}

static void names_that_are_too_long_are_cut(void)
{
    char id[200];

    memset(id, 'i', sizeof(id));
    topk_clear(&topk);
    topk_add(&topk, (struct str){id, sizeof(id)}, (struct str){id, sizeof(id)}, STR("x"), 1);
    topk_add(&topk, (struct str){id, sizeof(id)}, (struct str){id, sizeof(id)}, STR("x"), 1);
    CU_ASSERT_EQUAL(topk.n, 1);
    CU_ASSERT_EQUAL(strlen(topk.entries[0].rule), TOPK_ID_MAX);
    CU_ASSERT_EQUAL(strlen(topk.entries[0].subject), TOPK_HASH_LEN);
}

void test_topk_register(void)
{
    CU_pSuite s = CU_add_suite("topk", NULL, NULL);
    CU_add_test(s, "what has more than its share is there and no count is too low", what_has_more_than_its_share_is_there_and_no_count_is_too_low);
    CU_add_test(s, "the largest come first and equal ones as they came", the_largest_come_first_and_equal_ones_as_they_came);
    CU_add_test(s, "no more are given than asked for", no_more_are_given_than_asked_for);
    CU_add_test(s, "one hash under two rules is two subjects", one_hash_under_two_rules_is_two_subjects);
    CU_add_test(s, "a display that is too long is cut before an escape", a_display_that_is_too_long_is_cut_before_an_escape);
    CU_add_test(s, "names that are too long are cut", names_that_are_too_long_are_cut);
}
