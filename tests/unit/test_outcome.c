/* What a record's end means, and why an upstream gave no answer. */
#include <CUnit/CUnit.h>

#include "spoa/record/outcome.h"
#include "tests/unit/case_raw.h"

static void check_row(const json_t *row)
{
    struct record r;
    struct outcome o;
    const json_t *want = json_object_get(row, "want"), *text = json_object_get(want, "text");
    if (!CASE_CHECK(row, record_parse(case_str(row, "record"), &r)))
        return;
    outcome_read(&r, &o);
    CASE_CHECK_GOT(row, str_eq(str_of(decision_name(o.decision)), case_str(want, "decision")), str_of(decision_name(o.decision)));
    CASE_CHECK(row, str_eq(o.origin == ORIGIN_UPSTREAM ? STR("upstream") : STR("edge"), case_str(want, "origin")));
    CASE_CHECK(row, (json_int_t) o.status == json_integer_value(json_object_get(want, "status")));
    CASE_CHECK(row, str_eq(str_of(upstream_error_name(o.upstream_error)), case_str(want, "upstream_error")));
    CASE_CHECK(row, json_is_null(text) ? o.upstream_error_text == NULL
                                       : o.upstream_error_text != NULL && str_eq(str_of(o.upstream_error_text), case_str(want, "text")));
    CASE_CHECK(row, (json_int_t) o.latency_ms == json_integer_value(json_object_get(want, "latency_ms")));
    CASE_CHECK(row, (json_int_t) o.duration_ms == json_integer_value(json_object_get(want, "duration_ms")));
}

static void each_record_has_the_outcome_of_its_row(void)
{
    json_t *rows = cases_load("tests/cases/outcome/outcomes.json"), *row;
    size_t i;
    json_array_foreach(rows, i, row) check_row(row);
    json_decref(rows);
}

/* The text that a row wants, of any of rows. */
static bool is_wanted(const json_t *rows, struct str text)
{
    json_t *row;
    size_t i;
    json_array_foreach(rows, i, row) if (str_eq(case_str(json_object_get(row, "want"), "text"), text)) return true;
    return false;
}

static void every_cause_has_a_row(void)
{
    json_t *rows = cases_load("tests/cases/outcome/outcomes.json");
    static const struct str texts[] = {
#define UPSTREAM_CAUSE_ROW(id, name, kind, text) {(text), sizeof(text) - 1},
#include "schemas/upstream_causes.def"
#undef UPSTREAM_CAUSE_ROW
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (!is_wanted(rows, texts[i]))
            CU_FAIL("a cause of schemas/upstream_causes.def is in no row");
    json_decref(rows);
}

static void what_the_ring_dropped_is_told_from_a_record(void)
{
    json_t *rows = cases_load("tests/cases/outcome/dropped.json"), *row;
    size_t i;
    json_array_foreach(rows, i, row)
    {
        char raw[256];
        uint64_t n = 77;
        const json_t *want = json_object_get(row, "n");
        struct record r;
        struct str line = case_raw(row, "line", raw, sizeof raw);
        CASE_CHECK(row, record_dropped(line, &n) == (want != NULL));
        CASE_CHECK(row, n == (want != NULL ? (uint64_t) json_integer_value(want) : 77));
        CASE_CHECK(row, !record_parse(line, &r));
    }
    json_decref(rows);
}

void test_outcome_register(void)
{
    CU_pSuite s = CU_add_suite("outcome", NULL, NULL);
    CU_add_test(s, "each record has the outcome of its row", each_record_has_the_outcome_of_its_row);
    CU_add_test(s, "every cause of a missing answer has a row", every_cause_has_a_row);
    CU_add_test(s, "what the ring dropped is told from a record", what_the_ring_dropped_is_told_from_a_record);
}
