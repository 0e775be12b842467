/* Names of a query's parameters: which ones are told, and which only counted. */
#include <CUnit/CUnit.h>

#include "common/http/query_names.h"
#include "tests/unit/cases.h"

static bool are(const struct query_names *got, const json_t *wanted)
{
    bool same = got->n == json_array_size(wanted);

    for (size_t i = 0; same && i < got->n; i++)
        same = str_eq(got->items[i], str_of(json_string_value(json_array_get(wanted, i))));
    return same;
}

static void names_of_queries(void)
{
    json_t *rows = cases_load("tests/cases/http/query_names.json"), *row;
    size_t i;

    json_array_foreach(rows, i, row)
    {
        struct query_names got;
        query_names(case_str(row, "query"), &got);
        CASE_CHECK(row, are(&got, json_object_get(row, "names")));
        CASE_CHECK(row, got.n_dropped == (uint64_t) json_integer_value(json_object_get(row, "dropped")));
    }
    json_decref(rows);
}

/* A query as long as any that gets here. */
static void a_hostile_query(void)
{
    static char text[60000];
    struct query_names got;

    for (size_t i = 0; i < sizeof text; i += 3)
        memcpy(text + i, "a=&", 3);
    query_names((struct str){text, sizeof text}, &got);
    CU_ASSERT(got.n == 1 && got.n_dropped == sizeof text / 3 - QUERY_NAMES_PAIRS_MAX);
    memset(text, '%', sizeof text);
    query_names((struct str){text, sizeof text}, &got);
    CU_ASSERT(got.n == 0 && got.n_dropped == 0);
    memset(text, 'a', sizeof text);
    text[sizeof text - 1] = '=';
    query_names((struct str){text, sizeof text}, &got);
    CU_ASSERT(got.n == 0 && got.n_dropped == 1);
}

void test_query_names_register(void)
{
    CU_pSuite s = CU_add_suite("query_names", NULL, NULL);

    CU_add_test(s, "security: a query's names are told when they can be no secret, else counted, and its values never", names_of_queries);
    CU_add_test(s, "security: what lies behind a query's first pairs is counted without a look at it", a_hostile_query);
}
