/* What HAProxy's process is told, ACK after ACK: by connection, by policy, by time. */
#include <CUnit/CUnit.h>

#include "tests/unit/cases.h"
#include "tests/unit/notify.h"
#include "tests/unit/policy_cases.h"
#include "spoa/request/process_vars.h"

static const char *const in_order[] = {"payload_too_large", "bad_gateway", "unavailable", "overloaded", "gateway_timeout"};
enum { N_PAGES = sizeof in_order / sizeof in_order[0] };

static struct notify_bench bench;

static struct policy *compile(const char *row_text)
{
    json_t *row = json_loads(row_text, 0, NULL);
    CU_ASSERT_FATAL(row != NULL);
    struct policy *p = policy_case_compile(row);
    json_decref(row);
    return p;
}

static void begin(const char *row_text)
{
    CU_ASSERT_FATAL(notify_bench_init(&bench, NULL) && notify_bench_publish_policy(&bench, compile(row_text)));
}

static json_t *variables_of(const char *url)
{
    json_t *row = json_pack("{s:{s:s}}", "args", "url", url), *answer = notify_send(&bench, row);
    CU_ASSERT_FATAL(answer != NULL);
    json_t *variables = json_incref(json_object_get(answer, "variables"));
    json_decref(answer);
    json_decref(row);
    return variables;
}

/* Which of in_order the next ACK brings; N_PAGES: none. Caps come with every page, and the content type with its body. */
static size_t next_page(void)
{
    json_t *variables = variables_of("/");
    size_t found = N_PAGES, n = 0;
    for (size_t i = 0; i < N_PAGES; i++) {
        char body[64], type[64];
        snprintf(body, sizeof body, "proc.t_%s", in_order[i]);
        snprintf(type, sizeof type, "proc.ct_%s", in_order[i]);
        bool there = json_object_get(variables, body) != NULL;
        CU_ASSERT_EQUAL(json_object_get(variables, type) != NULL, there);
        if (there) {
            found = i;
            n++;
        }
    }
    CU_ASSERT(n <= 1);
    CU_ASSERT_EQUAL(json_object_get(variables, "proc.cap_ord") != NULL, n == 1);
    CU_ASSERT_EQUAL(json_object_get(variables, "proc.cap_str") != NULL, n == 1);
    json_decref(variables);
    return found;
}

static void expect_pages(size_t from, size_t n)
{
    for (size_t i = from; i < from + n; i++)
        CU_ASSERT_EQUAL(next_page(), i % N_PAGES);
}

static void expect_silence(void)
{
    for (size_t i = 0; i < 3; i++)
        CU_ASSERT_EQUAL(next_page(), N_PAGES);
}

static void a_connection_is_told_everything_in_turn_until_five_seconds_have_passed(void)
{
    begin("{\"base\":\"pages\"}");
    expect_pages(0, 13);
    bench.now_us += PROCESS_VARS_REPEAT_US - 1;
    expect_pages(13, 1);
    bench.now_us += 1;
    expect_silence();
    notify_bench_release(&bench);
}

static void a_quiet_connection_is_told_everything_twice_however_long_that_takes(void)
{
    begin("{\"base\":\"pages\"}");
    for (size_t i = 0; i < PROCESS_VARS_ROUNDS * N_PAGES; i++) {
        expect_pages(i, 1);
        bench.now_us += 60 * 1000 * 1000;
    }
    expect_silence();
    notify_bench_release(&bench);
}

/* HAProxy was reloaded, or opened one more. */
static void a_new_connection_is_told_everything_twice_again(void)
{
    begin("{\"base\":\"pages\"}");
    expect_pages(0, 10);
    bench.now_us += PROCESS_VARS_REPEAT_US;
    expect_silence();
    CU_ASSERT_FATAL(notify_bench_connect(&bench, SPOP_FRAME_MAX));
    expect_pages(0, 10);
    expect_silence();
    notify_bench_release(&bench);
}

static json_int_t ordinary_cap(void)
{
    json_t *variables = variables_of("/");
    json_int_t cap = json_integer_value(json_object_get(variables, "proc.cap_ord"));
    json_decref(variables);
    return cap;
}

static void a_new_policy_is_told_from_the_beginning(void)
{
    begin("{\"base\":\"pages\"}");
    expect_pages(0, 3);
    CU_ASSERT_FATAL(notify_bench_publish_policy(&bench, compile("{\"base\":\"pages\",\"set\":{\"/global/max_inflight\":77}}")));
    CU_ASSERT_EQUAL(ordinary_cap(), 77);
    expect_pages(1, 9);
    bench.now_us += PROCESS_VARS_REPEAT_US;
    expect_silence();
    CU_ASSERT_FATAL(notify_bench_publish_policy(&bench, compile("{\"base\":\"pages\"}")));
    CU_ASSERT_EQUAL(ordinary_cap(), 700);
    expect_pages(1, 12);
    bench.now_us += PROCESS_VARS_REPEAT_US;
    expect_silence();
    notify_bench_release(&bench);
}

