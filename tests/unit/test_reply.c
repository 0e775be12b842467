/* The ACK: which variables tell a decision, in rows; what it does without when it gets too large. */
#include <CUnit/CUnit.h>
#include <stdlib.h>

#include "spoa/record/rec.h"
#include "tests/unit/cases.h"
#include "tests/unit/notify.h"
#include "tests/unit/policy_cases.h"

static struct notify_bench bench;

static bool set_up_bench(const json_t *policy)
{
    json_t *pages = json_pack("{s:s}", "base", "pages");
    bool ok = notify_bench_init(&bench, NULL) && notify_bench_publish_policy(&bench, policy_case_compile(policy != NULL ? policy : pages));
    json_decref(pages);
    return ok;
}

static uint64_t metric(enum metric m)
{
    return counter_get(&bench.context.counters.plain[m]);
}

static void check_row(const json_t *row, const json_t *answer)
{
    char *got = json_dumps(answer, JSON_COMPACT);
    const json_t *variables = json_object_get(answer, "variables"), *order = json_object_get(row, "order");
    const char *name;
    json_t *value;
    json_object_foreach(json_object_get(row, "expect"), name, value)
        CASE_CHECK_GOT(row, json_equal(json_object_get(variables, name), value), str_of(got));
    size_t i;
    json_array_foreach(json_object_get(row, "absent"), i, value)
        CASE_CHECK_GOT(row, json_object_get(variables, json_string_value(value)) == NULL, str_of(got));
    CASE_CHECK_GOT(row, order == NULL || json_equal(json_object_get(answer, "order"), order), str_of(got));
    CASE_CHECK(row, metric(METRIC_PAGE_LEFT_OUT) == (uint64_t) json_integer_value(json_object_get(row, "left_out")));
    CASE_CHECK(row, metric(METRIC_ACK_TOO_LARGE) == 0);
    free(got);
}

static void each_ack_has_the_variables_of_its_row(void)
{
    json_t *rows = cases_load("tests/cases/request/acks.json"), *row;
    size_t i;
    json_array_foreach(rows, i, row)
    {
        CU_ASSERT_FATAL(set_up_bench(json_object_get(row, "policy")));
        json_t *answer = notify_send(&bench, row);
        if (CASE_CHECK(row, answer != NULL))
            check_row(row, answer);
        json_decref(answer);
        notify_bench_release(&bench);
    }
    json_decref(rows);
}

/* --- Requests as no step leaves them yet, or only rarely --- */

/* Of pages.json: whose template for bad_gateway a test can make large. */
enum { LARGE_RULE = 5 };

static struct request request;

static void request_begin(void)
{
    const struct spop_frame frame = {.type = SPOP_NOTIFY, .stream_id = NOTIFY_STREAM, .frame_id = NOTIFY_FRAME};
    memset(&request, 0, sizeof request);
    request.context = &bench.context;
    arena_init(&request.arena, 4096, REQUEST_ARENA_MAX);
    spop_conn_adopt(bench.conn, &request.pending, &frame);
    CU_ASSERT_FATAL(request_pin(&request));
    CU_ASSERT_FATAL(addr_parse(STR("192.0.2.1"), &request.view.facts.ip));
    memcpy(request.settings.responses, request.policy->defaults, sizeof request.settings.responses);
    request.has_settings = true;
}

static json_t *request_answer(void)
{
    request_reply(&request);
    lease_put(request.lease);
    arena_release(&request.arena);
    return notify_read(&bench);
}

static bool has(json_t *answer, const char *name)
{
    return json_object_get(json_object_get(answer, "variables"), name) != NULL;
}

static bool has_list(json_t *answer, const char *name, const char *first, const char *second)
{
    json_t *wanted = second != NULL ? json_pack("[s, s]", first, second) : json_pack("[s]", first);
    bool same = json_equal(json_object_get(json_object_get(answer, "variables"), name), wanted);
    json_decref(wanted);
    return same;
}

static bool has_text(json_t *answer, const char *name, const char *wanted)
{
    const char *text = json_string_value(json_object_get(json_object_get(answer, "variables"), name));
    return text != NULL && strcmp(text, wanted) == 0;
}

