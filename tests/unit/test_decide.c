/* Decisions at their edges: the lists that HAProxy applies and the headers after them, the cap on limits and their subjects, no memory. */
#include <CUnit/CUnit.h>
#include <stdio.h>

#include "common/base/varint.h"
#include "tests/unit/cases.h"
#include "tests/unit/policy_cases.h"

static struct arena arena;

static int set_up(void)
{
    arena_init(&arena, 4096, 0);
    return 0;
}

static int tear_down(void)
{
    arena_release(&arena);
    return 0;
}

static struct headers headers_of(const json_t *list)
{
    struct headers h = {.items = ARENA_NEW_N(&arena, json_array_size(list), struct header)};

    CU_ASSERT_PTR_NOT_NULL_FATAL(h.items);
    for (; h.n < json_array_size(list); h.n++) {
        h.items[h.n].name = str_of(json_string_value(json_array_get(json_array_get(list, h.n), 0)));
        h.items[h.n].value = str_of(json_string_value(json_array_get(json_array_get(list, h.n), 1)));
    }
    return h;
}

static bool same_headers(const struct headers *a, const struct headers *b)
{
    bool same = a->n == b->n;

    for (size_t i = 0; same && i < a->n; i++)
        same = str_eq(a->items[i].name, b->items[i].name) && str_eq(a->items[i].value, b->items[i].value);
    return same;
}

/* The names of a deletion list, against a list of texts. */
static bool deletes(struct str list, const json_t *wanted)
{
    for (size_t i = 0; i <= json_array_size(wanted); i++) {
        uint64_t len;
        if (!varint_get(&list, &len) || len > list.len)
            return false;
        if (i == json_array_size(wanted))
            return len == 0 && list.len == 0;
        if (!str_eq(str_sub(list, 0, (size_t) len), str_of(json_string_value(json_array_get(wanted, i)))))
            return false;
        list = str_sub(list, (size_t) len, list.len);
    }
    return false;
}

static void check_row(const json_t *row, const struct policy *p)
{
    struct headers sent = headers_of(json_object_get(row, "headers")), result = headers_of(json_object_get(row, "result"));
    struct headers added = headers_of(json_object_get(row, "add")), got_added;
    struct request_view view = {.facts = {.host = STR("a.example"), .method = STR("GET"), .path = STR("/")}, .headers = &sent};
    struct header_edit edit;
    struct rule_hits hits;

    CU_ASSERT_FATAL(policy_headers(p, &view, &arena, &edit, &hits));
    CASE_CHECK(row, same_headers(&edit.result, &result));
    if (json_is_null(json_object_get(row, "del"))) {
        CASE_CHECK(row, edit.del.len == 0 && edit.add.len == 0);
        return;
    }
    CASE_CHECK(row, deletes(edit.del, json_object_get(row, "del")));
    CASE_CHECK(row, headers_decode(edit.add, &arena, &got_added) && same_headers(&got_added, &added));
}

static json_t *row_of_rules(json_t *rules)
{
    return json_pack("{s:s, s:{s:O}}", "base", "minimal", "set", "/request_header_rules", rules);
}

static void rows_of_data(void)
{
    json_t *rows = cases_load("tests/cases/policy/header_edits.json"), *row;
    size_t i;

    json_array_foreach(rows, i, row)
    {
        json_t *document = row_of_rules(json_object_get(row, "rules"));
        struct policy *p = policy_case_compile(document);
        check_row(row, p);
        policy_free(&p);
        json_decref(document);
        arena_reset(&arena);
    }
    json_decref(rows);
}

/* As many and as long headers as compile allows: what compiles always fits. */
static void largest(void)
{
    json_t *row = json_loads("{\"base\":\"minimal\",\"fill\":{\"/request_header_rules\":[48,{\"id\":\"r#\",\"expression\":\"true\",\"ops\":["
                             "{\"op\":\"set\",\"name\":\"x-#\",\"value\":\"\"},{\"op\":\"set\",\"name\":\"X-#\",\"value\":\"\"}]}]}}",
                             0, NULL);
    struct headers none = {0};
    struct request_view view = {.facts = {.host = STR("a"), .method = STR("GET"), .path = STR("/")}, .headers = &none};
    static char value[1008];
    struct header_edit edit;
    struct rule_hits hits;

    memset(value, 'v', sizeof value);
    json_t *item = json_array_get(json_object_get(json_object_get(row, "fill"), "/request_header_rules"), 1);
    for (size_t i = 0; i < 2; i++)
        json_object_set_new(json_array_get(json_object_get(item, "ops"), i), "value", json_stringn(value, sizeof value));
    struct policy *p = policy_case_compile(row);
    CU_ASSERT_FATAL(policy_headers(p, &view, &arena, &edit, &hits));
    CU_ASSERT_EQUAL(hits.n, 48);
    CU_ASSERT_EQUAL(edit.result.n, 48);
    CU_ASSERT(edit.add.len > 48000 && edit.add.len <= 49152);
    policy_free(&p);
    json_decref(row);
    arena_reset(&arena);
}

