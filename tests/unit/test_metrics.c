/* Prometheus text, and the reader that other tests hold their scrapes against. */
#include <CUnit/CUnit.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/base/metrics.h"
#include "tests/unit/cases.h"
#include "tests/unit/metrics_check.h"
#include "tests/unit/refuse_memory.h"

static const char *const none[] = {NULL};

static struct str text_of(const struct metrics *m)
{
    return (struct str){m->p, m->len};
}

static void check_valid(const struct metrics *m)
{
    char why[256];

    CU_ASSERT(!m->failed);
    if (!metrics_check(text_of(m), why, sizeof(why)))
        CU_assertImplementation(CU_FALSE, __LINE__, why, __FILE__, "", CU_FALSE);
}

static void families_and_samples(void)
{
    struct metrics m;

    metrics_init(&m, 65536);
    metrics_family(&m, "edge_decisions_total", METRIC_COUNTER, "Requests by decision.");
    metrics_sample(&m, 12, (const char *const[]){"decision", "allow", NULL});
    metrics_sample(&m, 0, (const char *const[]){"decision", "block", "rule", "r1", NULL});
    metrics_family(&m, "edge_up", METRIC_GAUGE, "Whether it is up.");
    metrics_sample(&m, 1, none);
    check_valid(&m);
    CU_ASSERT(str_eq(text_of(&m), STR("# HELP edge_decisions_total Requests by decision.\n"
                                      "# TYPE edge_decisions_total counter\n"
                                      "edge_decisions_total{decision=\"allow\"} 12\n"
                                      "edge_decisions_total{decision=\"block\",rule=\"r1\"} 0\n"
                                      "# HELP edge_up Whether it is up.\n"
                                      "# TYPE edge_up gauge\n"
                                      "edge_up 1\n")));
    CU_ASSERT(str_eq(metrics_find(text_of(&m), "edge_up"), STR("1")));
    CU_ASSERT(str_eq(metrics_find(text_of(&m), "edge_decisions_total{decision=\"allow\"}"), STR("12")));
    CU_ASSERT(metrics_find(text_of(&m), "edge_decisions_total").p == NULL);
    metrics_release(&m);
    CU_ASSERT(m.p == NULL && m.len == 0);
}

static void numbers_survive(void)
{
    static const struct {
        double value;
        const char *text;
    } rows[] = {
        {0, "0"},           {-1.5, "-1.5"},
        {0.1, "0.1"},       {1.0 / 3, "0.33333333333333331"},
        {1e6, "1000000"},   {9007199254740991, "9007199254740991"},
        {1e300, "1e+300"},  {NAN, "NaN"},
        {INFINITY, "+Inf"}, {-INFINITY, "-Inf"},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct metrics m;

        metrics_init(&m, 4096);
        metrics_family(&m, "edge_x", METRIC_GAUGE, "x");
        metrics_sample(&m, rows[i].value, none);
        check_valid(&m);
        CU_ASSERT(str_eq(metrics_find(text_of(&m), "edge_x"), str_of(rows[i].text)));
        metrics_release(&m);
    }
}

static void hostile_values_stay_inside_their_quotes(void)
{
    struct metrics m;

    metrics_init(&m, 4096);
    metrics_family(&m, "edge_x", METRIC_GAUGE, "a \\ b\nedge_fake \"c\"");
    metrics_sample(&m, 1, (const char *const[]){"v", "\"} 2\nedge_fake{a=\"\\", NULL});
    metrics_sample(&m, 2, (const char *const[]){"v", "\xff\xc3\xa9\x01", NULL});
    check_valid(&m);
    CU_ASSERT(str_find(text_of(&m), STR("# HELP edge_x a \\\\ b\\nedge_fake \"c\"\n")) == 0);
    CU_ASSERT(str_eq(metrics_find(text_of(&m), "edge_x{v=\"\\\"} 2\\nedge_fake{a=\\\"\\\\\"}"), STR("1")));
    CU_ASSERT(str_eq(metrics_find(text_of(&m), "edge_x{v=\"\xef\xbf\xbd\xc3\xa9\x01\"}"), STR("2")));
    metrics_release(&m);
}

static void a_series_is_found_among_its_likes(void)
{
    struct metrics m;

    metrics_init(&m, 4096);
    metrics_family(&m, "edge_x", METRIC_GAUGE, "edge_x 1 and edge_x{a=\"1\"} 1");
    metrics_sample(&m, 1, (const char *const[]){"a", "edge_x ", NULL});
    metrics_sample(&m, 1, none);
    metrics_sample(&m, 1, (const char *const[]){"a", "1", NULL});
    metrics_sample(&m, 1, (const char *const[]){"a", "11", NULL});
    metrics_family(&m, "edge_x_y", METRIC_GAUGE, "# TYPE edge_x gauge");
    metrics_sample(&m, 1, (const char *const[]){"a", "1", NULL});
    check_valid(&m);
    metrics_sample(&m, 2, (const char *const[]){"a", "1", NULL});
    CU_ASSERT(m.failed);
    metrics_release(&m);
}