static void the_response_is_edited_whoever_makes_it(void)
{
    for (int i = 0; i < 2; i++) {
        CU_ASSERT_FATAL(set_up_bench(NULL));
        request_begin();
        response_edit_delete(&request.response_edit, STR("x-a"));
        response_edit_add(&request.response_edit, STR("x-a"), STR("v"));
        if (i == 1)
            request_refuse(&request, DECISION_BLOCK, KIND_FORBIDDEN, 0);
        json_t *answer = request_answer();
        CU_ASSERT(has_list(answer, "res_del", "x-a", NULL));
        CU_ASSERT(has_list(answer, "res_add", "x-a", "v"));
        CU_ASSERT_EQUAL(has(answer, "status"), i == 1);
        json_decref(answer);
        notify_bench_release(&bench);
    }
}

/* To a HAProxy without lists a variable tells one of them. */
static void a_header_that_comes_twice_is_told_twice(void)
{
    CU_ASSERT_FATAL(set_up_bench(NULL));
    request_begin();
    response_edit_add(&request.response_edit, STR("vary"), STR("Origin"));
    response_edit_add(&request.response_edit, STR("vary"), STR("Accept"));
    json_t *answer = request_answer();
    CU_ASSERT(has_text(answer, "vary", "Origin") && has_list(answer, "res_add", "vary", "Accept"));
    json_decref(answer);
    notify_bench_release(&bench);
}

static void the_verdicts_own_page_answers(void)
{
    static struct template_part part = {.kind = TEMPLATE_STATUS};
    const struct template page = {.status = 429, .content_type = STR("text/plain"), .parts = &part, .n_parts = 1, .rendered_max = 3};
    CU_ASSERT_FATAL(set_up_bench(NULL));
    request_begin();
    request_refuse(&request, DECISION_RATE_LIMITED, KIND_RATE_LIMITED, 7);
    request.verdict.page = &page;
    json_t *answer = request_answer(), *variables = json_object_get(answer, "variables");
    CU_ASSERT_STRING_EQUAL(json_string_value(json_object_get(variables, "body")), "429");
    CU_ASSERT_STRING_EQUAL(json_string_value(json_object_get(variables, "ctype")), "text/plain");
    json_decref(answer);
    notify_bench_release(&bench);
}

/* Everything that made it too large must be gone from the second one. */
static void a_decision_too_large_for_an_ack_is_answered_unavailable(void)
{
    static char bytes[REQUEST_ACK_MAX];
    static struct template_part part = {.kind = TEMPLATE_LITERAL, .text = {bytes, 32 * 1024}};
    const struct template page = {.status = 429, .content_type = STR("text/plain"), .parts = &part, .n_parts = 1, .rendered_max = 32 * 1024};
    memset(bytes, 'b', sizeof bytes);
    CU_ASSERT_FATAL(set_up_bench(NULL));
    request_begin();
    response_edit_delete(&request.response_edit, (struct str){bytes, 15000});
    response_edit_add(&request.response_edit, STR("x-a"), (struct str){bytes, 15000});
    request.verdict.page = &page;
    request_refuse(&request, DECISION_RATE_LIMITED, KIND_RATE_LIMITED, 7);
    json_t *answer = request_answer(), *variables = json_object_get(answer, "variables");
    CU_ASSERT_EQUAL(json_integer_value(json_object_get(variables, "status")), 503);
    CU_ASSERT_EQUAL(json_integer_value(json_object_get(variables, "retry_after")), 1);
    CU_ASSERT_STRING_EQUAL(json_string_value(json_object_get(variables, "body")), "{\"error\":\"unavailable\"}");
    CU_ASSERT_FALSE(has(answer, "res_del") || has(answer, "res_add"));
    CU_ASSERT_EQUAL(metric(METRIC_ACK_TOO_LARGE), 1);
    json_decref(answer);
    notify_bench_release(&bench);
}

static const struct str cors_origin = {"https://a.example", sizeof "https://a.example" - 1};

/* A request whose CORS policy allows any page of one origin. */
static void begin_with_cors(struct cors_policy *policy)
{
    *policy = (struct cors_policy){.origins = {&cors_origin, 1}};
    request_begin();
    request.settings.cors = policy;
}

