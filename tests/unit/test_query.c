/* Query parameters: what a query holds, and what is dropped from it. */
#include <CUnit/CUnit.h>

#include "common/http/query.h"
#include "tests/unit/cases.h"
#include "tests/unit/pair_rows.h"

static void check_query(const json_t *row, struct arena *a)
{
    struct pairs pairs;

    if (CASE_CHECK(row, query_parse(case_str(row, "query"), a, &pairs)))
        pair_rows_check(row, &pairs);
}

static void pairs_of_queries(void)
{
    pair_rows_each("tests/cases/http/query.json", check_query);
}

static void no_memory(void)
{
    struct pairs pairs = {NULL, 7};
    struct arena small;

    arena_init(&small, 64, 64);
    CU_ASSERT(!query_parse(STR("a=1&b=2&c=3&d=4"), &small, &pairs));
    CU_ASSERT(pairs.n == 7);
    arena_release(&small);
}

/* A client must not make a query unreadable, and with it the rules on it, by signs that cost it one byte each. */
static void nothing_but_signs(void)
{
    static char text[61440 + 4];
    struct pairs pairs;
    struct arena small;

    memset(text, '&', 61440);
    memcpy(text + 61440, "q=1&", 4);
    arena_init(&small, 1024, 128 * 1024);
    CU_ASSERT(query_parse((struct str){text, sizeof text}, &small, &pairs));
    CU_ASSERT(pairs.n == 1 && str_eq(pairs.items[0].name, STR("q")) && str_eq(pairs.items[0].value, STR("1")));
    arena_release(&small);
}

void test_query_register(void)
{
    CU_pSuite s = CU_add_suite("query", NULL, NULL);

    CU_add_test(s, "a query is its pairs, decoded once, without those that do not parse", pairs_of_queries);
    CU_add_test(s, "a query that runs out of memory says so and gives nothing", no_memory);
    CU_add_test(s, "security: however many & a query has, they take no memory", nothing_but_signs);
}
