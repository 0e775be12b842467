/* The backstop: rows of requests, policies and waits, and what each request is told. */
#include <CUnit/CUnit.h>

#include "spoa/record/rec.h"
#include "tests/unit/cases.h"
#include "tests/unit/notify.h"
#include "tests/unit/policy_cases.h"

static struct notify_bench bench;

static uint64_t untracked(void)
{
    return counter_get(&bench.context.counters.plain[METRIC_BACKSTOP_UNTRACKED]);
}

static struct backstop *in_force(void)
{
    return lease_newest_guard(&bench.source)->backstop;
}

static bool is_text(const json_t *wanted, const json_t *got)
{
    return wanted == NULL || (json_is_string(got) && strcmp(json_string_value(wanted), json_string_value(got)) == 0);
}

/* The record names the decision, and no rule. */
static void check_record(const json_t *row, const char *text)
{
    struct rec rec;
    bool ok = text != NULL && rec_parse(str_of(text), &rec);
    CASE_CHECK_GOT(row, ok && rec.decision == DECISION_BACKSTOP && rec.limits.len == 0, str_of(text != NULL ? text : ""));
}

static void check_answer(const json_t *row, const json_t *step, const json_t *variables)
{
    char *got = json_dumps(variables, JSON_COMPACT | JSON_ENCODE_ANY);
    const json_t *wait = json_object_get(step, "retry_after");
    CASE_CHECK_GOT(row, json_integer_value(json_object_get(variables, "status")) == json_integer_value(json_object_get(step, "status")), str_of(got));
    CASE_CHECK_GOT(row, wait == NULL || json_equal(wait, json_object_get(variables, "retry_after")), str_of(got));
    CASE_CHECK_GOT(row, is_text(json_object_get(step, "body"), json_object_get(variables, "body")), str_of(got));
    if (json_object_get(step, "decision") != NULL)
        check_record(row, json_string_value(json_object_get(variables, "rec")));
    free(got);
}

/* "ask": a client asks "times", each time with "status" (0: forwarded); "retry_after", "body" and "decision" where given; "untracked" of them uncounted. */
static void ask(const json_t *row, const json_t *step)
{
    json_t *notify = json_pack("{s:{s:{s:O}}}", "args", "src", "ip", json_object_get(step, "ask"));
    const uint64_t before = untracked();
    json_object_update(json_object_get(notify, "args"), json_object_get(step, "args"));
    for (json_int_t i = json_integer_value(json_object_get(step, "times")); i > 0; i--) {
        json_t *answer = notify_send(&bench, notify);
        if (CASE_CHECK(row, answer != NULL))
            check_answer(row, step, json_object_get(answer, "variables"));
        json_decref(answer);
    }
    CASE_CHECK(row, untracked() - before == (uint64_t) json_integer_value(json_object_get(step, "untracked")));
    json_decref(notify);
}

/* "clients": so many of them ask, each as in "ask". */
static void ask_each(const json_t *row, const json_t *step, json_int_t n)
{
    for (json_int_t i = 0; i < n; i++) {
        char client[32];
        snprintf(client, sizeof client, "198.51.%u.%u", (unsigned) i / 250, (unsigned) i % 250);
        json_t *one = json_copy((json_t *) (uintptr_t) step);
        json_object_set_new(one, "ask", json_string(client));
        ask(row, one);
        json_decref(one);
    }
}

static void do_step(const json_t *row, const json_t *step)
{
    const json_t *publish = json_object_get(step, "publish"), *clients = json_object_get(step, "clients");
    size_t left = 0;
    if (publish != NULL)
        CASE_CHECK(row, notify_bench_publish_policy(&bench, policy_case_compile(publish)));
    else if (clients != NULL)
        ask_each(row, step, json_integer_value(clients));
    else if (json_object_get(step, "ask") != NULL)
        ask(row, step);
    bench.now_us += (uint64_t) json_integer_value(json_object_get(step, "wait_ms")) * 1000;
    for (json_int_t i = json_integer_value(json_object_get(step, "sweeps")); i > 0; i--)
        left = backstop_sweep(in_force(), bench.now_us / 1000);
    CASE_CHECK(row, left == (size_t) json_integer_value(json_object_get(step, "left")));
}

