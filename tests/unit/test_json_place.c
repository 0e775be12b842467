/* Where values stand in a JSON text. */
#include <CUnit/CUnit.h>
#include <stdio.h>

#include "common/base/json_place.h"
#include "tests/unit/cases.h"

static size_t number(const json_t *row, const char *name)
{
    return (size_t)json_integer_value(json_object_get(row, name));
}

static void values(void)
{
    json_t *rows = cases_load("tests/cases/base/json_places.json"), *row;
    size_t i;

    json_array_foreach(rows, i, row)
    {
        const bool broken = json_is_true(json_object_get(row, "broken")),
                   nearest = json_is_true(json_object_get(row, "nearest"));
        struct json_place at = {.name = 999, .value = 999};
        char got[64];

        CASE_CHECK(row, json_place_find(case_str(row, "text"), case_str(row, "pointer"), &at) != broken);
        if (broken) {
            CASE_CHECK(row, at.name == 999 && at.value == 999);
            continue;
        }
        snprintf(got, sizeof(got), "name %zu, value %zu", at.name, at.value);
        CASE_CHECK_GOT(row, at.value == number(row, "value") && at.is_nearest == nearest, str_of(got));
        CASE_CHECK_GOT(row, nearest || at.name == number(row, "name"), str_of(got));
    }
    json_decref(rows);
}

static void strings(void)
{
    json_t *rows = cases_load("tests/cases/base/json_string_places.json"), *row;
    size_t i;

    json_array_foreach(rows, i, row)
    {
        const bool is_there = json_object_get(row, "offset") != NULL;
        const size_t at = json_place_in_string(case_str(row, "text"), 0, (unsigned)number(row, "line"),
                                               (unsigned)number(row, "column"));
        char got[32];

        snprintf(got, sizeof(got), "%zu", at);
        CASE_CHECK_GOT(row, is_there ? at == number(row, "offset") : at == SIZE_MAX, str_of(got));
    }
    json_decref(rows);
}

static void ends(void)
{
    CU_ASSERT_EQUAL(json_place_end(STR("12,3"), 0), 2);
    CU_ASSERT_EQUAL(json_place_end(STR("true"), 0), 4);
    CU_ASSERT_EQUAL(json_place_end(STR(" \"a]\\\"\" ]"), 1), 7);
    CU_ASSERT_EQUAL(json_place_end(STR("{\"a\":[1,{}]}x"), 0), 12);
    CU_ASSERT_EQUAL(json_place_end(STR("[1"), 0), SIZE_MAX);
    CU_ASSERT_EQUAL(json_place_end(STR("]"), 0), SIZE_MAX);
    CU_ASSERT_EQUAL(json_place_end(STR(""), 0), SIZE_MAX);
}

static void positions(void)
{
    const struct str text = STR("ab\n\xc3\xa4" "c\n");
    unsigned line, column;

    json_place_position(text, 0, &line, &column);
    CU_ASSERT(line == 1 && column == 1);
    json_place_position(text, 2, &line, &column);
    CU_ASSERT(line == 1 && column == 3);
    json_place_position(text, 5, &line, &column);
    CU_ASSERT(line == 2 && column == 3);
    json_place_position(text, 7, &line, &column);
    CU_ASSERT(line == 3 && column == 1);
}

void test_json_place_register(void)
{
    CU_pSuite s = CU_add_suite("json_place", NULL, NULL);

    CU_add_test(s, "a pointer leads to its value, what is missing to the innermost part around it", values);
    CU_add_test(s, "a place in a string's decoded text is found behind its escape sequences", strings);
    CU_add_test(s, "a value ends where its last byte is", ends);
    CU_add_test(s, "columns count bytes, lines newlines", positions);
}
