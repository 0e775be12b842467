/* Expressions read and written: texts and ASTs that are accepted with their canonical forms, what is refused and how it
 * is explained. The rules are rows of tests/cases/expr. */
#include <CUnit/CUnit.h>
#include <stdlib.h>

#include "tests/unit/case_raw.h"
#include "tests/unit/expr_rows.h"

enum { RAW_MAX = 64 };

static struct str canonical(const struct expr *x, char storage[EXPR_TEXT_MAX])
{
    struct buf b;

    buf_init(&b, storage, EXPR_TEXT_MAX);
    expr_render(x, &b);
    return b.full ? STR("(does not fit)") : buf_str(&b);
}

static bool json_is(const struct expr *x, const json_t *wanted)
{
    json_t *got = expr_to_json(x);
    bool same = got != NULL && json_equal(got, wanted) == 1;

    json_decref(got);
    return same;
}

/* Text, tree and JSON name each other: from x to either and back is x. */
static void check_inverse(const json_t *row, const struct expr *x)
{
    char storage[EXPR_TEXT_MAX];
    json_t *json = expr_to_json(x);
    const struct expr *again = NULL;
    struct err e = {0};

    CASE_CHECK_GOT(row, expr_parse(canonical(x, storage), &expr_arena, &again, &e) && expr_equal(again, x),
                   str_of(e.text));
    again = expr_row_decode(json);
    CASE_CHECK(row, again != NULL && expr_equal(again, x));
    json_decref(json);
}

static void check_valid(const json_t *row)
{
    struct str text = case_str(row, "text"), wanted = case_str(row, "canonical"), got;
    char storage[EXPR_TEXT_MAX];
    const struct expr *x = NULL;
    struct err e = {0};

    if (!CASE_CHECK_GOT(row, expr_parse(text, &expr_arena, &x, &e), str_of(e.text)))
        return;
    got = canonical(x, storage);
    CASE_CHECK_GOT(row, str_eq(got, wanted.p == NULL ? text : wanted), got);
    CASE_CHECK(row, json_is(x, json_object_get(row, "ast")));
    check_inverse(row, x);
}

static void valid_texts(void)
{
    expr_each_row("tests/cases/expr/valid.json", check_valid);
}

static void check_ast_canonical(const json_t *row)
{
    char storage[EXPR_TEXT_MAX];
    const struct expr *x = expr_row_decode(json_object_get(row, "ast"));
    struct str got;

    if (!CASE_CHECK_GOT(row, x != NULL, expr_errors.n > 0 ? str_of(expr_errors.items[0].text) : STR_NONE))
        return;
    got = canonical(x, storage);
    CASE_CHECK_GOT(row, str_eq(got, case_str(row, "text")), got);
    CASE_CHECK(row, json_is(x, json_object_get(row, "canonical")));
    check_inverse(row, x);
}

static void canonical_asts(void)
{
    expr_each_row("tests/cases/expr/ast_canonical.json", check_ast_canonical);
}

static void check_text_refused(const json_t *row)
{
    static const struct expr *const untouched = (const struct expr *)&expr_arena;
    char raw[RAW_MAX];
    struct str text = case_raw(row, "text", raw, sizeof(raw));
    const json_t *part, *parts = json_object_get(row, "says");
    const struct expr *x = untouched;
    struct err e = {0};
    size_t i;

    CASE_CHECK(row, !expr_parse(text, &expr_arena, &x, &e) && x == untouched);
    CASE_CHECK_GOT(row, str_eq(case_str(row, "code"), str_of(err_code_name(e.code))), str_of(e.text));
    CASE_CHECK_GOT(row, e.line == expr_row_number(row, "line") && e.column == expr_row_number(row, "column"),
                   str_of(e.text));
    CASE_CHECK(row, e.path[0] == '\0' && e.text[0] != '\0');
    json_array_foreach(parts, i, part) CASE_CHECK_GOT(row, expr_row_says(&e, part), str_of(e.text));
}

static void refused_texts(void)
{
    expr_each_row("tests/cases/expr/text_refused.json", check_text_refused);
}

static void check_ast_refused(const json_t *row)
{
    CASE_CHECK(row, expr_row_decode(json_object_get(row, "ast")) == NULL);
    expr_row_check_errors(row, false);
}

static void refused_asts(void)
{
    expr_each_row("tests/cases/expr/ast_refused.json", check_ast_refused);
}

static void check_never_crashes(const json_t *row)
{
    struct str text = case_str(row, "text");

    for (size_t len = 0; len <= text.len; len++) {
        const struct expr *x = NULL;
        struct err e = {0};
        bool ok = expr_parse(str_sub(text, 0, len), &expr_arena, &x, &e);

        CASE_CHECK(row, ok == (x != NULL) && ok == (e.code == ERR_NONE));
        arena_reset(&expr_arena);
    }
}

