/* What the pages /metrics and /stats make of counters, and that the largest of each fits. */
#include <CUnit/CUnit.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "spoa/metrics.h"
#include "spoa/stats.h"
#include "tests/unit/counted.h"
#include "tests/unit/metrics_check.h"
#include "tests/unit/refuse_memory.h"

static struct counts *counts;

/* Each test has counters of its own. */
static void set_up(void)
{
    CU_ASSERT_FATAL(counted_init(&counts));
}

static void tear_down(void)
{
    counted_release(&counts);
}

/* The page's text, malloc'd. */
static struct str scrape(void)
{
    struct metrics m;
    size_t len = 0;
    metrics_init(&m, METRICS_MAX_BYTES);
    metrics_put_counts(&m, counts);
    const char *text = metrics_take(&m, &len);
    return (struct str){text, text == NULL ? 0 : len};
}

static void release(struct str text)
{
    free((void *) (uintptr_t) text.p);
}

static void check_valid(struct str text)
{
    char why[256];
    CU_ASSERT_FATAL(text.p != NULL);
    if (!metrics_check(text, why, sizeof why))
        CU_assertImplementation(CU_FALSE, __LINE__, why, __FILE__, "", CU_FALSE);
}

static void series_are(struct str text, const char *const rows[][2], size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const struct str got = metrics_find(text, rows[i][0]);
        const bool ok = rows[i][1] == NULL ? got.p == NULL : str_eq(got, str_of(rows[i][1]));
        CU_assertImplementation(ok, __LINE__, rows[i][0], __FILE__, "", CU_FALSE);
    }
}

static void what_rate_needs_is_there_before_the_first_request(void)
{
    static const char *const rows[][2] = {
        {"edge_responses_total{origin=\"edge\",code=\"502\"}", "0"},
        {"edge_responses_total{origin=\"edge\",code=\"503\"}", "0"},
        {"edge_responses_total{origin=\"edge\",code=\"504\"}", "0"},
        {"edge_responses_total{origin=\"upstream\",code=\"502\"}", NULL},
        {"edge_responses_total{origin=\"upstream\",code=\"200\"}", NULL},
        {"edge_requests_total{class=\"none\"}", "0"},
        {"edge_requests_total{class=\"2xx\"}", "0"},
        {"edge_requests_total{class=\"other\"}", "0"},
        {"edge_decisions_total{decision=\"upstream_tls\"}", "0"},
        {"edge_upstream_errors_total{cause=\"dns\"}", "0"},
        {"edge_upstream_errors_total{cause=\"\"}", NULL},
        {"edge_request_duration_seconds_bucket{le=\"+Inf\"}", "0"},
        {"edge_request_duration_seconds_sum", NULL},
        {"edge_counts_rules_left_out", "0"},
    };
    const struct str text = scrape();
    check_valid(text);
    series_are(text, rows, sizeof rows / sizeof rows[0]);
    CU_ASSERT(str_find(text, STR("# TYPE edge_config_rule_total counter\n")) != SIZE_MAX);
    CU_ASSERT(str_find(text, STR("# TYPE edge_header_rule_total counter\n")) != SIZE_MAX);
    release(text);
}

/* Six requests, each of another kind. */
static void add_some(void)
{
    const struct rec shut = {.config_version = 7, .decision = DECISION_BLOCK, .config_rules = STR("!shut")};
    const struct rec limited = {
        .config_version = 7,
        .decision = DECISION_RATE_LIMITED,
        .limits = STR("!login:cl"),
        .subjects = STR("login:0123456789abcdef0123456789abcdef:X-Api-Key=\\u0022l"),
    };
    const struct rec passed = {.config_version = 7, .limits = STR("login:c"), .header_rules = STR("tag")};
    counted_prepare(counts, 7);
    counted_add(counts, &shut, DECISION_BLOCK, ORIGIN_EDGE, 403, 0);
    counted_add(counts, &limited, DECISION_RATE_LIMITED, ORIGIN_EDGE, 429, 0);
    counted_add(counts, &passed, DECISION_ALLOW, ORIGIN_UPSTREAM, 200, 3);
    counted_add(counts, &passed, DECISION_ALLOW, ORIGIN_UPSTREAM, 999, 40000);
    counted_add(counts, &passed, DECISION_ALLOW, ORIGIN_EDGE, 0, 30000);
    const struct outcome failed = {.decision = DECISION_UPSTREAM_ERROR, .status = 502, .upstream_error = UPSTREAM_ERROR_REFUSED, .latency_ms = 29999};
    counts_add(counts, &passed, &failed);
}

