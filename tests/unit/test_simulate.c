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

static const struct simulate_options plain;

static void check_row(const json_t *row, const struct policy *p)
{
    struct errlist errors;
    json_t *out = NULL, *wanted;
    const char *key;

    CU_ASSERT_FATAL(errlist_init(&errors, 0));
    if (CASE_CHECK(row, simulate(p, &plain, json_object_get(row, "request"), &out, &errors) && out)) {
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

static void decide_rows(const char *file)
{
    json_t *rows = cases_load(file), *row;
    size_t i;

    json_array_foreach(rows, i, row)
    {
        struct policy *p = policy_case_compile(row);
        check_row(row, p);
        policy_free(&p);
    }
    json_decref(rows);
}

static void decision_rows(void)
{
    decide_rows("tests/cases/policy/decisions.json");
}

static void step_rows(void)
{
    decide_rows("tests/cases/policy/simulate.json");
}

/* The value at a JSON pointer without escapes. */
static const json_t *at_pointer(const json_t *value, const char *pointer)
{
    char key[64];

    while (*pointer && value) {
        size_t len = strcspn(++pointer, "/");
        CU_ASSERT_FATAL(len < sizeof key);
        memcpy(key, pointer, len);
        key[len] = '\0';
        value = json_is_array(value) ? json_array_get(value, strtoul(key, NULL, 10)) : json_object_get(value, key);
        pointer += len;
    }
    return value;
}

static void explain_row(json_t *row)
{
    json_t *document = policy_case_document(row), *bare = NULL, *out = NULL, *wanted, *explained;
    struct policy *p = policy_case_compile(row);
    const struct simulate_options options = {.document = document};
    struct errlist errors;
    const char *pointer;

    CU_ASSERT_FATAL(errlist_init(&errors, 0));
    CU_ASSERT_FATAL(simulate(p, &options, json_object_get(row, "request"), &out, &errors));
    CU_ASSERT_FATAL(simulate(p, &plain, json_object_get(row, "request"), &bare, &errors));
    explained = json_object_get(out, "explain");
    json_object_foreach(json_object_get(row, "explain"), pointer, wanted)
    {
        const json_t *got = at_pointer(explained, pointer);
        char *text = json_dumps(got, JSON_ENCODE_ANY | JSON_COMPACT);
        CASE_CHECK_GOT(row, got && json_equal((json_t *) (uintptr_t) got, wanted), text ? str_of(text) : STR("nothing"));
        free(text);
    }
    json_object_del(out, "explain");
    CASE_CHECK(row, json_equal(out, bare));
    json_decref(bare);
    json_decref(out);
    json_decref(document);
    errlist_release(&errors);
    policy_free(&p);
}

static void explain_rows(void)
{
    json_t *rows = cases_load("tests/cases/policy/explain.json"), *row;
    size_t i;

    json_array_foreach(rows, i, row) explain_row(row);
    json_decref(rows);
}

static void difference_rows(void)
{
    json_t *rows = cases_load("tests/cases/policy/differences.json"), *row;
    size_t i;

    json_array_foreach(rows, i, row)
    {
        json_t *found = simulate_differences(json_object_get(row, "a"), json_object_get(row, "b")), *wanted = json_object_get(row, "differences");
        CASE_CHECK(row, json_equal(json_object_get(found, "differences"), wanted));
        CASE_CHECK(row, json_is_true(json_object_get(found, "same")) == (json_array_size(wanted) == 0));
        json_decref(found);
    }
    json_decref(rows);
}

/* What the deployment reads its trust from is not the client's to say, so rules don't see it and it goes no further. */
static void source_headers(void)
{
    static const struct str unreadable[] = {{"x-secret", 8}};
    static const struct expr_deployment deployment = {.sources = UINT32_MAX, .unreadable = unreadable, .n_unreadable = 1};
    const struct simulate_options options = {.deployment = &deployment};
    json_t *none = json_object(), *out = NULL;
    json_t *request = json_pack("{s:s, s:s, s:s, s:{s:s, s:s, s:s}}", "method", "GET", "host", "a", "path", "/", "headers", "X-Secret", "s", "X_Secret", "t",
                                "X-Mine", "m");
    struct policy *p = policy_case_compile(none);
    struct errlist errors;

    CU_ASSERT_FATAL(errlist_init(&errors, 0));
    CU_ASSERT_FATAL(simulate(p, &options, request, &out, &errors));
    json_t *upstream = json_object_get(out, "upstream_headers");
    CU_ASSERT(json_object_size(upstream) == 1 && json_object_get(upstream, "x-mine") != NULL);
    json_decref(out);
    json_decref(request);
    json_decref(none);
    errlist_release(&errors);
    policy_free(&p);
}

/* The upstream hears of the connection what this deployment can know of it, and no more. */
static void viewer_headers(void)
{
    static const struct expr_deployment none = {0}, country = {.sources = UINT32_C(1) << EXPR_SOURCE_COUNTRY}, all = {.sources = UINT32_MAX};
    static const struct {
        const struct expr_deployment *deployment;
        const char *upstream;
    } rows[] = {
        {&none, "{}"},
        {&country, "{\"x-edge-geo-country\": \"DE\"}"},
        {&all, "{\"x-edge-geo-country\": \"DE\", \"x-edge-geo-continent\": \"EU\", \"x-edge-geo-asn\": \"3320\", \"x-edge-tls-ja4\": \"t13d1516h2_8daaf6152771_02713d6af862\"}"},
        {NULL, "{\"x-edge-geo-country\": \"DE\", \"x-edge-geo-continent\": \"EU\", \"x-edge-geo-asn\": \"3320\", \"x-edge-tls-ja4\": \"t13d1516h2_8daaf6152771_02713d6af862\"}"},
    };
    json_t *nothing = json_object();
    json_t *request = json_pack("{s:s, s:s, s:s, s:s, s:s, s:i, s:s, s:{s:s}}", "method", "GET", "host", "a", "path", "/", "country", "de", "continent", "eu",
                                "asnum", 3320, "ja4", "t13d1516h2_8daaf6152771_02713d6af862", "headers", "X-Edge-Geo-Country", "US");
    struct policy *p = policy_case_compile(nothing);

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct simulate_options options = {.deployment = rows[i].deployment};
        json_t *wanted = json_loads(rows[i].upstream, 0, NULL), *out = NULL;
        struct errlist errors;

        CU_ASSERT_FATAL(errlist_init(&errors, 0));
        CU_ASSERT_FATAL(simulate(p, &options, request, &out, &errors));
        CU_ASSERT(json_equal(json_object_get(out, "upstream_headers"), wanted));
        json_decref(wanted);
        json_decref(out);
        errlist_release(&errors);
    }
    json_decref(request);
    json_decref(nothing);
    policy_free(&p);
}

/* A request alone, for who only evaluates expressions. */
static void facts_alone(void)
{
    static const struct {
        const char *path;
        bool ok;
    } rows[] = {{"/a", true}, {"/a/../b", false}};

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        json_t *request = json_pack("{s:s, s:s, s:s, s:{s:s}, s:s}", "method", "GET", "host", "A.example", "path", rows[i].path, "jwt_claims", "t", "x",
                                    "jwt_issuer", "anyone");
        struct expr_facts facts = {0};
        struct errlist errors;
        struct arena a;
        struct str claim = STR_NONE;
        arena_init(&a, 4096, 0);
        CU_ASSERT_FATAL(errlist_init(&errors, 0));
        CU_ASSERT_EQUAL(simulate_facts(NULL, request, &a, &facts, &errors), rows[i].ok);
        CU_ASSERT_EQUAL(errors.n, rows[i].ok ? 0 : 1);
        CU_ASSERT(!rows[i].ok || (str_eq(facts.host, STR("a.example")) && expr_facts_claim(&facts, STR("t"), &claim) && str_eq(claim, STR("x"))));
        json_decref(request);
        errlist_release(&errors);
        arena_release(&a);
    }
}

