/* Config tests: rows of a policy, tests for it, and their report or their faults. */
#include <CUnit/CUnit.h>
#include <stdlib.h>

#include "common/policy/config_tests.h"
#include "tests/unit/cases.h"
#include "tests/unit/policy_cases.h"

static void check_report(const json_t *row, const json_t *report, const struct config_tests_summary *summary)
{
    const json_t *results = json_object_get(row, "results"), *uncovered = json_object_get(row, "uncovered");
    size_t n_passed = 0;
    char *text = json_dumps(report, JSON_COMPACT);

    for (size_t i = 0; i < json_array_size(results); i++)
        n_passed += json_is_true(json_object_get(json_array_get(results, i), "ok")) ? 1 : 0;
    CASE_CHECK_GOT(row, json_object_size(report) == 4 && json_equal(json_object_get(report, "results"), (json_t *) (uintptr_t) results), str_of(text));
    CASE_CHECK(row, summary->n_passed == n_passed && summary->n_failed == json_array_size(results) - n_passed);
    CASE_CHECK(row, json_integer_value(json_object_get(report, "passed")) == (json_int_t) summary->n_passed);
    CASE_CHECK(row, json_integer_value(json_object_get(report, "failed")) == (json_int_t) summary->n_failed);
    if (uncovered) {
        CASE_CHECK_GOT(row, json_equal(json_object_get(report, "uncovered_rules"), (json_t *) (uintptr_t) uncovered), str_of(text));
        CASE_CHECK(row, json_integer_value(json_object_get(row, "n_rules")) == (json_int_t) summary->n_rules);
        CASE_CHECK(row, summary->n_rules - summary->n_covered == json_array_size(uncovered));
    }
    free(text);
}

static void check_row(const json_t *row)
{
    json_t *document = policy_case_document(row), *report = NULL;
    struct policy *p = policy_case_compile(row);
    const struct config_tests_options options = {.document = document, .pattern = json_string_value(json_object_get(row, "pattern"))};
    struct config_tests_summary summary = {0};
    struct errlist errors;
    struct arena a;

    arena_init(&a, 4096, 0);
    CU_ASSERT_FATAL(errlist_init(&errors, 0));
    struct jx_doc doc = {.arena = &a, .errors = &errors};
    const struct jx tests = jx_root(json_object_get(row, "tests"), &doc);
    bool ok = config_tests_run(p, &options, &tests, &report, &summary);
    CASE_CHECK(row, ok == !json_object_get(row, "errors") && ok == (report != NULL));
    policy_case_check_faults(row, "faults", json_object_get(row, "errors"), &errors);
    if (ok)
        check_report(row, report, &summary);
    json_decref(report);
    errlist_release(&errors);
    arena_release(&a);
    policy_free(&p);
    json_decref(document);
}

static void rows(void)
{
    json_t *all = cases_load("tests/cases/policy/config_tests.json"), *row;
    size_t i;

    json_array_foreach(all, i, row) check_row(row);
    json_decref(all);
}

/* Faults stand at the tests' place in a larger document. */
static void place(void)
{
    json_t *row = json_object(), *document = json_pack("{s:[{s:s, s:{}, s:{s:i}}]}", "tests", "name", "a", "request", "expect", "status", 0), *report = NULL;
    struct policy *p = policy_case_compile(row);
    const struct config_tests_options options = {.document = document};
    struct config_tests_summary summary;
    struct errlist errors;

    CU_ASSERT_FATAL(errlist_init(&errors, 0));
    struct jx_doc doc = {.errors = &errors};
    const struct jx root = jx_root(document, &doc), tests = jx_member(&root, "tests");
    CU_ASSERT_FALSE(config_tests_run(p, &options, &tests, &report, &summary));
    CU_ASSERT_PTR_NULL(report);
    CU_ASSERT(errors.n == 3 && strcmp(errors.items[0].path, "/tests/0/request/method") == 0);
    errlist_release(&errors);
    json_decref(document);
    json_decref(row);
    policy_free(&p);
}

static void absent(void)
{
    json_t *row = json_object(), *document = json_object(), *report = NULL;
    struct policy *p = policy_case_compile(row);
    const struct config_tests_options options = {.document = document};
    struct config_tests_summary summary;
    struct errlist errors;

    CU_ASSERT_FATAL(errlist_init(&errors, 0));
    struct jx_doc doc = {.errors = &errors};
    const struct jx root = jx_root(document, &doc), tests = jx_member(&root, "tests");
    CU_ASSERT_FALSE(config_tests_run(p, &options, &tests, &report, &summary));
    CU_ASSERT(errors.n == 1 && errors.items[0].code == ERR_MISSING);
    errlist_release(&errors);
    json_decref(document);
    json_decref(row);
    policy_free(&p);
}

static void too_many(void)
{
    json_t *row = json_object(), *list = json_array(), *report = NULL;
    struct policy *p = policy_case_compile(row);
    const struct config_tests_options options = {0};
    struct config_tests_summary summary;
    struct errlist errors;

    for (size_t i = 0; i <= CONFIG_TESTS_MAX; i++)
        json_array_append_new(list, json_null());
    CU_ASSERT_FATAL(errlist_init(&errors, 0));
    struct jx_doc doc = {.errors = &errors};
    const struct jx tests = jx_root(list, &doc);
    CU_ASSERT_FALSE(config_tests_run(p, &options, &tests, &report, &summary));
    CU_ASSERT_EQUAL(errors.items[0].code, ERR_LIMIT_EXCEEDED);
    errlist_release(&errors);
    json_decref(list);
    json_decref(row);
    policy_free(&p);
}

void test_config_tests_register(void)
{
    CU_pSuite s = CU_add_suite("config tests", NULL, NULL);
    CU_add_test(s, "tests pass and fail as their rows of data say, with the rule that decided and its condition", rows);
    CU_add_test(s, "a fault of a test is told at its place in the document", place);
    CU_add_test(s, "a document without tests has a fault, not an empty success", absent);
    CU_add_test(s, "a list of tests is bounded", too_many);
}