/* Also who asked by a preflight, which a 204 would tell that it is allowed. */
static void a_browser_can_read_that_a_decision_was_too_large(void)
{
    static char bytes[REQUEST_ACK_MAX];
    for (int i = 0; i < 2; i++) {
        struct cors_policy policy;
        CU_ASSERT_FATAL(set_up_bench(NULL));
        begin_with_cors(&policy);
        request.verdict.answer = request.verdict.preflight = i == 1;
        response_edit_add(&request.response_edit, STR("x-a"), (struct str){bytes, sizeof bytes});
        json_t *answer = request_answer();
        CU_ASSERT_EQUAL(json_integer_value(json_object_get(json_object_get(answer, "variables"), "status")), 503);
        CU_ASSERT(has(answer, "cors") && has_text(answer, "allow_origin", "https://a.example"));
        json_decref(answer);
        notify_bench_release(&bench);
    }
}

/* All three are decided in the same place of the pool. */
static void a_response_says_nothing_of_the_request_before(void)
{
    static const char some_with_cors[] = "{\"base\":\"pages\",\"set\":{\"/global/cors_policies\":{\"web\":{\"origins\":[\"https://a.example\"]}},\"/config_rules\":"
                                         "[{\"id\":\"web\",\"expression\":\"http.request.uri.path eq \\\"/web\\\"\",\"settings\":{\"cors_policy\":\"web\"}}]}}";
    json_t *policy = json_loads(some_with_cors, 0, NULL);
    CU_ASSERT_FATAL(set_up_bench(policy));
    for (int i = 0; i < 3; i++) {
        json_t *row = json_pack("{s:{s:s}}", "args", "url", i == 1 ? "/other" : "/web"), *answer = notify_send(&bench, row);
        CU_ASSERT_EQUAL(has(answer, "cors"), i != 1);
        CU_ASSERT(i == 1 ? !has(answer, "allow_origin") : has_text(answer, "allow_origin", "https://a.example"));
        json_decref(answer);
        json_decref(row);
    }
    CU_ASSERT_EQUAL(bench.context.n_requests, 1);
    notify_bench_release(&bench);
    json_decref(policy);
}

/* What a policy says is no reason to give no answer. */
static void where_not_even_cors_fits_the_answer_goes_without_it(void)
{
    static char bytes[REQUEST_ACK_MAX];
    struct cors_policy policy;
    CU_ASSERT_FATAL(set_up_bench(NULL));
    CU_ASSERT_FATAL(notify_bench_connect(&bench, 1024));
    begin_with_cors(&policy);
    policy.expose_headers = (struct str){bytes, CORS_EXPOSED_MAX};
    json_t *answer = request_answer();
    CU_ASSERT_EQUAL(json_integer_value(json_object_get(json_object_get(answer, "variables"), "status")), 503);
    CU_ASSERT_FALSE(has(answer, "cors") || has(answer, "allow_origin") || has(answer, "expose_headers") || has(answer, "res_add"));
    CU_ASSERT(has(answer, "ok"));
    json_decref(answer);
    notify_bench_release(&bench);
}

/* A fault of ours: half of what a response shall say, or half a page, is never said. */
static void a_response_changed_beyond_its_room_is_answered_unavailable(void)
{
    for (int i = 0; i < 2; i++) {
        CU_ASSERT_FATAL(set_up_bench(NULL));
        request_begin();
        for (size_t n = 0; n <= (i == 0 ? RESPONSE_ADDED_MAX : RESPONSE_DELETED_MAX); n++)
            if (i == 0)
                response_edit_add(&request.response_edit, STR("x-a"), STR("v"));
            else
                response_edit_delete(&request.response_edit, STR("x-a"));
        json_t *answer = request_answer();
        CU_ASSERT_EQUAL(json_integer_value(json_object_get(json_object_get(answer, "variables"), "status")), 503);
        CU_ASSERT_FALSE(has(answer, "res_del") || has(answer, "res_add"));
        CU_ASSERT_EQUAL(metric(METRIC_ACK_TOO_LARGE), 1);
        json_decref(answer);
        notify_bench_release(&bench);
    }
}

static void a_page_longer_than_it_promised_is_answered_unavailable(void)
{
    static struct template_part part = {.kind = TEMPLATE_STATUS};
    const struct template page = {.status = 429, .content_type = STR("text/plain"), .parts = &part, .n_parts = 1, .rendered_max = 2};
    CU_ASSERT_FATAL(set_up_bench(NULL));
    request_begin();
    request_refuse(&request, DECISION_RATE_LIMITED, KIND_RATE_LIMITED, 7);
    request.verdict.page = &page;
    json_t *answer = request_answer(), *variables = json_object_get(answer, "variables");
    CU_ASSERT_EQUAL(json_integer_value(json_object_get(variables, "status")), 503);
    CU_ASSERT_STRING_EQUAL(json_string_value(json_object_get(variables, "body")), "{\"error\":\"unavailable\"}");
    json_decref(answer);
    notify_bench_release(&bench);
}