static void every_prefix(void)
{
    expr_each_row("tests/cases/expr/valid.json", check_never_crashes);
}

/* Each differs from the others, in one part of a condition or group. */
static void unequal_trees(void)
{
    static const char *const texts[] = {
        "http.host eq \"a\"",
        "http.host ne \"a\"",
        "http.host eq \"b\"",
        "http.user_agent eq \"a\"",
        "http.host in {\"a\"}",
        "http.host in {\"a\" \"a\"}",
        "http.request.headers[\"a\"] eq \"a\"",
        "http.request.headers[\"A\"] eq \"a\"",
        "ip.src.asnum in {1}",
        "ip.src.asnum in {1..1}",
        "not http.host eq \"a\"",
        "true",
        "not true",
        "true and true",
        "true or true",
        "not (true or true)",
        "true and true and true",
        "true and (true and true)",
        "true and not true",
    };
    enum { N = sizeof(texts) / sizeof(texts[0]) };
    const struct expr *trees[N];

    for (size_t i = 0; i < N; i++) {
        struct err e = {0};

        CU_ASSERT_FATAL(expr_parse(str_of(texts[i]), &expr_arena, &trees[i], &e));
    }
    for (size_t i = 0; i < N; i++)
        for (size_t j = 0; j < N; j++)
            CU_ASSERT(expr_equal(trees[i], trees[j]) == (i == j));
    expr_forget();
}

static void only_literal_true_is_site_wide(void)
{
    static const struct {
        const char *text;
        bool is_true;
    } rows[] = {{"true", true},
                {"(true)", true},
                {"not true", false},
                {"not not true", false},
                {"true and true", false},
                {"true or true", false},
                {"http.host ne \"a\" or true", false}};

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct expr *x = NULL;
        struct err e = {0};

        CU_ASSERT_FATAL(expr_parse(str_of(rows[i].text), &expr_arena, &x, &e));
        CU_ASSERT(expr_is_true(x) == rows[i].is_true);
        expr_forget();
    }
}

static void conditions_are_counted(void)
{
    static const struct {
        const char *text;
        size_t n;
    } rows[] = {{"true", 0},
                {"http.host eq \"a\"", 1},
                {"not http.host in {\"a\" \"b\"}", 1},
                {"http.host eq \"a\" and (ip.src eq ::1 or not (http.host eq \"a\" and true))", 3}};

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct expr *x = NULL;
        struct err e = {0};

        CU_ASSERT_FATAL(expr_parse(str_of(rows[i].text), &expr_arena, &x, &e));
        CU_ASSERT(expr_n_conditions(x) == rows[i].n);
        expr_forget();
    }
}

static void tree_outlives_its_text(void)
{
    char text[] = "http.host in {\"a\" \"b\\\"\"} or ip.src eq 192.0.2.1", before[EXPR_TEXT_MAX], after[EXPR_TEXT_MAX];
    const struct expr *x = NULL;
    struct err e = {0};
    struct str first;

    CU_ASSERT_FATAL(expr_parse((struct str){text, sizeof(text) - 1}, &expr_arena, &x, &e));
    first = canonical(x, before);
    memset(text, 'x', sizeof(text));
    CU_ASSERT(str_eq(first, canonical(x, after)));
    expr_forget();
}

/* One fault, and little memory taken for it. */
static void check_oversized(const json_t *ast, const char *path)
{
    CU_ASSERT(expr_row_decode(ast) == NULL);
    CU_ASSERT_FATAL(expr_errors.n == 1);
    CU_ASSERT(expr_errors.items[0].code == ERR_LIMIT_EXCEEDED);
    CU_ASSERT_STRING_EQUAL(expr_errors.items[0].path, path);
    CU_ASSERT(expr_arena.used_bytes < 400000);
    expr_forget();
}

static json_t *repeated(size_t n, json_t *item)
{
    json_t *array = json_array();

    for (size_t i = 0; i < n; i++)
        CU_ASSERT_FATAL(json_array_append(array, item) == 0);
    json_decref(item);
    return array;
}

static void oversized_asts(void)
{
    static const struct {
        size_t n;
        const char *path_of_rules, *path_of_values;
    } rows[] = {
        {1400, "", ""}, {2048, "/rules/2047", "/value/2047"}, {2049, "/rules", "/value"}, {100000, "/rules", "/value"}};

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        json_t *rules = repeated(rows[i].n, json_pack("{s:s,s:[]}", "combinator", "and", "rules"));
        json_t *group = json_pack("{s:s,s:o}", "combinator", "and", "rules", rules);
        json_t *values = repeated(rows[i].n, json_string(""));
        json_t *leaf = json_pack("{s:s,s:s,s:o}", "field", "http.host", "operator", "in", "value", values);

        check_oversized(group, rows[i].path_of_rules);
        check_oversized(leaf, rows[i].path_of_values);
        json_decref(group);
        json_decref(leaf);
    }
}

