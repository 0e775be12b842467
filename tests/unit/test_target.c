/* Targets, hosts and queries: the target rows of tests/cases/http, what is borrowed, and what a lack of memory does. */
#include <CUnit/CUnit.h>

#include "common/http/target.h"
#include "tests/unit/case_raw.h"

enum { HEX_MAX = 64 };

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

static void split_rows(void)
{
    json_t *rows = cases_load("tests/cases/http/target_split.json"), *row;
    size_t i;
    json_array_foreach(rows, i, row)
    {
        struct target t;
        struct str query = case_str(row, "query");
        target_split(case_str(row, "url"), &t);
        CASE_CHECK(row, str_eq(t.path, case_str(row, "path")));
        CASE_CHECK(row, t.has_query == (query.p != NULL));
        CASE_CHECK(row, str_eq(t.query, query));
    }
    json_decref(rows);
}

static void host_rows(void)
{
    json_t *rows = cases_load("tests/cases/http/target_host.json"), *row;
    size_t i;
    json_array_foreach(rows, i, row)
    {
        struct str host;
        CASE_CHECK(row, target_host(case_str(row, "header"), &arena, &host) && str_eq(host, case_str(row, "host")));
        arena_reset(&arena);
    }
    json_decref(rows);
}

static void query_rows(void)
{
    json_t *rows = cases_load("tests/cases/http/target_query.json"), *row;
    size_t i;
    json_array_foreach(rows, i, row)
    {
        char storage[HEX_MAX];
        struct str query = case_raw(row, "query", storage, sizeof(storage)), clean = STR_NONE, again = STR_NONE;
        CASE_CHECK(row, target_clean_query(query, &arena, &clean) && str_eq(clean, case_str(row, "clean")));
        CASE_CHECK(row, arena.used_bytes <= 4 * query.len);
        CASE_CHECK(row, target_clean_query(clean, &arena, &again) && str_eq(again, clean));
        arena_reset(&arena);
    }
    json_decref(rows);
}

static void unchanged_is_borrowed(void)
{
    struct str query = STR("a=1&&b=%20"), host = STR("a.example.:80"), out;
    CU_ASSERT(target_clean_query(query, &arena, &out));
    CU_ASSERT_PTR_EQUAL(out.p, query.p);
    CU_ASSERT(target_host(host, &arena, &out));
    CU_ASSERT_PTR_EQUAL(out.p, host.p);
    CU_ASSERT_EQUAL(arena.used_bytes, 0);
    arena_reset(&arena);
}

static void no_memory(void)
{
    struct arena tight;
    struct str out = STR("untouched");
    arena_init(&tight, 64, 4);
    CU_ASSERT(!target_host(STR("A.example"), &tight, &out));
    CU_ASSERT(!target_clean_query(STR("a;b&c=1"), &tight, &out));
    CU_ASSERT(!target_clean_query(STR("a=#"), &tight, &out));
    CU_ASSERT(str_eq(out, STR("untouched")));
    arena_release(&tight);
}

void test_target_register(void)
{
    CU_pSuite s = CU_add_suite("target", set_up, tear_down);
    CU_add_test(s, "a target in any form is cut into path and query, and one without a path has none", split_rows);
    CU_add_test(s, "a host has one spelling, so that case, port or a trailing dot bypass no rule", host_rows);
    CU_add_test(s, "a query keeps only what parses, so that upstream and rules see the same parameters", query_rows);
    CU_add_test(s, "a host or query that needs no change is borrowed and takes no memory", unchanged_is_borrowed);
    CU_add_test(s, "a host or query that finds no memory fails and leaves the output alone", no_memory);
}
