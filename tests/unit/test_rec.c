/* The agent's part of a record, read: every part, and what is refused in each. */
#include <CUnit/CUnit.h>
#include <stdio.h>

#include "spoa/record/rec.h"
#include "tests/unit/cases.h"

static void what_is_malformed_in_any_part_is_refused(void)
{
    json_t *rows = cases_load("tests/cases/record/recs_refused.json"), *row;
    size_t i;
    json_array_foreach(rows, i, row)
    {
        struct rec rec;
        CASE_CHECK(row, !rec_parse(case_str(row, "rec"), &rec));
    }
    json_decref(rows);
}

static void check_text(const json_t *row, const char *part, struct str got)
{
    const json_t *want = json_object_get(json_object_get(row, "want"), part);
    CASE_CHECK_GOT(row, want == NULL || str_eq(got, str_of(json_string_value(want))), got);
}

static void check_number(const json_t *row, const char *part, const char *format, uint64_t n)
{
    char text[32];
    snprintf(text, sizeof text, format[0] == 'x' ? "%llx" : "%llu", (unsigned long long) n);
    check_text(row, part, str_of(text));
}

static void check_rec(const json_t *row, const struct rec *rec)
{
    char trace[64] = "";
    check_number(row, "agent", "u", rec->agent);
    check_text(row, "cohort", rec->cohort == COHORT_ACTIVE ? STR("a") : STR("c"));
    check_number(row, "config_version", "u", (uint64_t) rec->config_version);
    check_text(row, "decision", str_of(decision_name(rec->decision)));
    check_text(row, "auth", rec->auth);
    check_text(row, "client_ip", rec->client_ip);
    check_text(row, "country", rec->country);
    check_text(row, "asnum", rec->asnum);
    check_text(row, "ja4", rec->ja4);
    check_number(row, "signals", "x", rec->signals);
    check_text(row, "limits", rec->limits);
    check_text(row, "config_rules", rec->config_rules);
    check_text(row, "header_rules", rec->header_rules);
    check_text(row, "counted", rec->counted);
    check_text(row, "subjects", rec->subjects);
    if (rec->trace.trace_id.len > 0)
        snprintf(trace, sizeof trace, "%.*s:%.*s:%d", STR_ARG(rec->trace.trace_id), STR_ARG(rec->trace.span_id), rec->trace.sampled);
    check_text(row, "trace", str_of(trace));
    check_text(row, "request_id", rec->request_id);
    check_text(row, "method", rec->method);
    check_text(row, "host", rec->host);
    check_text(row, "query_keys", rec->query_keys);
    check_number(row, "dropped", "u", rec->n_query_keys_dropped);
    check_text(row, "user_agent", rec->user_agent);
    check_text(row, "path", rec->path);
}

static void each_part_is_read(void)
{
    json_t *rows = cases_load("tests/cases/record/recs.json"), *row;
    size_t i;
    json_array_foreach(rows, i, row)
    {
        struct rec rec;
        if (CASE_CHECK(row, rec_parse(case_str(row, "rec"), &rec)))
            check_rec(row, &rec);
    }
    json_decref(rows);
}

static void check_list(const json_t *row)
{
    const json_t *items = json_object_get(row, "items");
    struct str list = case_str(row, "list");
    struct rec_item item;
    uint64_t n_left_out;
    size_t n = 0;
    while (rec_next(&list, &item, &n_left_out)) {
        const json_t *want = json_array_get(items, n++);
        CASE_CHECK_GOT(row, str_eq(item.id, str_of(json_string_value(json_array_get(want, 0)))), item.id);
        CASE_CHECK_GOT(row, str_eq(item.value, str_of(json_string_value(json_array_get(want, 1)))), item.value);
        CASE_CHECK(row, item.decided == json_is_true(json_array_get(want, 2)));
        if (n > json_array_size(items))
            break;
    }
    CASE_CHECK(row, n == json_array_size(items) && list.len == 0);
    CASE_CHECK(row, n_left_out == (uint64_t) json_integer_value(json_object_get(row, "left_out")));
}

static void a_list_is_its_items_and_what_had_no_room(void)
{
    json_t *rows = cases_load("tests/cases/record/lists.json"), *row;
    size_t i;
    json_array_foreach(rows, i, row) check_list(row);
    json_decref(rows);
}

void test_rec_register(void)
{
    CU_pSuite s = CU_add_suite("rec", NULL, NULL);
    CU_add_test(s, "each part is read", each_part_is_read);
    CU_add_test(s, "security: what is malformed in any part is refused, for a log line takes it as it is", what_is_malformed_in_any_part_is_refused);
    CU_add_test(s, "a list is its items, and how many had no room", a_list_is_its_items_and_what_had_no_room);
}