static void rules_of_the_format_fail_the_scrape(void)
{
    static const struct {
        const char *name;
        enum metric_type type;
        const char *label;
    } rows[] = {
        {"edge_requests", METRIC_COUNTER, "a"}, {"edge_up_total", METRIC_GAUGE, "a"},
        {"edge-up", METRIC_GAUGE, "a"},         {"", METRIC_GAUGE, "a"},
        {"1edge", METRIC_GAUGE, "a"},           {"edge_up", METRIC_GAUGE, "a-b"},
        {"edge_up", METRIC_GAUGE, ""},          {"edge_up", METRIC_GAUGE, "__name"},
        {"edge_up", METRIC_GAUGE, "1a"},        {"edge_up", METRIC_HISTOGRAM, "a"},
        {"edge_x_bucket", METRIC_GAUGE, "a"},   {"edge_x_count", METRIC_GAUGE, "a"},
        {"edge_x_sum", METRIC_GAUGE, "a"},      {"edge_x_total", METRIC_HISTOGRAM, "a"},
    };
    struct metrics m;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        metrics_init(&m, 4096);
        metrics_family(&m, rows[i].name, rows[i].type, "x");
        metrics_sample(&m, 1, (const char *const[]){rows[i].label, "v", NULL});
        CU_ASSERT(m.failed);
        metrics_release(&m);
    }
    metrics_init(&m, 4096);
    metrics_sample(&m, 1, none);
    CU_ASSERT(m.failed);
    metrics_release(&m);

    metrics_init(&m, 4096);
    metrics_family(&m, "edge_a", METRIC_GAUGE, "x");
    metrics_family(&m, "edge_b", METRIC_GAUGE, "x");
    CU_ASSERT(!m.failed);
    metrics_family(&m, "edge_a", METRIC_GAUGE, "x");
    CU_ASSERT(m.failed);
    metrics_release(&m);
}

static void a_histogram_is_cumulative_and_has_a_count(void)
{
    struct metrics m;

    metrics_init(&m, 4096);
    metrics_family(&m, "edge_x_seconds", METRIC_HISTOGRAM, "x");
    metrics_histogram(&m, (const char *const[]){"0.001", "0.5", "10"}, (const uint64_t[]){3, 0, 4, 1}, 3);
    check_valid(&m);
    CU_ASSERT(str_eq(text_of(&m), STR("# HELP edge_x_seconds x\n"
                                      "# TYPE edge_x_seconds histogram\n"
                                      "edge_x_seconds_bucket{le=\"0.001\"} 3\n"
                                      "edge_x_seconds_bucket{le=\"0.5\"} 3\n"
                                      "edge_x_seconds_bucket{le=\"10\"} 7\n"
                                      "edge_x_seconds_bucket{le=\"+Inf\"} 8\n"
                                      "edge_x_seconds_count 8\n")));
    metrics_histogram(&m, (const char *const[]){"1"}, (const uint64_t[]){0, 0}, 1);
    CU_ASSERT(m.failed);
    metrics_release(&m);
}

static void bounds_that_are_no_rising_numbers_fail_the_scrape(void)
{
    static const char *const rows[][2] = {{"1", "1"}, {"2", "1"}, {"1", "x"}, {"1", "2x"}, {"", "1"}, {"1", "+Inf"}, {"1", "NaN"}};
    static const uint64_t counts[3];
    struct metrics m;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        metrics_init(&m, 4096);
        metrics_family(&m, "edge_x", METRIC_HISTOGRAM, "x");
        metrics_histogram(&m, rows[i], counts, 2);
        CU_ASSERT(m.failed);
        metrics_release(&m);
    }
    metrics_init(&m, 4096);
    metrics_family(&m, "edge_x", METRIC_GAUGE, "x");
    metrics_histogram(&m, (const char *const[]){"1", "2"}, counts, 2);
    CU_ASSERT(m.failed);
    metrics_release(&m);
}

static void a_text_that_is_taken_is_the_callers(void)
{
    struct metrics m;
    size_t len = 0;

    metrics_init(&m, 4096);
    metrics_family(&m, "edge_x", METRIC_GAUGE, "x");
    metrics_sample(&m, 1, none);
    char *text = metrics_take(&m, &len);
    CU_ASSERT(text != NULL && str_ends((struct str){text, len}, STR("edge_x 1\n")));
    CU_ASSERT(m.p == NULL && m.keys == NULL);
    free(text);

    metrics_init(&m, 4096);
    metrics_sample(&m, 1, none);
    CU_ASSERT(metrics_take(&m, &len) == NULL);
}