static void no_memory(void)
{
    json_t *rules = json_loads("[{\"id\":\"r\",\"expression\":\"true\",\"ops\":[{\"op\":\"set\",\"name\":\"x-a\",\"value\":\"1\"}]}]", 0, NULL);
    json_t *row = row_of_rules(rules);
    struct policy *p = policy_case_compile(row);
    struct headers none = {0};
    struct request_view view = {.facts = {.host = STR("a"), .method = STR("GET"), .path = STR("/")}, .headers = &none};
    size_t limit = 1;
    bool done = false;

    for (; !done && limit < 4096; limit++) {
        struct arena tight;
        struct header_edit edit = {.del = STR("untouched")};
        struct rule_hits hits = {.n = 7};
        arena_init(&tight, 64, limit);
        done = policy_headers(p, &view, &tight, &edit, &hits);
        CU_ASSERT(done ? hits.n == 1 : hits.n == 7 && str_eq(edit.del, STR("untouched")));
        arena_release(&tight);
    }
    CU_ASSERT(done && limit > 2);
    policy_free(&p);
    json_decref(row);
    json_decref(rules);
}

/* What needs memory fails, so that a request is answered and not let through. */
static void no_memory_to_decide(void)
{
    json_t *row = json_object();
    struct policy *p = policy_case_compile(row);
    struct headers none = {0};
    struct request_view view = {.facts = {.host = STR("a"), .method = STR("GET"), .path = STR("/")}, .headers = &none};
    struct settings settings = {.block = BLOCK_LOG};
    struct limit_choice limits = {.n = 7};
    struct rule_hits hits = {.n = 7};
    struct arena tight;

    arena_init(&tight, 64, 1);
    CU_ASSERT_FALSE(policy_config(p, &view, &tight, &settings, &hits));
    CU_ASSERT(settings.block == BLOCK_LOG && hits.n == 7);
    CU_ASSERT_FALSE(policy_select_limits(p, &view, &tight, &limits));
    CU_ASSERT_EQUAL(limits.n, 7);
    arena_release(&tight);
    policy_free(&p);
    json_decref(row);
}

static void capped(void)
{
    json_t *row = json_loads("{\"fill\":{\"/rate_limit_rules\":[9,{\"id\":\"r#\",\"expression\":\"http.host eq \\\"a\\\"\",\"algorithm\":\"token_bucket\","
                             "\"limit\":1,\"period\":\"1s\",\"key\":[\"ip\"]}]},\"set\":{\"/kill_switch/rate_limit\":false}}",
                             0, NULL);
    struct policy *p = policy_case_compile(row);
    struct headers none = {0};
    struct request_view view = {.facts = {.host = STR("a"), .method = STR("GET"), .path = STR("/"), .has_ip = true}, .headers = &none};
    struct limit_choice limits;

    CU_ASSERT_FATAL(policy_select_limits(p, &view, &arena, &limits));
    CU_ASSERT_EQUAL(limits.n, POLICY_LIMITED_RULES_MAX);
    CU_ASSERT_EQUAL(limits.n_capped, 4);
    for (size_t i = 0; i < limits.n; i++)
        CU_ASSERT(limits.enforce[i]);
    policy_free(&p);
    json_object_set_new(json_object_get(row, "set"), "/kill_switch/rate_limit", json_true());
    p = policy_case_compile(row);
    CU_ASSERT_FATAL(policy_select_limits(p, &view, &arena, &limits));
    CU_ASSERT_EQUAL(limits.n, POLICY_LIMITED_RULES_MAX);
    for (size_t i = 0; i < limits.n; i++)
        CU_ASSERT_FALSE(limits.enforce[i]);
    policy_free(&p);
    json_decref(row);
    arena_reset(&arena);
}

static void subjects(void)
{
    struct rate_rule rule = {.on_missing_key = MISSING_FALLBACK_IP};
    struct request_view one = {.facts = {.has_ip = true}}, neighbour = one, none = {.facts = {.has_ip = false}};
    char storage[3][64];
    struct buf b[3];

    CU_ASSERT_FATAL(addr_parse(STR("2001:db8::1"), &one.facts.ip) && addr_parse(STR("2001:db8::2"), &neighbour.facts.ip));
    for (size_t i = 0; i < 3; i++)
        buf_init(&b[i], storage[i], sizeof storage[i]);
    policy_limit_subject(&rule, &one, &b[0]);
    policy_limit_subject(&rule, &neighbour, &b[1]);
    policy_limit_subject(&rule, &none, &b[2]);
    CU_ASSERT(str_eq(buf_str(&b[0]), buf_str(&b[1])));
    CU_ASSERT_FALSE(str_eq(buf_str(&b[0]), buf_str(&b[2])));
    CU_ASSERT_EQUAL(storage[0][0], RATE_DOMAIN_KEY);
    CU_ASSERT_EQUAL(storage[2][0], RATE_DOMAIN_FALLBACK_IP);
}

