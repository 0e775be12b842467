/* What is counted of a request, and by what: rows; and how versions come and go. */
#include <CUnit/CUnit.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/unit/cases.h"
#include "tests/unit/counts_rig.h"

static const char row_rules[] = "a b same seven77 eight888 nine99999 0123456789012345678901234567890123456789012345678901234567890123";

struct seen_rules {
    const json_t *row;
    size_t n;
};

/* Holds one rule's counts against the row's. */
static void check_rule(void *ctx, const struct counts_rule *rule)
{
    struct seen_rules *seen = ctx;
    char name[128];
    const char *const *names = count_names(rule->phase);
    const json_t *want;

    (void)snprintf(name, sizeof(name), "%s/%.*s", count_phase_name(rule->phase), STR_ARG(rule->id));
    want = json_object_get(json_object_get(seen->row, "want"), name);
    seen->n += want != NULL;
    for (size_t k = 0; names[k] != NULL; k++)
        CASE_CHECK_GOT(seen->row, (json_int_t)rule->counts[k] == json_integer_value(json_object_get(want, names[k])), str_of(name));
}

static size_t place_of(const char *const *names, size_t n, const char *name)
{
    size_t i = 0;

    while (i < n && strcmp(names[i], name) != 0)
        i++;
    return i;
}

static size_t latency_place(const char *le)
{
    static const char *const names[] = {
#define LATENCY_BUCKET_ROW(ms, le) le,
#include "schemas/latency_buckets.def"
#undef LATENCY_BUCKET_ROW
    };

    return place_of(names, COUNT_LATENCY_INF, le);
}

static size_t upstream_error_place(const char *name)
{
    static const char *const names[] = {
        "",
#define UPSTREAM_ERROR_ROW(id, name, decision, meaning) name,
#include "schemas/upstream_errors.def"
#undef UPSTREAM_ERROR_ROW
    };

    return place_of(names, UPSTREAM_ERROR_N, name);
}

static const char *text_of(const json_t *row, const char *name, const char *fallback)
{
    const json_t *text = json_object_get(row, name);

    return text == NULL ? fallback : json_string_value(text);
}

static void outcome_of(const json_t *row, struct outcome *o)
{
    *o = (struct outcome){.origin = strcmp(text_of(row, "origin", "upstream"), "edge") == 0 ? ORIGIN_EDGE : ORIGIN_UPSTREAM,
                          .status = (unsigned)json_integer_value(json_object_get(row, "status")),
                          .upstream_error = (enum upstream_error)upstream_error_place(text_of(row, "upstream_error", "")),
                          .latency_ms = (uint64_t)json_integer_value(json_object_get(row, "latency_ms"))};
    CASE_CHECK(row, rec_decision_find(str_of(text_of(row, "decision", "allow")), &o->decision));
}

/* One request alone is in each of the sums once. */
static void check_sums(const json_t *row, const struct outcome *o, const struct counts_sums *sums)
{
    const json_t *code = json_object_get(row, "code");
    const size_t status = code == NULL ? o->status : (size_t)json_integer_value(code);
    uint64_t n_errors = 0;

    CASE_CHECK(row, sums->codes[o->origin][status] == 1 && counts_rig_requests(sums) == 1);
    CASE_CHECK(row, sums->decisions[o->decision] == 1);
    CASE_CHECK(row, sums->latency[latency_place(text_of(row, "le", "0.001"))] == 1);
    for (size_t i = 0; i < UPSTREAM_ERROR_N; i++)
        n_errors += sums->upstream_errors[i];
    CASE_CHECK(row, n_errors == (o->upstream_error != UPSTREAM_ERROR_NONE) &&
                        (n_errors == 0 || sums->upstream_errors[o->upstream_error] == 1));
}

static void check_row(const json_t *row)
{
    struct counts *c = counts_rig_open();
    struct seen_rules seen = {.row = row};
    struct counts_sums sums;
    struct outcome o;

    counts_rig_prepare(c, 7, COHORT_ACTIVE, row_rules, "l same", "h same");
    outcome_of(row, &o);
    const struct rec rec = {.config_version = 7,
                            .decision = o.decision,
                            .config_rules = case_str(row, "config_rules"),
                            .limits = case_str(row, "limits"),
                            .header_rules = case_str(row, "header_rules")};

    counts_add(c, &rec, &o);
    counts_totals(c, &sums);
    check_sums(row, &o, &sums);
    counts_each_rule(c, check_rule, &seen);
    CASE_CHECK(row, seen.n == json_object_size(json_object_get(row, "want")));
    CASE_CHECK(row, (json_int_t)counts_matches_left_out(c) == json_integer_value(json_object_get(row, "left_out")));
    counts_close(&c);
    counts_rig_forget();
}

static void each_request_is_counted_as_its_row_says(void)
{
    json_t *rows = cases_load("tests/cases/record/counts.json"), *row;
    size_t i;

    json_array_foreach(rows, i, row)
        check_row(row);
    json_decref(rows);
}

