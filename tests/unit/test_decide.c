/* Decisions at their edges: the headers that tell limits, no memory. */
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
    CU_ASSERT_FALSE(policy_select_limits(p, &view, &tight, 0, &limits));
    CU_ASSERT_EQUAL(limits.n, 7);
    arena_release(&tight);
    policy_free(&p);
    json_decref(row);
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
        struct response_edit edit = {0};
        struct headers added;
        struct str policies, limits, deleted, add;
        take_reports(list, rules, reports);
        CASE_CHECK(row, policy_limit_headers(reports, json_array_size(list), &arena, &edit));
        CASE_CHECK(row, response_edit_lists(&edit, &arena, &deleted, &add));
        CASE_CHECK(row, deletes(deleted, names));
        if (!CASE_CHECK(row, headers_decode(add, &arena, &added) && added.n == 2))
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
    struct response_edit edit = {0};

    response_edit_add(&edit, STR("vary"), STR("origin"));
    CU_ASSERT(policy_limit_headers(NULL, 0, &arena, &edit));
    CU_ASSERT(edit.n_deleted == 0 && edit.n_added == 1);
}

static void limit_headers_without_memory(void)
{
    const struct rate_rule rule = {.id = STR("r"), .params = {.limit = 1, .burst = 1, .period_ms = 1000}};
    const struct limit_report report = {.rule = &rule};
    bool done = false;

    for (size_t limit = 1; !done && limit < 4096; limit += 16) {
        struct arena tight;
        struct response_edit edit = {0};
        arena_init(&tight, 64, limit);
        done = policy_limit_headers(&report, 1, &tight, &edit);
        CU_ASSERT(done || (edit.n_deleted == 0 && edit.n_added == 0));
        arena_release(&tight);
    }
    CU_ASSERT(done);
}

void test_decide_register(void)
{
    CU_pSuite s = CU_add_suite("decide", set_up, tear_down);
    CU_add_test(s, "settings and limits that find no memory fail and leave the outputs alone", no_memory_to_decide);
    CU_add_test(s, "each enforced limit is one item of the headers that tell it, in place of the upstream's", limit_header_rows);
    CU_add_test(s, "without an enforced limit the response is left alone", limit_headers_of_nothing);
    CU_add_test(s, "limit headers that find no memory fail and leave the output alone", limit_headers_without_memory);
}
