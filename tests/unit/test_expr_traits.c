/* What expressions read and whom they leave out; the shapes of fingerprints. The rules are rows of tests/cases/expr. */
#include <CUnit/CUnit.h>

#include "tests/unit/cases.h"
#include "tests/unit/expr_rows.h"

static bool wanted(const json_t *row, const char *trait)
{
    return json_is_true(json_object_get(row, trait));
}

static void check_traits(const json_t *row)
{
    const struct expr *x = expr_row_decode(json_object_get(row, "text"));
    struct expr_traits t;

    if (!CASE_CHECK(row, x != NULL))
        return;
    expr_traits(x, &t);
    CASE_CHECK(row, t.reads_client == wanted(row, "reads_client"));
    CASE_CHECK(row, t.excludes_client == wanted(row, "excludes_client"));
    CASE_CHECK(row, t.reads_claims == wanted(row, "reads_claims"));
    CASE_CHECK(row, t.reads_locale == wanted(row, "reads_locale"));
    CASE_CHECK(row, t.reads_signals == wanted(row, "reads_signals"));
    CASE_CHECK(row, t.reads_verified_bot == wanted(row, "reads_verified_bot"));
}

static void traits(void)
{
    expr_each_row("tests/cases/expr/traits.json", check_traits);
}

static void check_fingerprint(const json_t *row)
{
    struct str value = case_str(row, "value");
    bool is_ja3 = str_eq(case_str(row, "kind"), STR("ja3"));

    CASE_CHECK(row, (is_ja3 ? expr_ja3_ok(value) : expr_ja4_ok(value)) == wanted(row, "ok"));
}

static void fingerprints(void)
{
    expr_each_row("tests/cases/expr/fingerprints.json", check_fingerprint);
}

void test_expr_traits_register(void)
{
    CU_pSuite s = CU_add_suite("expr_traits", expr_set_up, expr_tear_down);

    CU_add_test(s, "what the client chooses is an exclusion where an odd number of negations stands around it", traits);
    CU_add_test(s, "a fingerprint of another shape is none", fingerprints);
}
