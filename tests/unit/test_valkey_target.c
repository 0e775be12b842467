/* VALKEY_URL: the rows of tests/cases/store, the maxima, and what a release leaves. */
#include <CUnit/CUnit.h>
#include <stdio.h>

#include "spoa/store/target.h"
#include "tests/unit/cases.h"

static bool text_is(const json_t *row, const char *name, const char *got)
{
    const struct str want = case_str(row, name);

    return str_eq(want, str_of(got));
}

static uint64_t number(const json_t *row, const char *name, uint64_t otherwise)
{
    const json_t *value = json_object_get(row, name);

    return value == NULL ? otherwise : (uint64_t)json_integer_value(value);
}

static void accepted_rows(void)
{
    json_t *rows = cases_load("tests/cases/store/targets.json"), *row;
    size_t i;

    json_array_foreach(rows, i, row)
    {
        struct valkey_target t;
        struct err e = {0};
        char name[300];

        if (!CASE_CHECK_GOT(row, valkey_target_parse(json_string_value(json_object_get(row, "url")), &t, &e),
                            str_of(e.text)))
            continue;
        CASE_CHECK(row, t.is_unix == json_is_true(json_object_get(row, "unix")));
        CASE_CHECK_GOT(row, text_is(row, "host", t.host), str_of(t.host));
        CASE_CHECK(row, t.port == number(row, "port", 0));
        CASE_CHECK(row, t.db == number(row, "db", 0));
        CASE_CHECK(row, t.dial_timeout_ms == number(row, "dial_timeout_ms", VALKEY_DIAL_TIMEOUT_MS));
        CASE_CHECK_GOT(row, text_is(row, "user", t.user), str_of(t.user));
        CASE_CHECK_GOT(row, text_is(row, "password", t.password), str_of(t.password));
        CASE_CHECK_GOT(row, text_is(row, "name", valkey_target_name(&t, name, sizeof(name))), str_of(name));
        valkey_target_release(&t);
    }
    json_decref(rows);
}

static void refused_rows(void)
{
    json_t *rows = cases_load("tests/cases/store/targets_refused.json"), *row;
    const struct valkey_target untouched = {.host = "untouched"};
    size_t i;

    json_array_foreach(rows, i, row)
    {
        struct valkey_target t = untouched;
        struct err e = {0};

        CASE_CHECK(row, !valkey_target_parse(json_string_value(json_object_get(row, "url")), &t, &e));
        CASE_CHECK(row, memcmp(&t, &untouched, sizeof(t)) == 0);
        CASE_CHECK(row, e.code == ERR_BAD_VALUE);
        CASE_CHECK_GOT(row, str_find(str_of(e.text), case_str(row, "says")) != SIZE_MAX, str_of(e.text));
        CASE_CHECK_GOT(row, str_find(str_of(e.text), STR("hunter2")) == SIZE_MAX, str_of(e.text));
    }
    json_decref(rows);
}

static bool parses(const char *before, int n, const char *after)
{
    char url[4096];
    struct valkey_target t;
    struct err e = {0};
    bool ok;

    snprintf(url, sizeof(url), "%s%0*d%s", before, n, 0, after);
    ok = valkey_target_parse(url, &t, &e);
    CU_ASSERT_TRUE(ok || str_find(str_of(e.text), STR("0000")) == SIZE_MAX);
    return ok;
}

static void maxima(void)
{
    CU_ASSERT_TRUE(parses("redis://", 127, ":p@h"));
    CU_ASSERT_FALSE(parses("redis://", 128, ":p@h"));
    CU_ASSERT_TRUE(parses("redis://u:", 511, "@h"));
    CU_ASSERT_FALSE(parses("redis://u:", 512, "@h"));
    CU_ASSERT_TRUE(parses("redis://a", 252, ""));
    CU_ASSERT_FALSE(parses("redis://a", 253, ""));
    CU_ASSERT_FALSE(parses("redis://a", 300, ""));
    CU_ASSERT_TRUE(parses("unix:///", 106, ""));
    CU_ASSERT_FALSE(parses("unix:///", 107, ""));
    CU_ASSERT_FALSE(parses("redis://u:", 2048, "@h"));
}

static void release_wipes(void)
{
    const char nothing[512] = {0};
    struct valkey_target t;
    struct err e = {0};

    CU_ASSERT_TRUE_FATAL(valkey_target_parse("redis://edge:hunter2@h", &t, &e));
    valkey_target_release(&t);
    CU_ASSERT_EQUAL(memcmp(t.password, nothing, sizeof(t.password)), 0);
    CU_ASSERT_EQUAL(memcmp(t.user, nothing, sizeof(t.user)), 0);
}

void test_valkey_target_register(void)
{
    CU_pSuite s = CU_add_suite("valkey_target", NULL, NULL);
    CU_add_test(s, "a URL is read into its parts, and its name holds no secret", accepted_rows);
    CU_add_test(s, "a wrong URL is refused with what would be right, never with a secret, and writes nothing",
                refused_rows);
    CU_add_test(s, "each part has a maximum", maxima);
    CU_add_test(s, "a release wipes user and password", release_wipes);
}