static void request_rows(void)
{
    json_t *rows = cases_load("tests/cases/policy/requests.json"), *row;
    size_t i;

    json_array_foreach(rows, i, row)
    {
        struct policy *p = policy_case_compile(row);
        struct errlist errors;
        json_t *out = NULL;
        CU_ASSERT_FATAL(errlist_init(&errors, 0));
        CASE_CHECK(row, !simulate(p, &plain, json_object_get(row, "request"), &out, &errors) && !out);
        policy_case_check_faults(row, "faults", json_object_get(row, "errors"), &errors);
        errlist_release(&errors);
        policy_free(&p);
    }
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
        CU_ASSERT_EQUAL(simulate(p, &plain, request, &out, &errors), rows[i].ok);
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
        CU_ASSERT_EQUAL(simulate(p, &plain, request, &out, &errors), n < HEADERS_MAX);
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
    CU_add_test(s, "auth, preflight, viewer facts and claims are decided as their rows of data say", step_rows);
    CU_add_test(s, "an explanation says why, and changes nothing else", explain_rows);
    CU_add_test(s, "two results differ where their rows of data say", difference_rows);
    CU_add_test(s, "headers that the deployment trusts are kept from the upstream, twins too", source_headers);
    CU_add_test(s, "the upstream hears of the connection what this deployment can know", viewer_headers);
    CU_add_test(s, "a request alone gives the facts that expressions see, unless no rule would see it", facts_alone);
    CU_add_test(s, "a request that is not well-formed is refused with every fault and its place", request_rows);
    CU_add_test(s, "a request that could not reach the edge is refused", large_requests);
    CU_add_test(s, "a request has as many headers as the edge can be told, and no more", many_headers);
}
