/* One request in the agent: rows of NOTIFYs and what the ACK tells HAProxy. */
#include <CUnit/CUnit.h>

#include "tests/unit/cases.h"
#include "tests/unit/notify.h"
#include "tests/unit/policy_cases.h"
#include "tests/unit/refuse_memory.h"

static const char policy[] = "tests/cases/request/policy.json";
static const char policy_next[] = "tests/cases/request/policy_next.json";

static struct notify_bench bench;

static void check_expected(const json_t *row, json_t *answer)
{
    char *got = json_dumps(answer, JSON_COMPACT);
    const json_t *variables = json_object_get(answer, "variables"), *order = json_object_get(answer, "order");
    const json_t *expect = json_object_get(row, "expect"), *absent = json_object_get(row, "absent");
    const char *name;
    json_t *value;
    size_t i;
    json_object_foreach((json_t *) (uintptr_t) expect, name, value)
        CASE_CHECK_GOT(row, json_equal(json_object_get(variables, name), value), str_of(got));
    json_array_foreach(absent, i, value)
        CASE_CHECK_GOT(row, json_object_get(variables, json_string_value(value)) == NULL, str_of(got));
    const char *last = json_string_value(json_array_get(order, json_array_size(order) - 1));
    CASE_CHECK_GOT(row, last != NULL && strcmp(last, "ok") == 0, str_of(got));
    free(got);
}

/* The one reason that the row names is counted, or none. */
static void check_refusals(const json_t *row)
{
    const char *wanted = json_string_value(json_object_get(row, "refused"));
    for (enum identity_refusal i = IDENTITY_OK; i < IDENTITY_REFUSAL_N; i++) {
        bool is_it = wanted != NULL && strcmp(identity_refusal_name(i), wanted) == 0;
        CASE_CHECK_GOT(row, counter_get(&bench.context.counters.identity_refusals[i]) == (is_it ? 1 : 0), str_of(identity_refusal_name(i)));
    }
}

static void each_row(const char *file, const char *policy_file)
{
    json_t *rows = cases_load(file), *row;
    size_t i;
    json_array_foreach(rows, i, row)
    {
        CU_ASSERT_FATAL(notify_bench_init(&bench, policy_file));
        CASE_CHECK(row, notify_bench_reach(&bench, json_object_get(row, "reached")));
        json_t *answer = notify_send(&bench, row);
        if (CASE_CHECK(row, answer != NULL))
            check_expected(row, answer);
        check_refusals(row);
        json_decref(answer);
        notify_bench_release(&bench);
    }
    json_decref(rows);
}

static void each_request_gets_the_decision_of_its_row(void)
{
    each_row("tests/cases/request/decisions.json", policy);
}

static void the_client_is_who_the_trusted_front_says(void)
{
    each_row("tests/cases/request/clients.json", policy);
}

static void malformed_questions_are_answered_unavailable(void)
{
    each_row("tests/cases/request/malformed.json", policy);
}

static void without_a_policy_every_request_is_answered_unavailable(void)
{
    each_row("tests/cases/request/no_policy.json", NULL);
}

static json_int_t status_of(json_t *answer)
{
    json_int_t status = json_integer_value(json_object_get(json_object_get(answer, "variables"), "status"));
    json_decref(answer);
    return status;
}

static void a_spent_limit_refuses_until_its_retry_after_has_passed(void)
{
    CU_ASSERT_FATAL(notify_bench_init(&bench, policy));
    json_t *row = json_pack("{s:{s:s, s:s}}", "args", "method", "POST", "url", "/login");
    CU_ASSERT_EQUAL(status_of(notify_send(&bench, row)), 0);
    CU_ASSERT_EQUAL(status_of(notify_send(&bench, row)), 0);
    json_t *refused = notify_send(&bench, row);
    json_int_t wait_s = json_integer_value(json_object_get(json_object_get(refused, "variables"), "retry_after"));
    CU_ASSERT_EQUAL(wait_s, 30);
    CU_ASSERT_EQUAL(status_of(refused), 429);
    bench.now_us += (uint64_t) (wait_s - 1) * 1000000;
    CU_ASSERT_EQUAL(status_of(notify_send(&bench, row)), 429);
    bench.now_us += 1000000;
    CU_ASSERT_EQUAL(status_of(notify_send(&bench, row)), 0);
    json_decref(row);
    notify_bench_release(&bench);
}

static void counts_survive_a_new_policy_whose_rule_is_the_same(void)
{
    CU_ASSERT_FATAL(notify_bench_init(&bench, policy));
    json_t *row = json_pack("{s:{s:s, s:s}}", "args", "method", "POST", "url", "/login");
    CU_ASSERT_EQUAL(status_of(notify_send(&bench, row)), 0);
    CU_ASSERT_EQUAL(status_of(notify_send(&bench, row)), 0);
    CU_ASSERT_FATAL(notify_bench_publish(&bench, policy_next));
    CU_ASSERT_EQUAL(status_of(notify_send(&bench, row)), 429);
    json_decref(row);
    notify_bench_release(&bench);
}