static void each_request_counts_once_under_each_heading(void)
{
    static const char *const rows[][2] = {
        {"edge_responses_total{origin=\"edge\",code=\"0\"}", "1"},
        {"edge_responses_total{origin=\"edge\",code=\"403\"}", "1"},
        {"edge_responses_total{origin=\"edge\",code=\"429\"}", "1"},
        {"edge_responses_total{origin=\"edge\",code=\"502\"}", "1"},
        {"edge_responses_total{origin=\"edge\",code=\"503\"}", "0"},
        {"edge_responses_total{origin=\"upstream\",code=\"200\"}", "1"},
        {"edge_responses_total{origin=\"upstream\",code=\"600\"}", "1"},
        {"edge_requests_total{class=\"none\"}", "1"},
        {"edge_requests_total{class=\"1xx\"}", "0"},
        {"edge_requests_total{class=\"2xx\"}", "1"},
        {"edge_requests_total{class=\"4xx\"}", "2"},
        {"edge_requests_total{class=\"5xx\"}", "1"},
        {"edge_requests_total{class=\"other\"}", "1"},
        {"edge_decisions_total{decision=\"allow\"}", "3"},
        {"edge_decisions_total{decision=\"block\"}", "1"},
        {"edge_decisions_total{decision=\"upstream_error\"}", "1"},
        {"edge_upstream_errors_total{cause=\"refused\"}", "1"},
        {"edge_upstream_errors_total{cause=\"reset\"}", "0"},
        {"edge_request_duration_seconds_bucket{le=\"0.001\"}", "2"},
        {"edge_request_duration_seconds_bucket{le=\"0.002\"}", "2"},
        {"edge_request_duration_seconds_bucket{le=\"0.005\"}", "3"},
        {"edge_request_duration_seconds_bucket{le=\"10\"}", "3"},
        {"edge_request_duration_seconds_bucket{le=\"30\"}", "4"},
        {"edge_request_duration_seconds_bucket{le=\"+Inf\"}", "6"},
        {"edge_request_duration_seconds_count", "6"},
        {"edge_config_rule_total{rule=\"shut\",outcome=\"matched\"}", "1"},
        {"edge_config_rule_total{rule=\"shut\",outcome=\"blocked\"}", "1"},
        {"edge_config_rule_total{rule=\"shut\",outcome=\"would_block\"}", NULL},
        {"edge_ratelimit_rule_total{rule=\"login\",outcome=\"checked\"}", "5"},
        {"edge_ratelimit_rule_total{rule=\"login\",outcome=\"limited\"}", "1"},
        {"edge_header_rule_total{rule=\"tag\",outcome=\"matched\"}", "4"},
        {"edge_header_rule_total{rule=\"tag\",outcome=\"edge_5xx\"}", "1"},
    };
    add_some();
    const struct str text = scrape();
    check_valid(text);
    series_are(text, rows, sizeof rows / sizeof rows[0]);
    release(text);
}

/* The page as JSON; a reference of the caller's. */
static json_t *stats(size_t *len)
{
    char *storage = malloc(STATS_PAGE_MAX);
    CU_ASSERT_FATAL(storage != NULL);
    struct buf b;
    buf_init(&b, storage, STATS_PAGE_MAX);
    CU_ASSERT(stats_put(&b, counts, 1));
    json_t *page = json_loadb(b.p, b.len, JSON_REJECT_DUPLICATES, NULL);
    CU_ASSERT_PTR_NOT_NULL_FATAL(page);
    *len = b.len;
    free(storage);
    return page;
}

