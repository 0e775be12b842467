/* Values written by people. */
#include <CUnit/CUnit.h>
#include <stdlib.h>

#include "common/base/parse.h"
#include "tests/unit/cases.h"

/* A refusal has the code, the path and, for a person, each of the row's texts. */
static void check_refusal(const json_t *row, bool accepted, const struct err *e)
{
    json_t *says;
    size_t i;

    CASE_CHECK(row, !accepted && e->code == ERR_BAD_VALUE);
    CASE_CHECK(row, strcmp(e->path, "/p") == 0);
    json_array_foreach(json_object_get(row, "error"), i, says)
        CASE_CHECK_GOT(row, strstr(e->text, json_string_value(says)) != NULL, str_of(e->text));
}

static bool is_refusal(const json_t *row)
{
    return json_object_get(row, "error") != NULL;
}

static uint64_t case_u64(const json_t *row, const char *name)
{
    return strtoull(case_str(row, name).p, NULL, 10);
}

static void durations(void)
{
    json_t *rows = cases_load("tests/cases/base/durations.json"), *row;
    size_t i;

    json_array_foreach(rows, i, row)
    {
        uint64_t ms = 424242, again = 0;
        char text[64];
        size_t len;
        struct err e;
        bool ok;

        err_clear(&e);
        ok = parse_duration_ms(case_str(row, "text"), &ms, "/p", &e);
        if (is_refusal(row)) {
            check_refusal(row, ok, &e);
            CASE_CHECK(row, ms == 424242);
            continue;
        }
        CASE_CHECK(row, ok && ms == (uint64_t)json_integer_value(json_object_get(row, "ms")));
        len = parse_render_duration(ms, text, sizeof(text));
        CASE_CHECK(row, str_eq((struct str){text, len}, case_str(row, "canonical")));
        CASE_CHECK(row, parse_duration_ms((struct str){text, len}, &again, "/p", &e) && again == ms);
    }
    json_decref(rows);
}

static void times(void)
{
    json_t *rows = cases_load("tests/cases/base/times.json"), *row;
    size_t i;

    json_array_foreach(rows, i, row)
    {
        json_t *wanted = json_object_get(row, "ms");
        int64_t ms = 424242;
        bool ok = parse_time_ms(case_str(row, "text"), &ms);

        CASE_CHECK(row, ok == (wanted != NULL));
        CASE_CHECK(row, ms == (wanted ? json_integer_value(wanted) : 424242));
    }
    json_decref(rows);
}

static void the_longest_duration_is_rendered_and_a_short_buffer_respected(void)
{
    char text[32];

    CU_ASSERT(parse_render_duration(UINT64_MAX, text, sizeof(text)) == strlen("5124095576030h25m51.615s"));
    CU_ASSERT(memcmp(text, "5124095576030h25m51.615s", 24) == 0);
    CU_ASSERT(parse_render_duration(UINT64_MAX, text, 4) <= 4);
}

static void sizes(void)
{
    json_t *rows = cases_load("tests/cases/base/sizes.json"), *row;
    size_t i;

    json_array_foreach(rows, i, row)
    {
        uint64_t bytes = 424242;
        struct err e;
        bool ok;

        err_clear(&e);
        ok = parse_size_bytes(case_str(row, "text"), &bytes, "/p", &e);
        if (is_refusal(row)) {
            check_refusal(row, ok, &e);
            CASE_CHECK(row, bytes == 424242);
        } else {
            CASE_CHECK(row, ok && bytes == case_u64(row, "bytes"));
        }
    }
    json_decref(rows);
}