static void what_is_not_counted_apart_is_in_the_totals(void)
{
    struct counts *c = counts_rig_open();
    const struct outcome o = {.decision = DECISION_BAD_REQUEST, .status = 400};

    counts_rig_prepare(c, 7, COHORT_ACTIVE, "a", "", "");
    counts_add(c, NULL, &o);
    counts_rig_add(c, 6, COHORT_ACTIVE, 200, "a");
    counts_rig_add(c, 7, COHORT_CANDIDATE, 200, "a");
    counts_rig_add(c, 7, COHORT_ACTIVE, 200, "a");
    CU_ASSERT_EQUAL(counts_rig_total(c), 4);
    CU_ASSERT_EQUAL(counts_rig_rule(c, COUNT_CONFIG, "a"), 1);
    counts_close(&c);
    counts_rig_forget();
}

static void a_version_that_was_replaced_is_folded_after_its_time(void)
{
    struct counts *c = counts_rig_open();

    counts_rig_prepare(c, 1, COHORT_ACTIVE, "a gone", "", "");
    counts_rig_add(c, 1, COHORT_ACTIVE, 200, "a,gone");
    counts_rig_prepare(c, 2, COHORT_ACTIVE, "a b", "", "");
    counts_rig_add(c, 1, COHORT_ACTIVE, 200, "a");
    counts_rig_add(c, 2, COHORT_ACTIVE, 200, "a");
    counts_rig_tick(c, COUNTS_RETIRE_MS / 1000 - 1);
    CU_ASSERT_EQUAL(counts_rig_rule(c, COUNT_CONFIG, "gone"), 1);
    counts_rig_tick(c, 1);
    CU_ASSERT_EQUAL(counts_rig_rule(c, COUNT_CONFIG, "gone"), UINT64_MAX);
    CU_ASSERT_EQUAL(counts_rig_rule(c, COUNT_CONFIG, "a"), 3);
    CU_ASSERT_EQUAL(counts_rig_rule(c, COUNT_CONFIG, "b"), 0);
    counts_rig_add(c, 1, COHORT_ACTIVE, 200, "a");
    CU_ASSERT_EQUAL(counts_rig_total(c), 4);
    CU_ASSERT_EQUAL(counts_rig_rule(c, COUNT_CONFIG, "a"), 3);
    counts_rig_prepare(c, 3, COHORT_ACTIVE, "a", "", "");
    counts_rig_tick(c, COUNTS_RETIRE_MS / 1000);
    CU_ASSERT_EQUAL(counts_rig_rule(c, COUNT_CONFIG, "a"), 3); /* what was carried is carried on */
    counts_prepare(c, NULL, COHORT_ACTIVE);
    counts_rig_tick(c, COUNTS_RETIRE_MS / 1000);
    CU_ASSERT_EQUAL(counts_rig_rule(c, COUNT_CONFIG, "a"), UINT64_MAX);
    CU_ASSERT_EQUAL(counts_rig_total(c), 4);
    counts_close(&c);
    counts_rig_forget();
}

static void a_version_that_comes_back_is_counted_on(void)
{
    struct counts *c = counts_rig_open();

    counts_rig_prepare(c, 1, COHORT_ACTIVE, "a", "", "");
    counts_rig_add(c, 1, COHORT_ACTIVE, 200, "a");
    counts_rig_prepare(c, 2, COHORT_ACTIVE, "a", "", "");
    counts_rig_tick(c, 30);
    counts_rig_prepare(c, 1, COHORT_ACTIVE, "a c", "", "");
    counts_rig_tick(c, COUNTS_RETIRE_MS / 1000 + 1);
    counts_rig_add(c, 1, COHORT_ACTIVE, 200, "a,c");
    CU_ASSERT_EQUAL(counts_rig_rule(c, COUNT_CONFIG, "a"), 2);
    CU_ASSERT_EQUAL(counts_rig_rule(c, COUNT_CONFIG, "c"), 1); /* of the same number, with other rules */
    counts_close(&c);
    counts_rig_forget();
}

static void cohorts_retire_apart(void)
{
    struct counts *c = counts_rig_open();

    counts_rig_prepare(c, 1, COHORT_ACTIVE, "a", "", "");
    counts_rig_prepare(c, 2, COHORT_CANDIDATE, "a b", "", "");
    counts_rig_tick(c, COUNTS_RETIRE_MS / 1000 + 1);
    counts_rig_add(c, 1, COHORT_ACTIVE, 200, "a");
    counts_rig_add(c, 2, COHORT_CANDIDATE, 200, "a,b");
    CU_ASSERT_EQUAL(counts_rig_rule(c, COUNT_CONFIG, "a"), 2);
    CU_ASSERT_EQUAL(counts_rig_rule(c, COUNT_CONFIG, "b"), 1);
    counts_close(&c);
    counts_rig_forget();
}