static void a_page_waits_for_an_ack_that_is_small(void)
{
    begin("{\"base\":\"pages\",\"repeat\":{\"/global/responses/huge_502/body\":[\"b\",31000]}}");
    expect_pages(0, 1);
    for (size_t i = 0; i < 20; i++) {
        json_t *variables = variables_of("/large/x");
        CU_ASSERT(json_object_get(variables, "t_bad_gateway") != NULL && json_object_get(variables, "proc.cap_ord") != NULL);
        CU_ASSERT(json_object_get(variables, "proc.t_bad_gateway") == NULL);
        json_decref(variables);
    }
    expect_pages(1, 9);
    bench.now_us += PROCESS_VARS_REPEAT_US;
    expect_silence();
    notify_bench_release(&bench);
}

/* Beside the largest ACK that still takes a page. */
static void the_largest_page_is_told(void)
{
    begin("{\"base\":\"pages\",\"repeat\":{\"/global/responses/payload_too_large/body\":[\"p\",32768],"
          "\"/global/responses/payload_too_large/content_type\":[\"text/plain\",1],\"/global/responses/huge_502/body\":[\"b\",24000]}}");
    json_t *variables = variables_of("/large/x");
    CU_ASSERT_EQUAL(json_string_length(json_object_get(variables, "proc.t_payload_too_large")), 32768);
    CU_ASSERT_EQUAL(json_string_length(json_object_get(variables, "t_bad_gateway")), 24000);
    CU_ASSERT_EQUAL(counter_get(&bench.context.counters.plain[METRIC_PAGE_LEFT_OUT]), 0);
    json_decref(variables);
    notify_bench_release(&bench);
}

/* HAProxy answers these itself, so only the id is left for it to fill in. */
static void each_page_says_when_asking_again_makes_sense(void)
{
    static const struct {
        const char *name, *text;
    } rows[] = {
        {"proc.t_payload_too_large", "{\"kind\":\"payload_too_large\",\"status\":413,\"wait\":0,\"id\":\"{{request_id}}\"}"},
        {"proc.t_bad_gateway", "{\"kind\":\"bad_gateway\",\"status\":502,\"wait\":0,\"id\":\"{{request_id}}\"}"},
        {"proc.t_unavailable", "{\"kind\":\"unavailable\",\"status\":503,\"wait\":1,\"id\":\"{{request_id}}\"}"},
        {"proc.t_overloaded", "{\"kind\":\"overloaded\",\"status\":503,\"wait\":1,\"id\":\"{{request_id}}\"}"},
        {"proc.t_gateway_timeout", "{\"kind\":\"gateway_timeout\",\"status\":504,\"wait\":0,\"id\":\"{{request_id}}\"}"},
    };
    begin("{\"base\":\"pages\"}");
    for (size_t i = 0; i < N_PAGES; i++) {
        json_t *variables = variables_of("/");
        const char *text = json_string_value(json_object_get(variables, rows[i].name));
        CU_ASSERT(text != NULL && strcmp(text, rows[i].text) == 0);
        if (i == 2)
            CU_ASSERT_STRING_EQUAL(json_string_value(json_object_get(variables, "proc.ct_unavailable")), "text/plain");
        json_decref(variables);
    }
    notify_bench_release(&bench);
}

static void without_a_policy_nothing_is_told(void)
{
    CU_ASSERT_FATAL(notify_bench_init(&bench, NULL));
    expect_silence();
    CU_ASSERT_FATAL(notify_bench_publish_policy(&bench, compile("{\"base\":\"pages\"}")));
    expect_pages(0, 2);
    notify_bench_release(&bench);
}

void test_process_vars_register(void)
{
    CU_pSuite s = CU_add_suite("process_vars", NULL, NULL);
    CU_add_test(s, "a connection is told everything in turn until five seconds have passed",
                a_connection_is_told_everything_in_turn_until_five_seconds_have_passed);
    CU_add_test(s, "a quiet connection is told everything twice, however long that takes",
                a_quiet_connection_is_told_everything_twice_however_long_that_takes);
    CU_add_test(s, "a new connection is told everything twice again", a_new_connection_is_told_everything_twice_again);
    CU_add_test(s, "a new policy is told from the beginning", a_new_policy_is_told_from_the_beginning);
    CU_add_test(s, "a page waits for an ACK that is small", a_page_waits_for_an_ack_that_is_small);
    CU_add_test(s, "the largest page is told", the_largest_page_is_told);
    CU_add_test(s, "each page says when asking again makes sense", each_page_says_when_asking_again_makes_sense);
    CU_add_test(s, "without a policy nothing is told", without_a_policy_nothing_is_told);
}