/* HAProxy says how large its frames are; in the smallest not even "unavailable" fits beside a long record. */
static void where_no_answer_fits_the_connection_is_given_up(void)
{
    static char path[REC_MAX];
    memset(path, 'p', sizeof path);
    path[0] = '/';
    CU_ASSERT_FATAL(set_up_bench(NULL));
    CU_ASSERT_FATAL(notify_bench_connect(&bench, 1024));
    request_begin();
    request.args.url = (struct str){path, sizeof path};
    CU_ASSERT_PTR_NULL(request_answer());
    CU_ASSERT_PTR_NOT_NULL(spop_conn_error(bench.conn));
    notify_bench_release(&bench);
}

/* HAProxy hung up while the request waited. */
static void a_request_whose_connection_is_gone_ends_without_an_answer(void)
{
    CU_ASSERT_FATAL(set_up_bench(NULL));
    request_begin();
    spop_conn_free(&bench.conn);
    request_reply(&request);
    CU_ASSERT_EQUAL(metric(METRIC_ACK_TOO_LARGE), 0);
    lease_put(request.lease);
    arena_release(&request.arena);
    notify_bench_release(&bench);
}

/* Longer and longer, over every edge: what an ACK can do without goes before the decision does. */
static void what_an_ack_can_do_without_never_costs_the_decision(void)
{
    static char bytes[REQUEST_ACK_MAX];
    static const char with_large_page[] = "{\"base\":\"pages\",\"repeat\":{\"/global/responses/huge_502/body\":[\"b\",20000]}}";
    json_t *policy = json_loads(with_large_page, 0, NULL);
    bool left_out = false, too_large = false;
    CU_ASSERT_FATAL(set_up_bench(policy));
    for (size_t len = 39000; len < REQUEST_ACK_MAX && !too_large; len++) {
        CU_ASSERT_FATAL(notify_bench_connect(&bench, SPOP_FRAME_MAX));
        request_begin();
        request.settings.responses[KIND_BAD_GATEWAY] = request.policy->config_rules[LARGE_RULE].responses[KIND_BAD_GATEWAY];
        response_edit_add(&request.response_edit, STR("x-a"), (struct str){bytes, len});
        json_t *answer = request_answer();
        too_large = metric(METRIC_ACK_TOO_LARGE) > 0;
        CU_ASSERT_FATAL(has(answer, "res_add") == !too_large && has(answer, "status") == too_large);
        CU_ASSERT(!left_out || !has(answer, "t_bad_gateway"));
        left_out = metric(METRIC_PAGE_LEFT_OUT) > 0;
        json_decref(answer);
    }
    CU_ASSERT(too_large && left_out);
    notify_bench_release(&bench);
    json_decref(policy);
}

/* HAProxy's part of the work is a frame as large as haproxy.cfg says; a smaller one still gets its decision. */
static void a_small_frame_gets_the_decision_without_what_does_not_fit(void)
{
    static const char with_page[] = "{\"base\":\"pages\",\"repeat\":{\"/global/responses/payload_too_large/body\":[\"p\",2000],"
                                    "\"/global/responses/payload_too_large/content_type\":[\"text/plain\",1]}}";
    json_t *policy = json_loads(with_page, 0, NULL), *row = json_pack("{s:{s:s}}", "args", "url", "/own/x");
    CU_ASSERT_FATAL(set_up_bench(policy));
    CU_ASSERT_FATAL(notify_bench_connect(&bench, 1024));
    json_t *answer = notify_send(&bench, row);
    CU_ASSERT(has(answer, "t_bad_gateway") && has(answer, "ok"));
    CU_ASSERT_FALSE(has(answer, "proc.t_payload_too_large"));
    json_decref(answer);
    answer = notify_send(&bench, row);
    CU_ASSERT(has(answer, "proc.t_bad_gateway"));
    json_decref(answer);
    notify_bench_release(&bench);
    json_decref(policy);
    json_decref(row);
}

