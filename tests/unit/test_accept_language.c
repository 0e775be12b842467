/* Accept-Language: the ranges that a header wants, row by row. */
#include <CUnit/CUnit.h>

#include "common/http/accept_language.h"
#include "tests/unit/case_raw.h"

static void check_row(const json_t *row)
{
    char storage[ACCEPT_LANGUAGE_MAX];
    struct language_range ranges[ACCEPT_LANGUAGE_RANGES_MAX];
    struct str header = case_raw(row, "header", storage, sizeof storage);
    const json_t *wanted = json_object_get(row, "ranges"), *pair;
    size_t n = accept_language_parse(header, ranges), i;

    if (!CASE_CHECK(row, n == json_array_size(wanted)))
        return;
    json_array_foreach(wanted, i, pair)
    {
        struct str tag = ranges[i].tag;

        CASE_CHECK_GOT(row, str_eq(tag, str_of(json_string_value(json_array_get(pair, 0)))), tag);
        CASE_CHECK(row, ranges[i].thousandths == json_integer_value(json_array_get(pair, 1)));
        CASE_CHECK(row, tag.p >= header.p && tag.p + tag.len <= header.p + header.len);
    }
}

static void rows_of_ranges(void)
{
    json_t *rows = cases_load("tests/cases/http/accept_language.json"), *row;
    size_t i;

    json_array_foreach(rows, i, row)
        check_row(row);
    json_decref(rows);
}

static void much_too_long(void)
{
    static char text[60000];
    struct language_range ranges[ACCEPT_LANGUAGE_RANGES_MAX];

    for (size_t i = 0; i < sizeof text; i++)
        text[i] = "en,"[i % 3];
    CU_ASSERT_EQUAL(accept_language_parse((struct str){text, sizeof text}, ranges), 0);
    CU_ASSERT_EQUAL(accept_language_parse(STR_NONE, ranges), 0);
}

void test_accept_language_register(void)
{
    CU_pSuite s = CU_add_suite("accept_language", NULL, NULL);

    CU_add_test(s, "Accept-Language is its ranges that make sense, best first", rows_of_ranges);
    CU_add_test(s, "a header that is missing or of any length too long wants nothing", much_too_long);
}