static void a_new_policy_decides_the_next_request(void)
{
    CU_ASSERT_FATAL(notify_bench_init(&bench, policy));
    json_t *row = json_pack("{s:{s:s}}", "args", "url", "/only-next");
    CU_ASSERT_EQUAL(status_of(notify_send(&bench, row)), 0);
    CU_ASSERT_FATAL(notify_bench_publish(&bench, policy_next));
    CU_ASSERT_EQUAL(status_of(notify_send(&bench, row)), 403);
    json_decref(row);
    notify_bench_release(&bench);
}

static void requests_one_after_the_other_use_one_slot_of_the_pool(void)
{
    CU_ASSERT_FATAL(notify_bench_init(&bench, policy));
    json_t *row = json_pack("{s:{s:s}}", "args", "url", "/api/thing?a=b");
    for (int i = 0; i < 100; i++)
        CU_ASSERT_EQUAL(status_of(notify_send(&bench, row)), 0);
    CU_ASSERT_EQUAL(bench.context.n_requests, 1);
    json_decref(row);
    notify_bench_release(&bench);
}

/* --- memory --- */

/* What HAProxy can do without: pages for its own errors, and what it keeps for all requests. */
static bool is_optional(const char *name)
{
    return strncmp(name, "proc.", 5) == 0 || strncmp(name, "t_", 2) == 0 || strncmp(name, "ct_", 3) == 0;
}

/* may_differ: what may say something else, but must be there; NULL: nothing. */
static bool decides_the_same(const json_t *got, const json_t *wanted, const char *may_differ)
{
    const char *name;
    json_t *value;
    json_object_foreach((json_t *) (uintptr_t) wanted, name, value)
        if (may_differ != NULL && strcmp(name, may_differ) == 0 ? json_object_get(got, name) == NULL
                                                                 : !is_optional(name) && !json_equal(json_object_get(got, name), value))
            return false;
    return true;
}

/* A request, and its answer as it is with memory. */
struct wanted {
    const json_t *row;
    json_t *answer;
};

static void bench_of(const json_t *row)
{
    const json_t *own = json_object_get(row, "policy");
    CU_ASSERT_FATAL(notify_bench_init(&bench, own == NULL ? policy : NULL));
    CU_ASSERT_FATAL(own == NULL || notify_bench_publish_policy(&bench, policy_case_compile(own)));
    CU_ASSERT_FATAL(notify_bench_reach(&bench, json_object_get(row, "reached")));
}

static bool request_refused(void *arg, size_t n)
{
    const struct wanted *w = arg;
    bench_of(w->row);
    bench.refuse_n = n;
    bench.refuses = true;
    json_t *answer = notify_send(&bench, w->row), *variables = json_object_get(answer, "variables");
    const bool fails = json_integer_value(json_object_get(variables, "status")) == 503;
    /* Without room for the request itself the connection ends, and HAProxy knows. */
    CASE_CHECK(w->row, answer != NULL || (bench.refused && bench.context.n_requests == 0));
    CASE_CHECK(w->row, (answer == NULL || fails) ? bench.refused && json_object_get(variables, "client_ip") == NULL
                             : decides_the_same(variables, json_object_get(w->answer, "variables"),
                                                json_string_value(json_object_get(w->row, "may_differ"))));
    json_decref(answer);
    notify_bench_release(&bench);
    return bench.refused;
}

static void no_request_is_forwarded_half_decided_where_memory_is_refused(void)
{
    json_t *rows = cases_load("tests/cases/request/memory.json"), *row;
    size_t i;
    json_array_foreach(rows, i, row)
    {
        struct wanted w = {.row = row};
        bench_of(row);
        w.answer = notify_send(&bench, row);
        notify_bench_release(&bench);
        if (CASE_CHECK(row, w.answer != NULL))
            check_expected(row, w.answer);
        CASE_CHECK(row, refuse_memory_everywhere(request_refused, &w) >= 5);
        json_decref(w.answer);
    }
    json_decref(rows);
}

void test_request_register(void)
{
    CU_pSuite s = CU_add_suite("request", NULL, NULL);
    CU_add_test(s, "each request gets the decision of its row", each_request_gets_the_decision_of_its_row);
    CU_add_test(s, "the client is who the trusted front says", the_client_is_who_the_trusted_front_says);
    CU_add_test(s, "malformed questions are answered unavailable", malformed_questions_are_answered_unavailable);
    CU_add_test(s, "without a policy every request is answered unavailable", without_a_policy_every_request_is_answered_unavailable);
    CU_add_test(s, "a spent limit refuses until its Retry-After has passed", a_spent_limit_refuses_until_its_retry_after_has_passed);
    CU_add_test(s, "counts survive a new policy whose rule is the same", counts_survive_a_new_policy_whose_rule_is_the_same);
    CU_add_test(s, "a new policy decides the next request", a_new_policy_decides_the_next_request);
    CU_add_test(s, "requests one after the other use one slot of the pool", requests_one_after_the_other_use_one_slot_of_the_pool);
    CU_add_test(s, "security: no request is forwarded half decided where memory is refused", no_request_is_forwarded_half_decided_where_memory_is_refused);
}