static void absent(void)
{
    json_t *object = json_object();
    struct jx_doc doc = {.arena = &expr_arena, .errors = &expr_errors};
    struct jx root = jx_root(object, &doc), member = jx_member(&root, "expression");

    CU_ASSERT(expr_decode(&member, &expr_arena) == NULL);
    CU_ASSERT(expr_errors.n == 1 && expr_errors.items[0].code == ERR_MISSING);
    CU_ASSERT_STRING_EQUAL(expr_errors.items[0].path, "/expression");
    json_decref(object);
    expr_forget();
}

static const struct str every_part = STR(
    "http.host in {\"a\" \"b\\\"\"} or not (ip.src eq 192.0.2.1 and true) or not not starts_with(http.host, \"x\") or "
    "http.request.headers[\"x\"] wildcard \"a*\" or ip.src.asnum in {1 2..5} or ssl eq true or client.signals eq "
    "\"no_accept\"");

static void parse_without_memory(void)
{
    size_t n_refused = 0;
    bool ok = false;

    for (size_t limit = 1; !ok; limit += 2) {
        const struct expr *x = NULL;
        struct err e = {0};
        struct arena small;

        arena_init(&small, 64, limit);
        ok = expr_parse(every_part, &small, &x, &e);
        CU_ASSERT(ok || (x == NULL && e.code == ERR_NO_MEMORY));
        n_refused += ok ? 0 : 1;
        arena_release(&small);
    }
    CU_ASSERT(n_refused > 10);
}

static void decode_without_memory(void)
{
    const struct expr *x = NULL;
    struct err e = {0};
    json_t *json;
    size_t n_refused = 0;

    CU_ASSERT_FATAL(expr_parse(every_part, &expr_arena, &x, &e));
    json = expr_to_json(x);
    for (size_t limit = 1;; limit += 2) {
        struct jx_doc doc = {.arena = &expr_arena, .errors = &expr_errors};
        struct jx root = jx_root(json, &doc);
        struct arena small;
        bool ok;

        expr_errors.n = 0;
        arena_init(&small, 64, limit);
        ok = expr_decode(&root, &small) != NULL;
        arena_release(&small);
        if (ok)
            break;
        CU_ASSERT(expr_errors.n > 0 && expr_errors.items[0].code == ERR_NO_MEMORY);
        n_refused++;
    }
    CU_ASSERT(n_refused > 10);
    json_decref(json);
    expr_forget();
}

static size_t allocations_left;

static void *counted_malloc(size_t size_bytes)
{
    return allocations_left == 0 ? NULL : (allocations_left--, malloc(size_bytes));
}

static void json_without_memory(void)
{
    const struct expr *x = NULL;
    struct err e = {0};
    size_t n_refused = 0;
    json_malloc_t old_malloc;
    json_free_t old_free;
    json_t *json = NULL;

    CU_ASSERT_FATAL(expr_parse(every_part, &expr_arena, &x, &e));
    json_get_alloc_funcs(&old_malloc, &old_free);
    json_set_alloc_funcs(counted_malloc, free);
    for (size_t n = 0; json == NULL; n++) {
        allocations_left = n;
        json = expr_to_json(x);
        n_refused += json == NULL ? 1 : 0;
    }
    json_decref(json);
    json_set_alloc_funcs(old_malloc, old_free);
    CU_ASSERT(n_refused > 10);
    expr_forget();
}

void test_expr_register(void)
{
    CU_pSuite s = CU_add_suite("expr", expr_set_up, expr_tear_down);

    CU_add_test(s, "a valid text gives its AST and its canonical text, and each form leads back to the same tree",
                valid_texts);
    CU_add_test(s, "an AST written in another way than the canonical one becomes canonical", canonical_asts);
    CU_add_test(s, "a wrong text is refused with code, line, column and what would be right", refused_texts);
    CU_add_test(s, "a wrong AST is refused with every fault at its place", refused_asts);
    CU_add_test(s, "a text cut anywhere is a tree or an error, never both and never neither", every_prefix);
    CU_add_test(s, "trees that differ in one part only are not equal", unequal_trees);
    CU_add_test(s, "only the literal true is site-wide, no other tautology is", only_literal_true_is_site_wide);
    CU_add_test(s, "conditions are counted, true is none", conditions_are_counted);
    CU_add_test(s, "a tree keeps nothing of the text it was read from", tree_outlives_its_text);
    CU_add_test(s, "an AST too large for a text is refused before it takes memory", oversized_asts);
    CU_add_test(s, "an expression that is not there is missed at its place", absent);
    CU_add_test(s, "a parse that runs out of memory says so", parse_without_memory);
    CU_add_test(s, "a decode that runs out of memory says so", decode_without_memory);
    CU_add_test(s, "JSON that runs out of memory is none, and nothing of it leaks", json_without_memory);
}