/* Enough series for the table of their names to grow, and still each is there once. */
static bool many_series(void *arg, size_t n)
{
    struct metrics m;
    size_t len = 0;

    (void)arg;
    refuse_memory(n);
    metrics_init(&m, 65536);
    metrics_family(&m, "edge_x", METRIC_GAUGE, "x");
    for (unsigned i = 0; i < 600; i++) {
        char value[16];

        snprintf(value, sizeof(value), "%u", i);
        metrics_sample(&m, i, (const char *const[]){"n", value, NULL});
    }
    const bool refused = refuse_memory_end();
    if (!refused)
        check_valid(&m);
    char *text = metrics_take(&m, &len);
    CU_ASSERT((text == NULL) == refused);
    free(text);
    return refused;
}

static void a_scrape_without_memory_for_its_series_fails(void)
{
    CU_ASSERT(refuse_memory_everywhere(many_series, NULL) >= 3);
}

static void a_series_given_twice_is_found_among_many(void)
{
    struct metrics m;

    for (unsigned twice = 0; twice < 600; twice += 37) {
        metrics_init(&m, 65536);
        metrics_family(&m, "edge_x", METRIC_GAUGE, "x");
        for (unsigned i = 0; i <= 600; i++) {
            char value[16];

            CU_ASSERT(!m.failed);
            snprintf(value, sizeof(value), "%u", i == 600 ? twice : i);
            metrics_sample(&m, i, (const char *const[]){"n", value, NULL});
        }
        CU_ASSERT(m.failed);
        metrics_release(&m);
    }
}

static void a_scrape_that_does_not_fit_fails(void)
{
    struct metrics m;
    int n = 0;

    metrics_init(&m, 10000);
    metrics_family(&m, "edge_x", METRIC_GAUGE, "x");
    while (!m.failed && n < 10000) {
        char value[16];

        snprintf(value, sizeof(value), "%d", n++);
        metrics_sample(&m, 1, (const char *const[]){"n", value, NULL});
    }
    CU_ASSERT(m.failed && m.len <= 10000 && m.cap <= 10000 && n > 400);
    metrics_release(&m);
}

static void the_reader_refuses_invalid_scrapes(void)
{
    json_t *rows = cases_load("tests/cases/base/scrapes.json"), *row;
    size_t i;

    json_array_foreach(rows, i, row)
    {
        struct str fault = case_str(row, "fault");
        char why[256], text[4096];
        struct buf b;
        json_t *line;
        size_t k;

        buf_init(&b, text, sizeof(text));
        json_array_foreach(json_object_get(row, "lines"), k, line)
        {
            buf_put_cstr(&b, json_string_value(line));
            if (!json_is_true(json_object_get(row, "unended")))
                buf_put_byte(&b, '\n');
        }
        CASE_CHECK_GOT(row, metrics_check(buf_str(&b), why, sizeof(why)) == (fault.p == NULL), str_of(why));
        CASE_CHECK_GOT(row, str_eq(fault, str_of(why)), str_of(why));
    }
    json_decref(rows);
}

void test_metrics_register(void)
{
    CU_pSuite s = CU_add_suite("metrics", NULL, NULL);

    CU_add_test(s, "each family has HELP and TYPE once, then its samples", families_and_samples);
    CU_add_test(s, "numbers survive the text", numbers_survive);
    CU_add_test(s, "security: hostile label values stay inside their quotes", hostile_values_stay_inside_their_quotes);
    CU_add_test(s, "only the same series counts as given twice", a_series_is_found_among_its_likes);
    CU_add_test(s, "what breaks a rule of the format fails the scrape", rules_of_the_format_fail_the_scrape);
    CU_add_test(s, "a histogram's buckets are cumulative, and it has a count", a_histogram_is_cumulative_and_has_a_count);
    CU_add_test(s, "bounds that are no rising numbers fail the scrape", bounds_that_are_no_rising_numbers_fail_the_scrape);
    CU_add_test(s, "a text that is taken is the caller's", a_text_that_is_taken_is_the_callers);
    CU_add_test(s, "a scrape without memory for its series fails as a whole", a_scrape_without_memory_for_its_series_fails);
    CU_add_test(s, "a series given twice is found among many", a_series_given_twice_is_found_among_many);
    CU_add_test(s, "a scrape over its maximum fails as a whole", a_scrape_that_does_not_fit_fails);
    CU_add_test(s, "the reader that tests use refuses invalid scrapes", the_reader_refuses_invalid_scrapes);
}
