/* Rate-limit and header rules of a document: which faults they can have, and what all rules are warned about. */
#include <CUnit/CUnit.h>

#include "tests/unit/cases.h"
#include "tests/unit/policy_cases.h"

enum { NAMES_MAX = 8 };

static struct errlist errors, warnings;
static struct str unreadable[NAMES_MAX];

static int set_up(void)
{
    return errlist_init(&errors, 0) && errlist_init(&warnings, 0) ? 0 : 1;
}

static int tear_down(void)
{
    errlist_release(&errors);
    errlist_release(&warnings);
    return 0;
}

static uint32_t sources_of(const json_t *names)
{
    uint32_t sources = names ? 0 : UINT32_MAX;

    for (size_t i = 0; i < json_array_size(names); i++)
        for (int s = 0; s < EXPR_N_SOURCES; s++)
            if (strcmp(json_string_value(json_array_get(names, i)), expr_source_name((enum expr_source) s)) == 0)
                sources |= 1u << s;
    return sources;
}

/* "deployment": {"sources", "unreadable"}; without one there is everything. */
static struct expr_deployment deployment_of(const json_t *row)
{
    const json_t *deployment = json_object_get(row, "deployment"), *names = json_object_get(deployment, "unreadable");
    struct expr_deployment d = {.sources = sources_of(json_object_get(deployment, "sources")), .allow_regex = true, .unreadable = unreadable};

    CU_ASSERT_FATAL(json_array_size(names) <= NAMES_MAX);
    for (; d.n_unreadable < json_array_size(names); d.n_unreadable++)
        unreadable[d.n_unreadable] = str_of(json_string_value(json_array_get(names, d.n_unreadable)));
    return d;
}

/* "only": the one code of warnings that the row is about. */
static void keep_only(const json_t *row)
{
    struct str code = case_str(row, "only");
    size_t kept = 0;

    for (size_t i = 0; code.len > 0 && i < warnings.n; i++)
        if (str_eq(code, str_of(err_code_name(warnings.items[i].code))))
            warnings.items[kept++] = warnings.items[i];
    if (code.len > 0)
        warnings.n = kept;
}

static void check_row(const json_t *row)
{
    struct expr_deployment deployment = deployment_of(row);
    struct policy_options options = {.deployment = &deployment,
                                     .to_serve = json_is_true(json_object_get(row, "serve")),
                                     .now_ms = json_integer_value(json_object_get(row, "now_ms"))};
    json_t *document = policy_case_document(row);
    struct policy *p = NULL;

    CASE_CHECK(row, policy_compile(document, &options, &p, &errors, &warnings) == (json_object_get(row, "errors") == NULL));
    policy_case_check_faults(row, "faults", json_object_get(row, "errors"), &errors);
    keep_only(row);
    if (json_object_get(row, "warnings"))
        policy_case_check_faults(row, "warnings", json_object_get(row, "warnings"), &warnings);
    json_decref(document);
    policy_free(&p);
    errors.n = errors.n_dropped = warnings.n = warnings.n_dropped = 0;
}

static void check_file(const char *file)
{
    json_t *rows = cases_load(file), *row;
    size_t i;

    json_array_foreach(rows, i, row) check_row(row);
    json_decref(rows);
}

static void rate_faults(void)
{
    check_file("tests/cases/policy/rate_faults.json");
}

static void header_faults(void)
{
    check_file("tests/cases/policy/header_faults.json");
}

static void warning_rows(void)
{
    check_file("tests/cases/policy/warnings.json");
}

static json_t *row_of(const char *set)
{
    json_t *row = json_pack("{s:o}", "set", json_loads(set, 0, NULL));

    CU_ASSERT_PTR_NOT_NULL_FATAL(row);
    return row;
}

