/* Decisions about requests, as simulate tells them: rows of a policy, a request and what is decided. */
#include <CUnit/CUnit.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/policy/simulate.h"
#include "tests/unit/cases.h"
#include "tests/unit/policy_cases.h"

static const char *const all_keys[] = {"rejected",         "status",           "config_rules",     "settings", "rate_limit_rules", "request_header_rules",
                                       "upstream_headers", "response_headers", "locale"};
enum { N_KEYS = sizeof all_keys / sizeof all_keys[0] };

static void check_row(const json_t *row, const struct policy *p)
{
    struct errlist errors;
    json_t *out = NULL, *wanted;
    const char *key;

    CU_ASSERT_FATAL(errlist_init(&errors, 0));
    if (CASE_CHECK(row, simulate(p, json_object_get(row, "request"), &out, &errors) && out)) {
        bool ok = json_object_size(out) == N_KEYS;
        for (size_t i = 0; i < N_KEYS; i++)
            ok = json_object_get(out, all_keys[i]) && ok;
        json_object_foreach(json_object_get(row, "expect"), key, wanted) ok = json_equal(json_object_get(out, key), wanted) && ok;
        if (!CASE_CHECK(row, ok))
            json_dumpf(out, stderr, JSON_COMPACT);
    }
    policy_case_check_faults(row, "faults", NULL, &errors);
    json_decref(out);
    errlist_release(&errors);
}

static void decision_rows(void)
{
    json_t *rows = cases_load("tests/cases/policy/decisions.json"), *row;
    size_t i;

    json_array_foreach(rows, i, row)
    {
        struct policy *p = policy_case_compile(row);
        check_row(row, p);
        policy_free(&p);
    }
    json_decref(rows);
}

static void request_rows(void)
{
    json_t *rows = cases_load("tests/cases/policy/requests.json"), *row;
    json_t *none = json_object();
    struct policy *p = policy_case_compile(none);
    size_t i;

    json_array_foreach(rows, i, row)
    {
        struct errlist errors;
        json_t *out = NULL;
        CU_ASSERT_FATAL(errlist_init(&errors, 0));
        CASE_CHECK(row, !simulate(p, json_object_get(row, "request"), &out, &errors) && !out);
        policy_case_check_faults(row, "faults", json_object_get(row, "errors"), &errors);
        errlist_release(&errors);
    }
    policy_free(&p);
    json_decref(none);
    json_decref(rows);
}

/* What is too large to stand in a row. */
static void large_requests(void)
{
    static const struct {
        const char *what, *path;
        size_t n;
        bool ok;
    } rows[] = {{"method", "/method", 61440, true}, {"method", "/method", 61441, false}, {"host", "/host", 8192, true}, {"host", "/host", 8193, false},
                {"path", "/path", 61440, true},   {"path", "/path", 61441, false}};
    json_t *none = json_object();
    struct policy *p = policy_case_compile(none);
    static char text[61442];

    memset(text, 'A', sizeof text);
    text[0] = '/';
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        json_t *request = json_pack("{s:s, s:s, s:s}", "method", "GET", "host", "a", "path", "/"), *out = NULL;
        struct errlist errors;
        CU_ASSERT_FATAL(errlist_init(&errors, 0));
        json_object_set_new(request, rows[i].what, json_stringn(text, rows[i].n));
        CU_ASSERT_EQUAL(simulate(p, request, &out, &errors), rows[i].ok);
        CU_ASSERT(rows[i].ok || (errors.n == 1 && errors.items[0].code == ERR_LIMIT_EXCEEDED && strcmp(errors.items[0].path, rows[i].path) == 0));
        json_decref(out);
        json_decref(request);
        errlist_release(&errors);
    }
    policy_free(&p);
    json_decref(none);
}

static void many_headers(void)
{
    json_t *none = json_object();
    struct policy *p = policy_case_compile(none);

    for (int n = HEADERS_MAX - 1; n <= HEADERS_MAX; n++) {
        json_t *values = json_array(), *out = NULL;
        struct errlist errors;
        CU_ASSERT_FATAL(errlist_init(&errors, 0));
        for (int i = 0; i < n; i++)
            json_array_append_new(values, json_string("v"));
        json_t *request = json_pack("{s:s, s:s, s:s, s:{s:o}}", "method", "GET", "host", "a", "path", "/", "headers", "x-a", values);
        CU_ASSERT_EQUAL(simulate(p, request, &out, &errors), n < HEADERS_MAX);
        CU_ASSERT_EQUAL(errors.n, n < HEADERS_MAX ? 0 : 1);
        json_decref(out);
        json_decref(request);
        errlist_release(&errors);
    }
    policy_free(&p);
    json_decref(none);
}

void test_simulate_register(void)
{
    CU_pSuite s = CU_add_suite("simulate", NULL, NULL);
    CU_add_test(s, "requests are decided as their rows of data say, and every key of the answer is there", decision_rows);
    CU_add_test(s, "a request that is not well-formed is refused with every fault and its place", request_rows);
    CU_add_test(s, "a request that could not reach the edge is refused", large_requests);
    CU_add_test(s, "a request has as many headers as the edge can be told, and no more", many_headers);
}
