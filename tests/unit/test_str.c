/* Byte strings and the bounded buffer. */
#include <CUnit/CUnit.h>

#include "common/base/str.h"
#include "tests/unit/cases.h"

static void parts_are_clamped(void)
{
    struct str s = STR("edge");

    CU_ASSERT(str_eq(str_sub(s, 1, 3), STR("dg")));
    CU_ASSERT(str_eq(str_sub(s, 2, 99), STR("ge")));
    CU_ASSERT(str_sub(s, 3, 1).len == 0);
    CU_ASSERT(str_sub(s, 99, SIZE_MAX).len == 0);
    CU_ASSERT(str_sub(STR_NONE, 0, 5).len == 0);
    CU_ASSERT(str_eq(str_of("edge"), s));
}

static void comparisons_read_bytes(void)
{
    CU_ASSERT(str_eq(STR_NONE, STR("")));
    CU_ASSERT(str_eq(STR("a\0b"), STR("a\0b")));
    CU_ASSERT(!str_eq(STR("a\0b"), STR("a\0c")));
    CU_ASSERT(!str_eq(STR("a"), STR("ab")));
    CU_ASSERT(str_eq_nocase(STR("X-Edge-Id"), STR("x-eDGE-iD")));
    CU_ASSERT(!str_eq_nocase(STR("x_edge"), STR("x-edge")));
    CU_ASSERT(!str_eq_nocase(STR("@"), STR("`")));
    CU_ASSERT(!str_eq_nocase(STR("\xc3\x84"), STR("\xc3\xa4")));
    CU_ASSERT(!str_eq_nocase(STR("a"), STR("")));
    CU_ASSERT(str_cmp(STR("a"), STR("b")) < 0);
    CU_ASSERT(str_cmp(STR("\xff"), STR("a")) > 0);
    CU_ASSERT(str_cmp(STR("ab"), STR("a")) > 0);
    CU_ASSERT(str_cmp(STR("a"), STR("ab")) < 0);
    CU_ASSERT(str_cmp(STR_NONE, STR("")) == 0);
}

static void searches_find_the_first(void)
{
    CU_ASSERT(str_starts(STR("abc"), STR("ab")) && str_starts(STR("abc"), STR_NONE));
    CU_ASSERT(!str_starts(STR("a"), STR("ab")) && !str_starts(STR("xbc"), STR("ab")));
    CU_ASSERT(str_ends(STR("abc"), STR("bc")) && str_ends(STR("abc"), STR("")));
    CU_ASSERT(!str_ends(STR("c"), STR("bc")) && !str_ends(STR("abx"), STR("bc")));
    CU_ASSERT(str_find(STR("a.b.b"), STR(".b")) == 1);
    CU_ASSERT(str_find(STR("abc"), STR("")) == 0 && str_find(STR_NONE, STR_NONE) == 0);
    CU_ASSERT(str_find(STR("abc"), STR("x")) == SIZE_MAX && str_find(STR("a"), STR("ab")) == SIZE_MAX);
    CU_ASSERT(str_find_byte(STR("a=b=c"), '=') == 1);
    CU_ASSERT(str_find_byte(STR("abc"), '=') == SIZE_MAX && str_find_byte(STR_NONE, 'a') == SIZE_MAX);
}

static void a_span_ends_before_the_first_byte_outside_the_set(void)
{
    static const bool letters[256] = {['a' ... 'z'] = true, [0xff] = true};
    char text[16];

    memset(text, 'a', sizeof(text));
    for (size_t len = 0; len <= sizeof(text); len++)
        CU_ASSERT(str_span((struct str){text, len}, letters) == len);
    for (size_t at = 0; at < sizeof(text); at++) {
        memset(text, 'z', sizeof(text));
        text[at] = '.';
        CU_ASSERT(str_span((struct str){text, sizeof(text)}, letters) == at);
    }
    CU_ASSERT(str_span(STR("\xff\x80"), letters) == 1);
    CU_ASSERT(str_span(STR_NONE, letters) == 0);
}