static void whole_numbers(void)
{
    json_t *rows = cases_load("tests/cases/base/whole_numbers.json"), *row;
    size_t i;

    json_array_foreach(rows, i, row)
    {
        uint64_t n = 424242, of_program = 424242;
        struct err e;
        bool ok;

        err_clear(&e);
        ok = parse_u64(case_str(row, "text"), case_u64(row, "min"), case_u64(row, "max"), &n, "/p", &e);
        if (case_u64(row, "min") == 0)
            CASE_CHECK(row, parse_digits(case_str(row, "text"), case_u64(row, "max"), &of_program) == ok && of_program == n);
        if (is_refusal(row)) {
            check_refusal(row, ok, &e);
            CASE_CHECK(row, n == 424242);
        } else {
            CASE_CHECK(row, ok && n == case_u64(row, "value"));
        }
    }
    json_decref(rows);
}

static void rates(void)
{
    json_t *rows = cases_load("tests/cases/base/rates.json"), *row;
    size_t i;

    json_array_foreach(rows, i, row)
    {
        uint64_t n = 424242;
        char shown[RATE_TEXT_MAX];
        struct err e;
        bool ok;

        err_clear(&e);
        ok = parse_rate(case_str(row, "text"), &n, "/p", &e);
        if (is_refusal(row)) {
            check_refusal(row, ok, &e);
            CASE_CHECK(row, n == 424242);
        } else {
            CASE_CHECK(row, ok && n == case_u64(row, "value"));
            CASE_CHECK(row, str_eq((struct str){shown, parse_render_rate(n, shown)}, case_str(row, "shown")));
        }
    }
    json_decref(rows);
}

static void booleans(void)
{
    json_t *rows = cases_load("tests/cases/base/booleans.json"), *row;
    size_t i;

    json_array_foreach(rows, i, row)
    {
        bool wanted = json_is_true(json_object_get(row, "value")), value = !wanted, ok;
        struct err e;

        err_clear(&e);
        ok = parse_bool(case_str(row, "text"), &value, "/p", &e);
        if (is_refusal(row))
            check_refusal(row, ok, &e);
        CASE_CHECK(row, value == (is_refusal(row) ? !wanted : wanted));
    }
    json_decref(rows);
}

static void listen_addresses(void)
{
    json_t *rows = cases_load("tests/cases/base/listen.json"), *row;
    size_t i;

    json_array_foreach(rows, i, row)
    {
        /* Its own allocation without a NUL behind it: a read one byte too far is seen by AddressSanitizer. */
        struct str text = case_str(row, "text");
        char *copy = malloc(text.len > 0 ? text.len : 1);
        struct listen_addr at = {STR("untouched"), 7};
        struct err e;
        bool ok;

        CU_ASSERT_FATAL(copy != NULL);
        memcpy(copy, text.p, text.len);
        err_clear(&e);
        ok = parse_listen((struct str){copy, text.len}, &at, "/p", &e);
        if (is_refusal(row)) {
            check_refusal(row, ok, &e);
            CASE_CHECK(row, at.port == 7 && str_eq(at.host, STR("untouched")));
        } else {
            CASE_CHECK(row, ok && str_eq(at.host, case_str(row, "host")));
            CASE_CHECK(row, at.port == json_integer_value(json_object_get(row, "port")));
        }
        free(copy);
    }
    json_decref(rows);
}

void test_parse_register(void)
{
    CU_pSuite s = CU_add_suite("parse", NULL, NULL);

    CU_add_test(s, "durations are Go's texts in whole milliseconds, and every refusal says what would be right",
                durations);
    CU_add_test(s, "the longest duration is rendered and a short buffer respected",
                the_longest_duration_is_rendered_and_a_short_buffer_respected);
    CU_add_test(s, "sizes are whole bytes or binary units that fit into 64 bits", sizes);
    CU_add_test(s, "whole numbers have one spelling and a range", whole_numbers);
    CU_add_test(s, "rates are parts of ten thousand, written as decimals", rates);
    CU_add_test(s, "booleans are true and false and nothing like it", booleans);
    CU_add_test(s, "a time is the one that RFC 3339 says, and what is none is refused", times);
    CU_add_test(s, "listen addresses are host and port, IPv6 in brackets", listen_addresses);
}