static void take_reports(const json_t *list, struct rate_rule *rules, struct limit_report *reports)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *item = json_array_get(list, i);
        rules[i].id = case_str(item, "id");
        rules[i].params.limit = (uint64_t) json_integer_value(json_object_get(item, "limit"));
        rules[i].params.period_ms = (uint64_t) json_integer_value(json_object_get(item, "period_ms"));
        reports[i].rule = &rules[i];
        reports[i].verdict.remaining = (uint64_t) json_integer_value(json_object_get(item, "remaining"));
        reports[i].verdict.reset_ms = (uint64_t) json_integer_value(json_object_get(item, "reset_ms"));
    }
}

static void limit_header_rows(void)
{
    json_t *rows = cases_load("tests/cases/policy/limit_headers.json"), *row, *names = json_pack("[s, s]", "ratelimit-policy", "ratelimit");
    size_t i;

    json_array_foreach(rows, i, row)
    {
        const json_t *list = json_object_get(row, "reports");
        struct rate_rule rules[POLICY_SITE_WIDE_MAX + POLICY_LIMITED_RULES_MAX] = {0};
        struct limit_report reports[POLICY_SITE_WIDE_MAX + POLICY_LIMITED_RULES_MAX] = {0};
        struct response_edit edit;
        struct headers added;
        struct str policies, limits;
        take_reports(list, rules, reports);
        CASE_CHECK(row, policy_limit_headers(reports, json_array_size(list), &arena, &edit));
        CASE_CHECK(row, deletes(edit.del, names));
        if (!CASE_CHECK(row, headers_decode(edit.add, &arena, &added) && added.n == 2))
            continue;
        bool has_both = headers_get(&added, STR("ratelimit-policy"), &policies) && headers_get(&added, STR("ratelimit"), &limits);
        CASE_CHECK(row, has_both && str_eq(policies, case_str(row, "policy")) && str_eq(limits, case_str(row, "ratelimit")));
        CASE_CHECK(row, has_both && header_value_ok(policies) && header_value_ok(limits));
        arena_reset(&arena);
    }
    json_decref(names);
    json_decref(rows);
}

static void limit_headers_of_nothing(void)
{
    struct response_edit edit = {.del = STR("x"), .add = STR("y")};

    CU_ASSERT(policy_limit_headers(NULL, 0, &arena, &edit));
    CU_ASSERT(edit.del.len == 0 && edit.add.len == 0);
}

static void limit_headers_without_memory(void)
{
    const struct rate_rule rule = {.id = STR("r"), .params = {.limit = 1, .burst = 1, .period_ms = 1000}};
    const struct limit_report report = {.rule = &rule};
    bool done = false;

    for (size_t limit = 1; !done && limit < 4096; limit += 16) {
        struct arena tight;
        struct response_edit edit = {.del = STR("untouched")};
        arena_init(&tight, 64, limit);
        done = policy_limit_headers(&report, 1, &tight, &edit);
        CU_ASSERT(done || str_eq(edit.del, STR("untouched")));
        arena_release(&tight);
    }
    CU_ASSERT(done);
}

void test_decide_register(void)
{
    CU_pSuite s = CU_add_suite("decide", set_up, tear_down);
    CU_add_test(s, "the lists for HAProxy hold the difference that header rules make, and nothing the client sent under those names", rows_of_data);
    CU_add_test(s, "the most that header rules may write fits into the lists", largest);
    CU_add_test(s, "header rules that find no memory fail and leave the outputs alone", no_memory);
    CU_add_test(s, "settings and limits that find no memory fail and leave the outputs alone", no_memory_to_decide);
    CU_add_test(s, "matching limits beyond the cap are counted, and none is enforced under the kill switch", capped);
    CU_add_test(s, "each enforced limit is one item of the headers that tell it, in place of the upstream's", limit_header_rows);
    CU_add_test(s, "without an enforced limit the response is left alone", limit_headers_of_nothing);
    CU_add_test(s, "limit headers that find no memory fail and leave the output alone", limit_headers_without_memory);
    CU_add_test(s, "a limit counts the neighbours of an IPv6 /64 as one, and apart from requests without an address", subjects);
}