static void more_versions_than_room_cost_the_one_that_retired_first(void)
{
    struct counts *c = counts_rig_open();
    char own[32];

    for (int v = 1; v <= 40; v++) {
        (void)snprintf(own, sizeof(own), "a own-%d", v);
        counts_rig_prepare(c, v, COHORT_ACTIVE, own, "", "");
        (void)snprintf(own, sizeof(own), "a,own-%d", v);
        counts_rig_add(c, v, COHORT_ACTIVE, 200, own);
        counts_rig.now_us += 1000;
        CU_ASSERT_EQUAL(counts_rig_rule(c, COUNT_CONFIG, "a"), (uint64_t)v);
        for (int before = 1; before <= v; before++) {
            (void)snprintf(own, sizeof(own), "own-%d", before);
            CU_ASSERT_EQUAL(counts_rig_rule(c, COUNT_CONFIG, own), before + COUNTS_VERSIONS_MAX > v ? 1 : UINT64_MAX);
        }
    }
    CU_ASSERT_EQUAL(counts_rig_total(c), 40);
    counts_close(&c);
    counts_rig_forget();
}

static void more_rules_than_room_are_left_out_and_told(void)
{
    struct counts *c = counts_rig_open();
    const int n = COUNTS_RULES_MAX + 100;
    char *ids = calloc((size_t)n, 8);
    int len = 0;

    CU_ASSERT_PTR_NOT_NULL_FATAL(ids);
    for (int i = 0; i < n; i++)
        len += snprintf(ids + len, (size_t)(n * 8 - len), "r%d ", i);
    for (int again = 0; again < 2; again++) {
        counts_rig_prepare(c, 1, COHORT_ACTIVE, ids, "", "");
        CU_ASSERT_EQUAL(counts_rules_left_out(c), 100);
    }
    counts_rig_add(c, 1, COHORT_ACTIVE, 200, "r0,r1023,r1024");
    CU_ASSERT_EQUAL(counts_rig_rule(c, COUNT_CONFIG, "r1023"), 1);
    CU_ASSERT_EQUAL(counts_rig_rule(c, COUNT_CONFIG, "r1024"), UINT64_MAX);
    free(ids);
    counts_close(&c);
    counts_rig_forget();
}

/* Pairs whose hashes agree in all that an entry of the index holds: looking for one comes by the other. Of a cross pair the second is a header rule. */
static const struct {
    const char *one, *two;
    bool cross;
} alike[] = {
    {"radbf97f4", "r9fd8a3a1", false}, {"rc0c01903", "re4cc0fb0", false}, {"r8720a9ff", "rf77e994d", true}, {"r3e4a2624", "r3fa599da", true}};

static void rules_whose_entries_in_the_index_are_alike_are_counted_apart(void)
{
    for (size_t i = 0; i < sizeof(alike) / sizeof(alike[0]); i++) {
        struct counts *c = counts_rig_open();
        char both[32];

        (void)snprintf(both, sizeof(both), "%s %s", alike[i].one, alike[i].cross ? "" : alike[i].two);
        counts_rig_prepare(c, 1, COHORT_ACTIVE, both, "", alike[i].cross ? alike[i].two : "");
        for (int n = 0; n < 3; n++)
            counts_rig_add(c, 1, COHORT_ACTIVE, 200, n == 0 ? alike[i].one : alike[i].two);
        CU_ASSERT_EQUAL(counts_rig_rule(c, COUNT_CONFIG, alike[i].one), 1);
        CU_ASSERT_EQUAL(counts_rig_rule(c, alike[i].cross ? COUNT_HEADER : COUNT_CONFIG, alike[i].two), alike[i].cross ? 0 : 2);
        counts_close(&c);
        counts_rig_forget();
    }
}

void test_counts_register(void)
{
    CU_pSuite s = CU_add_suite("counts", counts_rig_set_up, counts_rig_tear_down);
    CU_add_test(s, "each request is counted as its row says", each_request_is_counted_as_its_row_says);
    CU_add_test(s, "what is not counted apart is in the totals", what_is_not_counted_apart_is_in_the_totals);
    CU_add_test(s, "a version that was replaced is folded after its time", a_version_that_was_replaced_is_folded_after_its_time);
    CU_add_test(s, "a version that comes back is counted on", a_version_that_comes_back_is_counted_on);
    CU_add_test(s, "cohorts retire apart", cohorts_retire_apart);
    CU_add_test(s, "more versions than room cost the one that retired first", more_versions_than_room_cost_the_one_that_retired_first);
    CU_add_test(s, "rules whose entries in the index are alike are counted apart", rules_whose_entries_in_the_index_are_alike_are_counted_apart);
    CU_add_test(s, "more rules than room are left out and told", more_rules_than_room_are_left_out_and_told);
}