static void each_step_of_a_row(void)
{
    json_t *rows = cases_load("tests/cases/request/backstop.json"), *row, *step;
    size_t i, k;
    json_array_foreach(rows, i, row)
    {
        CU_ASSERT_FATAL(notify_bench_init(&bench, NULL));
        json_array_foreach(json_object_get(row, "steps"), k, step)
            do_step(row, step);
        notify_bench_release(&bench);
    }
    json_decref(rows);
}

/* The policy is swapped while the request's own lease holds the old one, as one that waits for Valkey does. */
static void an_open_request_keeps_the_table_of_its_policy(void)
{
    static const struct addr client = {{0}};
    struct rate_verdict v;
    json_t *first = json_pack("{s:s, s:{s:{s:i, s:s}}}", "base", "pages", "set", "/global/backstop", "limit", 1, "period", "1h"),
           *second = json_pack("{s:s, s:{s:{s:i, s:s}}}", "base", "pages", "set", "/global/backstop", "limit", 2, "period", "1h");
    CU_ASSERT_FATAL(notify_bench_init(&bench, NULL) && notify_bench_publish_policy(&bench, policy_case_compile(first)));
    struct lease *held = lease_take(&bench.context.lease_slot);
    CU_ASSERT_EQUAL(backstop_check(held->guard->backstop, &client, 1, &v), RATE_COUNTED);
    CU_ASSERT(v.allowed);
    CU_ASSERT_FATAL(notify_bench_publish_policy(&bench, policy_case_compile(second)));
    lease_reap(&bench.source);
    CU_ASSERT(held->guard->backstop != in_force());
    CU_ASSERT_EQUAL(backstop_check(held->guard->backstop, &client, 1, &v), RATE_COUNTED);
    CU_ASSERT(!v.allowed);
    lease_put(held);
    lease_reap(&bench.source);
    CU_ASSERT_EQUAL(lease_n_published(&bench.source), 1);
    CU_ASSERT_EQUAL(backstop_check(in_force(), &client, 1, &v), RATE_COUNTED);
    CU_ASSERT(v.allowed);
    json_decref(first);
    json_decref(second);
    notify_bench_release(&bench);
}

/* Security: IDENTIFY refuses who has none; should it ever fail to, nobody passes uncounted. */
static void a_request_without_an_address_is_refused(void)
{
    static struct request request;
    json_t *policy = json_pack("{s:s, s:{s:{s:i, s:s}}}", "base", "pages", "set", "/global/backstop", "limit", 1, "period", "1h");
    CU_ASSERT_FATAL(notify_bench_init(&bench, NULL) && notify_bench_publish_policy(&bench, policy_case_compile(policy)));
    request.context = &bench.context;
    CU_ASSERT_FATAL(request_pin(&request));
    CU_ASSERT_EQUAL(step_backstop(&request), STEP_DONE);
    CU_ASSERT(request.verdict.answer && request.verdict.decision == DECISION_UNAVAILABLE && request.verdict.kind == KIND_UNAVAILABLE);
    CU_ASSERT_EQUAL(counter_get(&bench.context.counters.plain[METRIC_INTERNAL]), 1);
    lease_put(request.lease);
    notify_bench_release(&bench);
    json_decref(policy);
}

void test_backstop_register(void)
{
    CU_pSuite s = CU_add_suite("backstop", NULL, NULL);
    CU_add_test(s, "each client gets what its row says, over policies that come and go", each_step_of_a_row);
    CU_add_test(s, "an open request keeps the table of its policy", an_open_request_keeps_the_table_of_its_policy);
    CU_add_test(s, "security: a request without an address is refused, never passed uncounted", a_request_without_an_address_is_refused);
}
