/* Programs of whole policies against the slow and plain evaluator: shared predicates, tables that answer many of them at
 * once, three values, and the index of which programs can hold. */
#include <CUnit/CUnit.h>

#include "tests/fuzz/expr_world.h"
#include "tests/unit/expr_rows.h"

/* Few words, many of which begin, end or hold others: what tables of literals get wrong first. */
static const char *const words[] = {"a",    "ab",   "abc", "bc",  "c",     "/a",    "/a/b",       "/a/bc", "/abc",
                                    "abab", "baba", "x-a", "x-b", "aaaab", "aaaaa", "api.a.test", "/a/*",  "\xc3\xa9"};

static const char *word(uint64_t *random)
{
    return words[naive_random(random) % (sizeof(words) / sizeof(words[0]))];
}

static void put_text_condition(struct buf *b, const char *field, uint64_t *random)
{
    static const char *const infix[] = {"eq", "ne", "contains"};
    uint64_t kind = naive_random(random) % 10;

    if (kind < 3)
        buf_printf(b, "%s %s \"%s\"", field, infix[kind], word(random));
    else if (kind < 5)
        buf_printf(b, "%s %s {\"%s\" \"%s\" \"%s\"}", field, kind == 3 ? "in" : "not_in", word(random), word(random), word(random));
    else if (kind < 7)
        buf_printf(b, "%s(%s, \"%s\")", kind == 5 ? "starts_with" : "ends_with", field, word(random));
    else if (kind < 9)
        buf_printf(b, "%s %s \"%s%s%s\"", field, kind == 7 ? "wildcard" : "strict_wildcard", naive_random(random) % 2 ? "*" : "",
                   naive_random(random) % 2 ? "ab" : "/A", naive_random(random) % 2 ? "*c" : "*");
    else
        buf_printf(b, "%s matches \"%s\"", field, naive_random(random) % 2 ? "ab" : "A");
}

/* Mostly of what the index knows. */
static const char *const fields[] = {
    "http.host",
    "http.request.uri.path",
    "http.request.uri.path",
    "http.request.method",
    "http.request.uri",
    "http.request.full_uri",
    "http.request.headers[\"x-a\"]",
    "http.request.headers[\"X-B\"]",
    "http.request.headers.names",
    "http.request.uri.args[\"a\"]",
    "http.request.uri.args.names",
    "http.request.cookies[\"a\"]",
    "http.request.jwt.claims[\"a\"]",
    "http.x_forwarded_for",
};

enum { N_FIELDS = sizeof(fields) / sizeof(fields[0]) };

/* Most conditions of a policy are of one field, so that each table of literals gets its many. */
static void put_condition(struct buf *b, uint64_t *random, size_t focus)
{
    static const char *const numbers[] = {"eq 5", "ne 7", "lt 6", "le 5", "gt 5", "ge 6", "in {5 7..9}", "not_in {4..6 8}"};
    static const char *const addresses[] = {"eq 10.0.0.1",   "in {10.0.0.0/8 ::1}", "not_in {10.0.0.0/30 10.0.0.8}", "in {::/0}",
                                            "in {::1..::9}", "ne ::1",              "in {0.0.0.0/1 128.0.0.0/1}"};
    uint64_t kind = naive_random(random) % 20;

    if (naive_random(random) % 2 == 0)
        put_text_condition(b, fields[focus], random);
    else if (kind == 0)
        buf_printf(b, "ip.src.asnum %s", numbers[naive_random(random) % 8]);
    else if (kind == 1)
        buf_printf(b, "ip.src %s", addresses[naive_random(random) % 7]);
    else if (kind == 2)
        buf_printf(b, "ssl eq %s", naive_random(random) % 2 ? "true" : "false");
    else if (kind == 3)
        buf_printf(b, "client.signals %s", naive_random(random) % 2 ? "in {\"no_accept\" \"http_1_0\"}" : "ne \"plain_http\"");
    else if (kind == 4)
        buf_printf(b, "http.request.headers[\"x-%c\"] eq \"%s\"", (char)('a' + naive_random(random) % 26), word(random));
    else
        put_text_condition(b, fields[naive_random(random) % N_FIELDS], random);
}

/* Recursion ends at depth 3. */
static void put_group(struct buf *b, uint64_t *random, size_t focus, unsigned depth)
{
    const char *joint = naive_random(random) % 3 ? " and " : " or ";
    uint64_t n = 1 + naive_random(random) % 3;

    for (uint64_t i = 0; i < n; i++) {
        buf_put_cstr(b, i == 0 ? "" : joint);
        buf_put_cstr(b, naive_random(random) % 5 == 0 ? "not " : "");
        if (depth < 3 && naive_random(random) % 3 == 0) {
            buf_put_cstr(b, "(");
            put_group(b, random, focus, depth + 1);
            buf_put_cstr(b, ")");
        } else if (naive_random(random) % 40 == 0) {
            buf_put_cstr(b, "true");
        } else {
            put_condition(b, random, focus);
        }
    }
}

static void add_random(struct world_policy *p, uint64_t *random, size_t focus)
{
    const struct expr *x = NULL;
    struct err e = {0};
    char text[EXPR_TEXT_MAX];
    struct buf b;

    buf_init(&b, text, sizeof(text));
    put_group(&b, random, focus, 0);
    /* The longest ones do not fit the limits of the language. */
    if (!b.full && expr_parse(buf_str(&b), &expr_arena, &x, &e))
        world_add(p, x, expr_to_json(x));
    else
        CU_ASSERT_EQUAL(e.code, ERR_LIMIT_EXCEEDED);
}

/* Small policies ask each predicate alone, large ones by tables. A broken guarantee ends the test program with its text. */
static void policies(size_t n_programs, size_t n_policies)
{
    struct world_policy *p = calloc(1, sizeof(*p));
    uint64_t random = 0x5eed + n_programs;

    CU_ASSERT_FATAL(p != NULL);
    for (size_t i = 0; i < n_policies; i++) {
        p->leaves.n = 0;
        CU_ASSERT_FATAL(expr_set_new(&expr_arena, &p->set));
        for (size_t j = 0; j < n_programs; j++)
            add_random(p, &random, i % N_FIELDS);
        world_check(p, random, 20);
        world_forget(p);
        expr_forget();
    }
    free(p);
}

static void small_policies(void)
{
    policies(2, 400);
}

static void large_policies(void)
{
    policies(60, 2 * N_FIELDS);
    policies(EXPR_PROGRAMS_MAX, 2);
}

void test_expr_program_register(void)
{
    CU_pSuite s = CU_add_suite("expr_program", expr_set_up, expr_tear_down);

    CU_add_test(s, "programs of small policies answer as the plain evaluator, and the index leaves out only what is no", small_policies);
    CU_add_test(s, "programs of large policies answer as the plain evaluator, and the index leaves out only what is no", large_policies);
}