static void rate_contents(void)
{
    json_t *row = row_of("{\"/schema\":2,\"/rate_limit_rules/0/count_statuses\":[\"404\",\"100\",\"401\"],"
                         "\"/rate_limit_rules/1/key\":[\"header:X-Key\",\"ip\",\"query:Q\",\"constant\"],\"/rate_limit_rules/1/penalty\":\"5m\","
                         "\"/rate_limit_rules/1/expires_at\":\"1970-01-01T00:00:01Z\",\"/rate_limit_rules/2/algorithm\":\"distinct\","
                         "\"/rate_limit_rules/2/fail_mode\":\"open\",\"/rate_limit_rules/2/distinct_of\":\"query:Code\"}");
    json_object_set_new(row, "remove", json_pack("[s]", "/rate_limit_rules/2/burst"));
    struct policy *p = policy_case_compile(row);
    const struct rate_rule *answers = &p->rate_rules[0], *login = &p->rate_rules[1], *codes = &p->rate_rules[2];

    CU_ASSERT(!answers->site_wide && answers->n_count_statuses == 3);
    CU_ASSERT(answers->count_statuses[0] == 100 && answers->count_statuses[1] == 401 && answers->count_statuses[2] == 404);
    CU_ASSERT_FATAL(login->n_key == 4);
    CU_ASSERT(login->key[0].kind == KEY_PART_HEADER && str_eq(login->key[0].name, STR("x-key")));
    CU_ASSERT(login->key[1].kind == KEY_PART_IP && login->key[3].kind == KEY_PART_CONSTANT);
    CU_ASSERT(login->key[2].kind == KEY_PART_QUERY && str_eq(login->key[2].name, STR("Q")));
    CU_ASSERT(login->penalty_ms == 300000 && login->expires_at_ms == 1000);
    CU_ASSERT(codes->algorithm == RATE_DISTINCT && codes->distinct_of.kind == KEY_PART_QUERY && str_eq(codes->distinct_of.name, STR("Code")));
    CU_ASSERT(codes->params.limit == 10 && codes->params.burst == 10);
    CU_ASSERT_EQUAL(p->needs_schema, 6); /* "enabled" of a header rule */
    policy_free(&p);
    json_decref(row);
}

static int64_t needed(const char *set)
{
    json_t *row = row_of(set);
    json_object_set_new(row, "base", json_string("minimal"));
    struct policy *p = policy_case_compile(row);
    int64_t schema = p->needs_schema;

    policy_free(&p);
    json_decref(row);
    return schema;
}

#define LIMIT_WITH(member)                                                                                                           \
    "{\"/rate_limit_rules\":[{\"id\":\"r\",\"expression\":\"http.host eq \\\"a\\\"\",\"limit\":1,\"period\":\"1s\",\"key\":[\"ip\"],"    \
    "\"algorithm\":" member "}],\"/global/defaults/responses/forbidden\":\"f\","                                                        \
    "\"/global/responses/f\":{\"status\":403,\"content_type\":\"text/plain\",\"body\":\"x\"}}"

static void schemas(void)
{
    CU_ASSERT(needed(LIMIT_WITH("\"distinct\",\"distinct_of\":\"path\"")) >= 4);
    CU_ASSERT(needed(LIMIT_WITH("\"token_bucket\",\"count_statuses\":[\"404\"]")) >= 4);
    CU_ASSERT_EQUAL(needed(LIMIT_WITH("\"token_bucket\",\"expires_at\":\"2026-11-01T00:00:00Z\"")), 5);
}

static void header_contents(void)
{
    json_t *row = row_of("{\"/request_header_rules/0/ops\":[{\"op\":\"set\",\"name\":\"X-A\",\"value\":\"a{{header:X-B}}{{host}}z\"},"
                         "{\"op\":\"rename\",\"from\":\"X-C\",\"to\":\"X-D\"},{\"op\":\"forward\",\"mode\":\"denylist\",\"names\":[\"X-Z\",\"X-Y\"]}]}");
    struct policy *p = policy_case_compile(row);
    const struct header_op *ops = p->header_rules[0].ops;

    CU_ASSERT_FATAL(p->header_rules[0].n_ops == 3 && ops[0].n_parts == 4);
    CU_ASSERT(ops[0].parts[0].kind == VALUE_LITERAL && str_eq(ops[0].parts[0].text, STR("a")));
    CU_ASSERT(ops[0].parts[1].kind == VALUE_HEADER && str_eq(ops[0].parts[1].text, STR("x-b")));
    CU_ASSERT(ops[0].parts[2].kind == VALUE_HOST && ops[0].parts[3].kind == VALUE_LITERAL);
    CU_ASSERT(ops[1].kind == HEADER_RENAME && str_eq(ops[1].from, STR("x-c")) && str_eq(ops[1].name, STR("x-d")));
    CU_ASSERT_FATAL(ops[2].kind == HEADER_FORWARD && ops[2].filter.names.n == 2);
    CU_ASSERT(str_eq(ops[2].filter.names.items[0], STR("x-y")) && str_eq(ops[2].filter.names.items[1], STR("x-z")));
    policy_free(&p);
    json_decref(row);
}

void test_policy_rules_register(void)
{
    CU_pSuite s = CU_add_suite("policy_rules", set_up, tear_down);
    CU_add_test(s, "every fault of a limit is told with its code and place, and a key that the client chooses needs a partner", rate_faults);
    CU_add_test(s, "every fault of a header rule is told with its code and place, and no rule reads or writes what is the edge's", header_faults);
    CU_add_test(s, "rules that do not do what their author expects are warned about, and their twins that do are not", warning_rows);
    CU_add_test(s, "a compiled limit holds what the document said", rate_contents);
    CU_add_test(s, "a document with limits of a later schema needs that one", schemas);
    CU_add_test(s, "a compiled header rule holds what the document said", header_contents);
}
