/* Access records: HAProxy's line and the agent's part of it, read back. */
#include <CUnit/CUnit.h>

#include "spoa/record/record.h"
#include "tests/unit/case_raw.h"

static void a_record_of_another_shape_is_refused(void)
{
    json_t *rows = cases_load("tests/cases/record/refused.json"), *row;
    size_t i;
    json_array_foreach(rows, i, row)
    {
        struct record r;
        CASE_CHECK(row, !record_parse(case_str(row, "record"), &r));
    }
    json_decref(rows);
}

/* Written, read back, and what a reader of the line decodes: the text again. */
static void check_text(const json_t *row)
{
    char storage[REC_MAX], raw[256], rec[REC_MAX];
    struct buf b, whole;
    struct rec parsed;
    size_t room = (size_t) json_integer_value(json_object_get(row, "room"));
    buf_init(&b, storage, sizeof storage);
    rec_put_text(&b, case_raw(row, "text", raw, sizeof raw), (size_t) json_integer_value(json_object_get(row, "max")), room);
    CASE_CHECK_GOT(row, str_eq(buf_str(&b), case_str(row, "want")), buf_str(&b));
    CASE_CHECK(row, !b.full && b.len <= room);
    buf_init(&whole, rec, sizeof rec);
    buf_put_cstr(&whole, "3 0 a 7 allow - 192.0.2.1 - - - - - - - - - - id GET - - 0 - ");
    buf_put(&whole, buf_str(&b));
    if (CASE_CHECK(row, rec_parse(buf_str(&whole), &parsed)))
        CASE_CHECK(row, str_eq(parsed.path, str_eq(buf_str(&b), STR("-")) ? STR_NONE : buf_str(&b)));
}

static void each_text_is_written_as_its_row_says(void)
{
    json_t *rows = cases_load("tests/cases/record/texts.json"), *row;
    size_t i;
    json_array_foreach(rows, i, row) check_text(row);
    json_decref(rows);
}

void test_record_register(void)
{
    CU_pSuite s = CU_add_suite("record", NULL, NULL);
    CU_add_test(s, "a record of another shape is refused", a_record_of_another_shape_is_refused);
    CU_add_test(s, "each text is written as its row says, and reads back", each_text_is_written_as_its_row_says);
}