static void stats_say_it_by_version(void)
{
    size_t len;
    add_some();
    json_t *got = stats(&len), *again = stats(&len);
    json_t *want = json_loads("{\"agent\":1,\"records_lost\":0,\"rules_left_out\":0,\"versions\":[{\"config_version\":7,\"cohort\":\"active\",\"requests\":6,"
                              "\"status_codes\":{\"edge\":{\"0\":1,\"403\":1,\"429\":1,\"502\":1},\"upstream\":{\"200\":1,\"600\":1}},"
                              "\"decisions\":{\"allow\":3,\"block\":1,\"rate_limited\":1,\"upstream_error\":1},\"upstream_errors\":{\"refused\":1},"
                              "\"latency\":{\"0.001\":2,\"0.005\":1,\"30\":1,\"+Inf\":2},"
                              "\"rules\":{\"config\":{\"shut\":{\"matched\":1,\"blocked\":1}},\"rate_limit\":{\"login\":{\"checked\":5,\"limited\":1}},"
                              "\"request_headers\":{\"tag\":{\"matched\":4,\"edge_5xx\":1,\"upstream_5xx\":1}}},"
                              "\"most_limited\":[{\"rule\":\"login\",\"subject\":\"0123456789abcdef0123456789abcdef\",\"display\":\"X-Api-Key=\\\"l\","
                              "\"count\":16,\"err\":0}]}]}",
                              0, NULL);
    CU_ASSERT_PTR_NOT_NULL_FATAL(want);
    if (!json_equal(got, want)) {
        char *text = json_dumps(got, 0);
        CU_assertImplementation(CU_FALSE, __LINE__, text, __FILE__, "", CU_FALSE);
        free(text);
    }
    CU_ASSERT(json_equal(again, got));
    json_decref(got);
    json_decref(again);
    json_decref(want);
}

static void stats_of_an_edge_without_requests_are_no_versions(void)
{
    size_t len;
    json_t *page = stats(&len);
    CU_ASSERT_EQUAL(json_array_size(json_object_get(page, "versions")), 0);
    json_decref(page);
}

static void the_largest_pages_fit(void)
{
    size_t n_lines = 0, len;
    const size_t n_rules = counted_fill(counts);
    const struct str text = scrape();
    check_valid(text);
    for (size_t i = 0; i < text.len; i++)
        n_lines += text.p[i] == '\n';
    CU_ASSERT(n_lines > n_rules / 3 * (6 + 6 + 4) + 2 * OUTCOME_STATUS_MAX);
    /* A number has at most 20 digits, and is one here. */
    CU_ASSERT(text.len + 19 * n_lines < METRICS_MAX_BYTES);
    release(text);

    json_t *page = stats(&len), *version;
    size_t i, n_counts = n_rules / 3 * (6 + 6 + 4) + COUNTS_VERSIONS_MAX * 2 * OUTCOME_STATUS_MAX;
    CU_ASSERT_EQUAL(json_array_size(json_object_get(page, "versions")), COUNTS_VERSIONS_MAX);
    json_array_foreach(json_object_get(page, "versions"), i, version)
        CU_ASSERT_EQUAL(json_object_size(json_object_get(json_object_get(version, "rules"), "config")), POLICY_RULES_MAX);
    CU_ASSERT(len + 19 * n_counts < STATS_PAGE_MAX);
    json_decref(page);
}

static bool stats_refused(void *arg, size_t n)
{
    char storage[4096];
    struct buf b;
    (void) arg;
    buf_init(&b, storage, sizeof storage);
    refuse_memory(n);
    const bool ok = stats_put(&b, counts, 1), refused = refuse_memory_end();
    CU_ASSERT(ok != refused);
    return refused;
}

static void stats_without_memory_are_none(void)
{
    add_some();
    CU_ASSERT(refuse_memory_everywhere(stats_refused, NULL) >= 1);
}

static void a_page_that_does_not_fit_is_none(void)
{
    char storage[200];
    struct buf b;
    add_some();
    for (size_t room = 1; room < sizeof storage; room++) {
        buf_init(&b, storage, room);
        CU_ASSERT_FALSE(stats_put(&b, counts, 1));
    }
}

void test_metrics_page_register(void)
{
    CU_pSuite s = CU_add_suite_with_setup_and_teardown("metrics_page", NULL, NULL, set_up, tear_down);

    CU_add_test(s, "what rate() needs is there before the first request", what_rate_needs_is_there_before_the_first_request);
    CU_add_test(s, "each request counts once under each heading", each_request_counts_once_under_each_heading);
    CU_add_test(s, "/stats says it by version, the same to everyone who asks", stats_say_it_by_version);
    CU_add_test(s, "/stats of an edge without requests has no versions", stats_of_an_edge_without_requests_are_no_versions);
    CU_add_test(s, "the largest pages fit", the_largest_pages_fit);
    CU_add_test(s, "/stats without memory are none", stats_without_memory_are_none);
    CU_add_test(s, "a page that does not fit is none", a_page_that_does_not_fit_is_none);
}
