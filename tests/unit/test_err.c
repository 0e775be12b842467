/* Errors and lists of them. */
#include <CUnit/CUnit.h>

#include "common/base/err.h"

static void every_code_has_a_name_and_a_status(void)
{
    for (int c = ERR_NONE + 1; c < ERR_N_CODES; c++) {
        const char *name = err_code_name((enum err_code)c);
        int status = err_code_http_status((enum err_code)c);

        CU_ASSERT(strspn(name, "abcdefghijklmnopqrstuvwxyz_") == strlen(name) && strlen(name) > 0);
        /* A row that only warns never fails a request. */
        CU_ASSERT(status == 200 || (status >= 400 && status < 600));
        for (int other = ERR_NONE; other < c; other++)
            CU_ASSERT(strcmp(name, err_code_name((enum err_code)other)) != 0);
    }
    CU_ASSERT_STRING_EQUAL(err_code_name(ERR_NONE), "none");
    CU_ASSERT(err_code_http_status(ERR_NONE) == 200);
    CU_ASSERT_STRING_EQUAL(err_code_name(ERR_UNKNOWN_MEMBER), "unknown_member");
    CU_ASSERT(err_code_http_status(ERR_TOO_LARGE) == 413);
}

static void the_first_error_stays(void)
{
    struct err e;

    err_clear(&e);
    CU_ASSERT(e.code == ERR_NONE && e.path[0] == '\0' && e.text[0] == '\0' && e.line == 0 && e.column == 0);
    CU_ASSERT(!err_set(&e, ERR_MISSING, "/a", "first %d", 1));
    CU_ASSERT(!err_set(&e, ERR_IO, "/b", "second"));
    CU_ASSERT(e.code == ERR_MISSING);
    CU_ASSERT_STRING_EQUAL(e.path, "/a");
    CU_ASSERT_STRING_EQUAL(e.text, "first 1");
    err_clear(&e);
    CU_ASSERT(!err_set(&e, ERR_IO, "", "%s", ""));
    CU_ASSERT(e.code == ERR_IO && e.text[0] == '\0');
}

static void long_texts_are_cut_between_characters(void)
{
    char longer[2000];

    /* Every offset of the cut within a character of three bytes. */
    for (size_t shift = 0; shift < 3; shift++) {
        struct err e;

        memset(longer, 'x', shift);
        for (size_t at = shift; at + 3 < sizeof(longer); at += 3)
            memcpy(longer + at, "\xe2\x82\xac", 3);
        longer[1500] = '\0';
        err_clear(&e);
        CU_ASSERT(!err_set(&e, ERR_IO, longer, "%s", longer));
        CU_ASSERT(str_is_utf8(str_of(e.text)) && strlen(e.text) > ERR_TEXT_MAX - 5);
        CU_ASSERT(str_is_utf8(str_of(e.path)) && strlen(e.path) > ERR_PATH_MAX - 5);
    }
}

static void texts_are_one_line_for_a_terminal(void)
{
    struct err e;

    err_clear(&e);
    CU_ASSERT(!err_set(&e, ERR_IO, "/a\x1b[2J", "bad \"%s\"", "x\r\n\x1b[31m\x7f\xc3\xa9"));
    CU_ASSERT_STRING_EQUAL(e.text, "bad \"x???[31m?\xc3\xa9\"");
    CU_ASSERT_STRING_EQUAL(e.path, "/a?[2J");
}

static void a_list_is_bounded_and_counts_the_rest(void)
{
    struct errlist l;
    struct err e;

    CU_ASSERT_FATAL(errlist_init(&l, 2));
    errlist_add(&l, ERR_MISSING, "/a", "n %d", 1);
    err_clear(&e);
    err_set(&e, ERR_IO, "/b", "two");
    errlist_add_err(&l, &e);
    errlist_add(&l, ERR_MISSING, "/c", "three");
    errlist_add_err(&l, &e);
    CU_ASSERT(l.n == 2 && l.n_dropped == 2);
    CU_ASSERT_STRING_EQUAL(l.items[0].text, "n 1");
    CU_ASSERT_STRING_EQUAL(l.items[1].path, "/b");
    errlist_release(&l);
    CU_ASSERT(l.items == NULL && l.n == 0);

    CU_ASSERT_FATAL(errlist_init(&l, 0));
    CU_ASSERT(l.max == 100);
    errlist_release(&l);
}

void test_err_register(void)
{
    CU_pSuite s = CU_add_suite("err", NULL, NULL);

    CU_add_test(s, "every code has a unique stable name and an HTTP status", every_code_has_a_name_and_a_status);
    CU_add_test(s, "the first error stays", the_first_error_stays);
    CU_add_test(s, "over-long texts and paths are cut between characters", long_texts_are_cut_between_characters);
    CU_add_test(s, "security: quoted input cannot send control characters to a terminal",
                texts_are_one_line_for_a_terminal);
    CU_add_test(s, "a list keeps its first faults and counts the rest", a_list_is_bounded_and_counts_the_rest);
}
