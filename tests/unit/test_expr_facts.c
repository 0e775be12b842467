/* What other readers ask a request's facts for, and what a lack of memory does to expressions. */
#include <CUnit/CUnit.h>

#include "tests/unit/cases.h"
#include "tests/unit/expr_facts.h"
#include "tests/unit/expr_rows.h"

/* "" where there is none. */
static struct str ask(bool (*read)(const struct expr_facts *, struct str, struct str *), const struct expr_facts *f, const char *name)
{
    struct str value = STR("untouched");
    bool found = read(f, str_of(name), &value);

    CU_ASSERT(found || str_eq(value, STR("untouched")));
    return found ? value : STR("");
}

static void accessors(void)
{
    json_t *row = json_loads("{\"query\": \"a=1+1&a=2&b\", \"headers\": [[\"x-a\", \"h1\"], [\"x-a\", \"h2\"], [\"x-edge-b\", \"e\"], "
                             "[\"x-secret\", \"s\"], [\"cookie\", \"sid=c1; sid=c2\"]], \"claims\": {\"sub\": [\"s1\", \"s2\"], "
                             "\"none\": []}, \"unreadable\": [\"x-secret\"]}",
                             0, NULL);
    struct expr_facts f;

    CU_ASSERT_FATAL(row != NULL);
    expr_row_facts(row, &expr_arena, &f);
    CU_ASSERT(str_eq(ask(expr_facts_header, &f, "X-A"), STR("h1")));
    CU_ASSERT(str_eq(ask(expr_facts_header, &f, "x-b"), STR("")));
    CU_ASSERT(str_eq(ask(expr_facts_header, &f, "x-edge-b"), STR("")));
    CU_ASSERT(str_eq(ask(expr_facts_header, &f, "X-Secret"), STR("")));
    CU_ASSERT(str_eq(ask(expr_facts_argument, &f, "a"), STR("1 1")));
    CU_ASSERT(str_eq(ask(expr_facts_argument, &f, "A"), STR("")));
    CU_ASSERT(str_eq(ask(expr_facts_cookie, &f, "sid"), STR("c1")));
    CU_ASSERT(str_eq(ask(expr_facts_cookie, &f, "SID"), STR("")));
    CU_ASSERT(str_eq(ask(expr_facts_claim, &f, "sub"), STR("s1")));
    CU_ASSERT(str_eq(ask(expr_facts_claim, &f, "none"), STR("")));
    CU_ASSERT(str_eq(ask(expr_facts_claim, &f, "aud"), STR("")));
    json_decref(row);
    expr_forget();
}

static void nothing_known(void)
{
    struct expr_facts f = {.has_ip = false};

    CU_ASSERT(str_eq(ask(expr_facts_header, &f, "a"), STR("")));
    CU_ASSERT(str_eq(ask(expr_facts_argument, &f, "a"), STR("")));
    CU_ASSERT(str_eq(ask(expr_facts_cookie, &f, "a"), STR("")));
    CU_ASSERT(str_eq(ask(expr_facts_claim, &f, "a"), STR("")));
}

static struct expr_set *compile(const char *const *texts, size_t n)
{
    struct expr_set *set;
    size_t program;

    CU_ASSERT_FATAL(expr_set_new(&expr_arena, &set));
    for (size_t i = 0; i < n; i++) {
        const struct expr *x = NULL;
        struct err e = {0};

        CU_ASSERT_FATAL(expr_parse(str_of(texts[i]), &expr_arena, &x, &e) && expr_set_add(set, x, &program));
    }
    CU_ASSERT_FATAL(expr_set_finish(set));
    return set;
}

/* What can't be extracted is no missing value. */
static void no_beginning(void)
{
    static const char *const texts[] = {"http.request.uri.args[\"a\"] eq \"1\"", "not http.request.cookies[\"a\"] eq \"1\""};
    struct expr_set *set = compile(texts, 2);
    struct expr_facts facts = {.query = STR("a=1")};
    struct expr_run run;

    CU_ASSERT_FATAL(expr_run_init(&run, set, &facts, &expr_arena));
    for (size_t i = 0; i < 2; i++)
        CU_ASSERT_EQUAL(expr_run(&run, i), MATCH_ERROR);
    expr_forget();
}

/* Everything that takes memory to extract, alone, by tables and by keys. */
static void no_memory(void)
{
    static const char *const texts[] = {
        "http.request.uri.args[\"a\"] eq \"1\"",
        "not http.request.uri.args[\"a\"] eq \"1\"",
        "http.request.uri.args.names in {\"a\" \"b\" \"c\" \"d\" \"e\" \"f\" \"g\" \"h\"}",
        "http.request.cookies[\"a\"] eq \"1\"",
        "http.request.cookies[\"b\"] eq \"1\" or http.request.cookies[\"c\"] eq \"1\" or http.request.cookies[\"d\"] eq \"1\" or "
        "http.request.cookies[\"e\"] eq \"1\" or http.request.cookies[\"f\"] eq \"1\" or http.request.cookies[\"g\"] eq \"1\" or "
        "http.request.cookies[\"h\"] eq \"1\"",
        "http.request.headers[\"x-a\"] eq \"1\"",
        "http.request.headers.names eq \"x-a\"",
        "http.x_forwarded_for eq \"1\"",
        "http.request.full_uri eq \"http://a/\"",
    };
    enum { N = sizeof(texts) / sizeof(texts[0]) };
    struct header items[] = {{STR("cookie"), STR("a=1; b=2")}, {STR("x-a"), STR("1")}, {STR("x-a"), STR("2")},
                             {STR("x-forwarded-for"), STR("1")}, {STR("x-forwarded-for"), STR("2")}};
    const struct headers headers = {items, sizeof(items) / sizeof(items[0])};
    struct expr_set *set = compile(texts, N);
    struct expr_facts facts;
    struct expr_run run;
    struct arena small;

    arena_init(&small, 256, 256);
    CU_ASSERT_FATAL(expr_facts_begin(&facts, &small));
    CU_ASSERT_FATAL(arena_take_bytes(&small, 256 - small.used_bytes) != NULL);
    facts.query = STR("a=1&b=2");
    facts.host = STR("a");
    facts.uri = STR("/");
    facts.headers = &headers;
    CU_ASSERT_FATAL(expr_run_init(&run, set, &facts, &expr_arena));
    for (size_t i = 0; i < N; i++) {
        json_t *row = json_string(texts[i]);

        CASE_CHECK(row, expr_run(&run, i) == MATCH_ERROR);
        CASE_CHECK(row, expr_run(&run, i) == MATCH_ERROR);
        json_decref(row);
    }
    arena_release(&small);
    expr_forget();
}

static void begin_without_memory(void)
{
    struct expr_facts facts;
    struct arena small;

    arena_init(&small, 16, 16);
    CU_ASSERT(!expr_facts_begin(&facts, &small));
    arena_release(&small);
}

void test_expr_facts_register(void)
{
    CU_pSuite s = CU_add_suite("expr_facts", expr_set_up, expr_tear_down);

    CU_add_test(s, "readers get the first value that rules see, and never one of an unreadable header", accessors);
    CU_add_test(s, "facts without a beginning have no values", nothing_known);
    CU_add_test(s, "facts without a beginning are an error to what would have to be extracted, not a no", no_beginning);
    CU_add_test(s, "what can't be extracted for lack of memory is an error, not a no", no_memory);
    CU_add_test(s, "facts that get no memory say so", begin_without_memory);
}
