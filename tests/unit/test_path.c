/* Path normalisation: the path corpus of tests/cases/http, and what holds for every path. */
#include <CUnit/CUnit.h>

#include "common/http/path.h"
#include "tests/unit/case_raw.h"

enum { HEX_MAX = 256 };

static struct arena arena;

static int set_up(void)
{
    arena_init(&arena, 4096, 0);
    return 0;
}

static int tear_down(void)
{
    arena_release(&arena);
    return 0;
}

/* Calls check on every row with its raw path. */
static void each_row(const char *file, void (*check)(const json_t *row, struct str raw))
{
    json_t *rows = cases_load(file), *row;
    size_t i;
    json_array_foreach(rows, i, row)
    {
        char storage[HEX_MAX];
        struct str raw = case_raw(row, "raw", storage, sizeof(storage));
        if (CASE_CHECK(row, raw.p != NULL))
            check(row, raw);
        arena_reset(&arena);
    }
    json_decref(rows);
}

static void check_refused(const json_t *row, struct str raw)
{
    struct path p = {STR("untouched"), STR("untouched")};
    struct str verdict = str_of(path_verdict_name(path_normalise(raw, &arena, &p)));
    CASE_CHECK(row, str_eq(verdict, case_str(row, "verdict")));
    CASE_CHECK(row, str_eq(p.normal, STR("untouched")) && str_eq(p.forward, STR("untouched")));
}

static void refused_rows(void)
{
    each_row("tests/cases/http/path_refused.json", check_refused);
}

static void check_accepted(const json_t *row, struct str raw)
{
    struct path p;
    struct str forward = case_str(row, "forward");
    if (!CASE_CHECK(row, path_normalise(raw, &arena, &p) == PATH_OK))
        return;
    CASE_CHECK(row, str_eq(p.normal, case_str(row, "normal")));
    CASE_CHECK(row, str_eq(p.forward, forward.p == NULL ? raw : forward));
}

static void accepted_rows(void)
{
    each_row("tests/cases/http/path_accepted.json", check_accepted);
}

static void check_again(const json_t *row, struct str raw)
{
    struct path p, again;
    if (!CASE_CHECK(row, path_normalise(raw, &arena, &p) == PATH_OK))
        return;
    CASE_CHECK(row, path_normalise(p.forward, &arena, &again) == PATH_OK && str_eq(again.normal, p.normal) &&
                        str_eq(again.forward, p.forward));
    if (str_find(raw, STR("%25")) == SIZE_MAX)
        CASE_CHECK(row, path_normalise(p.normal, &arena, &again) == PATH_OK && str_eq(again.normal, p.normal));
}

static void normalising_again(void)
{
    each_row("tests/cases/http/path_accepted.json", check_again);
}

static void check_spelling(const json_t *row, struct str raw)
{
    struct path p, again;
    enum path_verdict v = path_normalise(raw, &arena, &p);
    if (case_str(row, "normal").p == NULL) {
        CASE_CHECK(row, str_eq(str_of(path_verdict_name(v)), case_str(row, "verdict")));
        return;
    }
    CASE_CHECK(row, v == PATH_OK && str_eq(p.normal, case_str(row, "normal")));
    CASE_CHECK(row, path_normalise(p.forward, &arena, &again) == PATH_OK && str_eq(again.normal, p.normal));
}

static void every_spelling(void)
{
    each_row("tests/cases/http/path_spellings.json", check_spelling);
}

static bool seen[PATH_N_VERDICTS];

static void note_verdict(const json_t *row, struct str raw)
{
    struct path p;
    enum path_verdict v = path_normalise(raw, &arena, &p);
    if (CASE_CHECK(row, v != PATH_OK && v < PATH_N_VERDICTS))
        seen[v] = true;
}

static void every_refusal_has_rows(void)
{
    each_row("tests/cases/http/path_refused.json", note_verdict);
    for (int v = PATH_OK + 1; v < PATH_N_VERDICTS; v++)
        CU_ASSERT_EQUAL(seen[v], v != PATH_NO_MEMORY);
}