static void trim_takes_blanks_off_both_ends(void)
{
    CU_ASSERT(str_eq(str_trim(STR(" \t\r\na b\n ")), STR("a b")));
    CU_ASSERT(str_trim(STR(" \t ")).len == 0);
    CU_ASSERT(str_trim(STR_NONE).len == 0);
    CU_ASSERT(str_eq(str_trim(STR("\va\f")), STR("\va\f")));
}

static void tokens_hold_no_separator(void)
{
    /* RFC 9110 5.6.2, spelled out: the 77 characters, and no other byte. */
    static const char tchars[] = "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

    for (int c = 0; c < 256; c++)
        CU_ASSERT(ascii_is_tchar((char)c) == (memchr(tchars, c, sizeof(tchars) - 1) != NULL));
    CU_ASSERT(str_is_token(STR("X-Edge_1")));
    CU_ASSERT(!str_is_token(STR("")));
    CU_ASSERT(!str_is_token(STR("a b")) && !str_is_token(STR("a:")) && !str_is_token(STR("a\0")));
}

static void utf8_is_strict(void)
{
    json_t *rows = cases_load("tests/cases/base/utf8.json"), *row;
    size_t i;
    char bytes[64];

    json_array_foreach(rows, i, row)
    {
        struct str s = case_bytes(row, "bytes_hex", bytes, sizeof(bytes));

        CASE_CHECK(row, str_is_utf8(s) == json_is_true(json_object_get(row, "valid")));
    }
    CU_ASSERT(str_utf8_len(STR_NONE) == 0);
    CU_ASSERT(str_utf8_len(STR("\xe2\x82\xac!")) == 3);
    json_decref(rows);
}

static void cuts_keep_characters_whole(void)
{
    struct str s = STR("a\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80");
    static const size_t want[] = {0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10, 10};

    for (size_t max = 0; max < sizeof(want) / sizeof(want[0]); max++)
        CU_ASSERT(str_cut_utf8(s, max).len == want[max]);
    /* Bytes that are no UTF-8 anyway are cut where the limit is. */
    CU_ASSERT(str_cut_utf8(STR("\x80\x80\x80\x80\x80\x80"), 5).len == 5);
    CU_ASSERT(str_cut_utf8(STR("\x80\x80\x80"), 2).len == 2);
}

static void a_suggestion_is_near(void)
{
    static const char long_name[] = "a_name_that_is_longer_than_what_is_worth_comparing";
    static const char *const names[] = {"limit", "period", "key", long_name, NULL};

    CU_ASSERT_PTR_EQUAL(str_nearest(STR("limti"), names), names[0]);
    CU_ASSERT_PTR_EQUAL(str_nearest(STR("limits"), names), names[0]);
    CU_ASSERT_PTR_EQUAL(str_nearest(STR("perod"), names), names[1]);
    CU_ASSERT_PTR_EQUAL(str_nearest(STR("keyed"), names), names[2]);
    CU_ASSERT(str_nearest(STR("limitless"), names) == NULL);
    /* Two replaced letters of two share nothing with what was written. */
    CU_ASSERT(str_nearest(STR("ab"), names) == NULL && str_nearest(STR(""), names) == NULL);
    CU_ASSERT(str_nearest(str_of(long_name), names) == NULL);
}

static void a_write_that_does_not_fit_leaves_the_buffer_as_it_was(void)
{
    char storage[8];
    struct buf b;

    buf_init(&b, storage, sizeof(storage));
    buf_put_cstr(&b, "12345");
    buf_put(&b, STR_NONE);
    buf_put(&b, STR("6789"));
    CU_ASSERT(b.full && str_eq(buf_str(&b), STR("12345")));
    buf_put_byte(&b, 'x');
    buf_printf(&b, "%d", 1);
    CU_ASSERT(str_eq(buf_str(&b), STR("12345")));

    buf_init(&b, storage, sizeof(storage));
    buf_put(&b, STR("12345678"));
    CU_ASSERT(!b.full && b.len == 8);
    buf_printf(&b, "%s", "");
    CU_ASSERT(b.full && b.len == 8);

    buf_init(&b, storage, sizeof(storage));
    buf_put_json(&b, STR("123456\n"));
    CU_ASSERT(b.full && b.len == 0);

    buf_init(&b, storage, 3);
    buf_put_i64(&b, -123);
    CU_ASSERT(b.full && b.len == 0);
}