/* As many and as long parts as can come together; control characters need the longest escapes. */
static void the_longest_record_fits_its_variable(void)
{
    static const char long_rules[] =
        "{\"base\":\"pages\",\"fill\":{"
        "\"/config_rules\":[200,{\"id\":\"config-rule-with-an-id-of-about-sixty-four-characters-number-#\",\"expression\":\"true\",\"settings\":{}}],"
        "\"/request_header_rules\":[48,{\"id\":\"header-rule-with-an-id-of-about-sixty-four-characters-number-#\",\"expression\":\"true\","
        "\"ops\":[{\"op\":\"set\",\"name\":\"x-#\",\"value\":\"v\"}]}]}}";
    static char controls[4000] = "/", id[128];
    struct header host = {.name = STR("host"), .value = {controls + 1, 1000}};
    struct rec parsed;
    json_t *policy = json_loads(long_rules, 0, NULL);
    memset(controls + 1, 1, sizeof controls - 1);
    memset(id, 'i', sizeof id);
    CU_ASSERT_FATAL(set_up_bench(policy));
    request_begin();
    request.args.id = (struct str){id, sizeof id};
    request.args.method = request.args.url = (struct str){controls, sizeof controls};
    request.args.has_src = addr_parse(STR("2001:db8:aaaa:bbbb:cccc:dddd:eeee:ffff"), &request.args.src);
    request.headers = (struct headers){.items = &host, .n = 1};
    for (request.config_hits.n = 0; request.config_hits.n < 200; request.config_hits.n++)
        request.config_hits.index[request.config_hits.n] = request.config_hits.n;
    for (request.header_hits.n = 0; request.header_hits.n < 48; request.header_hits.n++)
        request.header_hits.index[request.header_hits.n] = request.header_hits.n;
    json_t *answer = request_answer();
    const json_t *rec = json_object_get(json_object_get(answer, "variables"), "rec");
    CU_ASSERT(json_string_length(rec) <= REC_MAX && json_string_length(rec) > REC_MAX - 6);
    CU_ASSERT_FATAL(rec_parse((struct str){json_string_value(rec), json_string_length(rec)}, &parsed));
    CU_ASSERT(parsed.host.len == 6 * REC_HOST_MAX && parsed.method.len == 6 * (REC_METHOD_MAX - 1) + 1);
    CU_ASSERT(str_starts(parsed.path, STR("/\\u0001")) && parsed.path.len > 1000);
    CU_ASSERT(parsed.config_rules.len <= REC_IDS_MAX + 6 && str_find(parsed.config_rules, STR(",+")) != SIZE_MAX);
    json_decref(answer);
    notify_bench_release(&bench);
    json_decref(policy);
}

void test_reply_register(void)
{
    CU_pSuite s = CU_add_suite("reply", NULL, NULL);
    CU_add_test(s, "each ACK has the variables of its row", each_ack_has_the_variables_of_its_row);
    CU_add_test(s, "the response is edited, whoever makes it", the_response_is_edited_whoever_makes_it);
    CU_add_test(s, "a header that comes twice is told twice", a_header_that_comes_twice_is_told_twice);
    CU_add_test(s, "the verdict's own page answers", the_verdicts_own_page_answers);
    CU_add_test(s, "a decision too large for an ACK is answered unavailable", a_decision_too_large_for_an_ack_is_answered_unavailable);
    CU_add_test(s, "security: a response says nothing of the request before", a_response_says_nothing_of_the_request_before);
    CU_add_test(s, "a browser can read that a decision was too large", a_browser_can_read_that_a_decision_was_too_large);
    CU_add_test(s, "where not even CORS fits, the answer goes without it", where_not_even_cors_fits_the_answer_goes_without_it);
    CU_add_test(s, "a response changed beyond its room is answered unavailable", a_response_changed_beyond_its_room_is_answered_unavailable);
    CU_add_test(s, "a page longer than it promised is answered unavailable, never cut", a_page_longer_than_it_promised_is_answered_unavailable);
    CU_add_test(s, "where no answer fits the connection is given up", where_no_answer_fits_the_connection_is_given_up);
    CU_add_test(s, "a request whose connection is gone ends without an answer", a_request_whose_connection_is_gone_ends_without_an_answer);
    CU_add_test(s, "what an ACK can do without never costs the decision", what_an_ack_can_do_without_never_costs_the_decision);
    CU_add_test(s, "the longest record fits its variable", the_longest_record_fits_its_variable);
    CU_add_test(s, "a small frame gets the decision without what does not fit", a_small_frame_gets_the_decision_without_what_does_not_fit);
}