/* The path is a part of a longer target: what stands behind it belongs to the query. */
static void escape_ends_with_the_path(void)
{
    struct str target = STR("/a%2e%2e/b");
    struct path p;
    CU_ASSERT_EQUAL(path_normalise(str_sub(target, 0, 3), &arena, &p), PATH_BAD_ESCAPE);
    CU_ASSERT_EQUAL(path_normalise(str_sub(target, 0, 4), &arena, &p), PATH_BAD_ESCAPE);
    CU_ASSERT_EQUAL(path_normalise(str_sub(target, 0, 5), &arena, &p), PATH_OK);
    CU_ASSERT(str_eq(p.normal, STR("/a.")));
    arena_reset(&arena);
}

static void plain_is_borrowed(void)
{
    struct str raw = STR("/v1/projects/7");
    struct path p;
    CU_ASSERT_EQUAL(path_normalise(raw, &arena, &p), PATH_OK);
    CU_ASSERT_PTR_EQUAL(p.normal.p, raw.p);
    CU_ASSERT_PTR_EQUAL(p.forward.p, raw.p);
    CU_ASSERT_EQUAL(p.normal.len, raw.len);
    CU_ASSERT_EQUAL(arena.used_bytes, 0);
    arena_reset(&arena);
}

static void memory_is_bounded(void)
{
    char raw[1000];
    memset(raw, '|', sizeof(raw));
    raw[0] = '/';
    raw[1] = ';';
    struct path p;
    CU_ASSERT_EQUAL(path_normalise((struct str){raw, sizeof(raw)}, &arena, &p), PATH_OK);
    CU_ASSERT(arena.used_bytes <= 4 * sizeof(raw));
    CU_ASSERT(str_eq(p.normal, STR("/")));
    CU_ASSERT_EQUAL(p.forward.len, 2 + 3 * (sizeof(raw) - 2));
    arena_reset(&arena);
}

static void no_memory(void)
{
    struct arena tight;
    struct path p = {STR("untouched"), STR("untouched")};
    arena_init(&tight, 64, 4);
    CU_ASSERT_EQUAL(path_normalise(STR("/%61dmin"), &tight, &p), PATH_NO_MEMORY);
    CU_ASSERT_EQUAL(path_normalise(STR("/a|b|"), &tight, &p), PATH_NO_MEMORY);
    CU_ASSERT(str_eq(p.normal, STR("untouched")));
    CU_ASSERT_EQUAL(path_normalise(STR("/admin/users"), &tight, &p), PATH_OK);
    arena_release(&tight);
}

static void names_are_unique(void)
{
    for (int v = 0; v < PATH_N_VERDICTS; v++)
        for (int other = v + 1; other < PATH_N_VERDICTS; other++)
            CU_ASSERT_STRING_NOT_EQUAL(path_verdict_name((enum path_verdict)v),
                                       path_verdict_name((enum path_verdict)other));
    CU_ASSERT_STRING_EQUAL(path_verdict_name(PATH_OK), "ok");
    CU_ASSERT_STRING_EQUAL(path_verdict_name(PATH_N_VERDICTS), "unknown");
}

void test_path_register(void)
{
    CU_pSuite s = CU_add_suite("path", set_up, tear_down);
    CU_add_test(s, "an ambiguous path is refused in every spelling, so no upstream can read it past a rule",
                refused_rows);
    CU_add_test(s, "an accepted path has one normal form, so no spelling bypasses a rule, and is forwarded as sent",
                accepted_rows);
    CU_add_test(s, "raw, encoded, doubly encoded and mixed spellings of one path get one answer", every_spelling);
    CU_add_test(s, "a path forwarded is judged like the path received", normalising_again);
    CU_add_test(s, "every reason of refusal has a row of data", every_refusal_has_rows);
    CU_add_test(s, "an escape is never completed by bytes behind the path", escape_ends_with_the_path);
    CU_add_test(s, "a path in normal form is borrowed and takes no memory", plain_is_borrowed);
    CU_add_test(s, "a path takes at most four times its length of memory", memory_is_bounded);
    CU_add_test(s, "a path that finds no memory is refused and leaves the output alone", no_memory);
    CU_add_test(s, "every verdict has a name of its own", names_are_unique);
}