static void numbers_are_written_in_full(void)
{
    char storage[128];
    struct buf b;

    buf_init(&b, storage, sizeof(storage));
    buf_put_u64(&b, 0);
    buf_put_byte(&b, ' ');
    buf_put_u64(&b, UINT64_MAX);
    buf_put_byte(&b, ' ');
    buf_put_i64(&b, INT64_MIN);
    buf_put_byte(&b, ' ');
    buf_put_i64(&b, INT64_MAX);
    buf_printf(&b, " %s=%d", "x", -1);
    CU_ASSERT(str_eq(buf_str(&b), STR("0 18446744073709551615 -9223372036854775808 9223372036854775807 x=-1")));
}

static void json_strings_are_valid_for_any_bytes(void)
{
    json_t *rows = cases_load("tests/cases/base/json_strings.json"), *row;
    char bytes[64], storage[256];
    struct buf b;
    size_t i;

    json_array_foreach(rows, i, row)
    {
        struct str s = case_bytes(row, "bytes_hex", bytes, sizeof(bytes));

        buf_init(&b, storage, sizeof(storage));
        buf_put_json(&b, s);
        CASE_CHECK(row, !b.full && str_eq(buf_str(&b), case_str(row, "json")));
    }
    for (int c = 0; c < 256; c++) {
        char byte = (char)c;
        json_t *back;

        buf_init(&b, storage, sizeof(storage));
        buf_put_json(&b, (struct str){&byte, 1});
        back = json_loadb(b.p, b.len, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
        CU_ASSERT(json_is_string(back));
        json_decref(back);
    }
    json_decref(rows);
}

static void utf8_by_replacement(void)
{
    char storage[12];
    struct buf b;

    buf_init(&b, storage, sizeof storage);
    buf_put_utf8(&b, STR("a\xc3\xa9\xc3(\xff"));
    CU_ASSERT(!b.full && str_eq(buf_str(&b), STR("a\xc3\xa9\xef\xbf\xbd(\xef\xbf\xbd")));
    buf_put_utf8(&b, STR("\xff"));
    CU_ASSERT(b.full && b.len == 10);
}

void test_str_register(void)
{
    CU_pSuite s = CU_add_suite("str", NULL, NULL);

    CU_add_test(s, "a part of a string never reaches outside it", parts_are_clamped);
    CU_add_test(s, "comparisons see every byte, and only ASCII case is ignored", comparisons_read_bytes);
    CU_add_test(s, "searches find the first occurrence", searches_find_the_first);
    CU_add_test(s, "a span ends before the first byte outside the set", a_span_ends_before_the_first_byte_outside_the_set);
    CU_add_test(s, "trimming takes blanks off both ends only", trim_takes_blanks_off_both_ends);
    CU_add_test(s, "a token holds RFC 9110's characters and no other byte", tokens_hold_no_separator);
    CU_add_test(s, "bytes that are no UTF-8 are replaced one by one, and what does not fit leaves the buffer as it was", utf8_by_replacement);
    CU_add_test(s, "security: only shortest-form UTF-8 without surrogates is accepted", utf8_is_strict);
    CU_add_test(s, "a cut never splits a character", cuts_keep_characters_whole);
    CU_add_test(s, "a suggested name is at most two letters away", a_suggestion_is_near);
    CU_add_test(s, "a write that does not fit leaves the buffer as it was",
                a_write_that_does_not_fit_leaves_the_buffer_as_it_was);
    CU_add_test(s, "numbers are written in full at the edges of their range", numbers_are_written_in_full);
    CU_add_test(s, "security: any bytes become one valid JSON string", json_strings_are_valid_for_any_bytes);
}
