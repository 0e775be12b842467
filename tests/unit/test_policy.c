/* The policy compiler: which documents are policies, which faults the others have, and what files it refuses. */
#include <CUnit/CUnit.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/unit/cases.h"
#include "tests/unit/policy_cases.h"

static struct errlist errors, warnings;

static int set_up(void)
{
    return errlist_init(&errors, 300) && errlist_init(&warnings, 300) ? 0 : 1;
}

static int tear_down(void)
{
    errlist_release(&errors);
    errlist_release(&warnings);
    return 0;
}

static void forget_faults(void)
{
    errors.n = errors.n_dropped = warnings.n = warnings.n_dropped = 0;
}

static struct policy_options options_of(const json_t *row, bool to_serve)
{
    struct policy_options options = policy_options_any;

    options.to_serve = to_serve;
    options.connect_timeout_ms = (uint64_t) json_integer_value(json_object_get(row, "connect_timeout_ms"));
    return options;
}

static void fault_rows_of(const char *table)
{
    json_t *rows = cases_load(table), *row;
    size_t i;

    json_array_foreach(rows, i, row)
    {
        struct policy *untouched = NULL, *p = untouched;
        json_t *document = policy_case_document(row);
        CASE_CHECK(row, !policy_compile(document, &policy_options_any, &p, &errors, &warnings) && p == untouched);
        policy_case_check_faults(row, "faults", json_object_get(row, "errors"), &errors);
        json_decref(document);
        forget_faults();
    }
    json_decref(rows);
}

static void fault_rows(void)
{
    fault_rows_of("tests/cases/policy/faults.json");
    fault_rows_of("tests/cases/policy/member_faults.json");
}

static void valid_rows_of(const char *table)
{
    json_t *rows = cases_load(table), *row;
    size_t i;

    json_array_foreach(rows, i, row)
    {
        struct policy *p = NULL;
        struct policy_options options = options_of(row, false);
        json_t *document = policy_case_document(row), *needs = json_object_get(row, "needs_schema"),
               *reads_bot = json_object_get(row, "reads_verified_bot");
        CASE_CHECK(row, policy_compile(document, &options, &p, &errors, &warnings) && p);
        policy_case_check_faults(row, "faults", NULL, &errors);
        policy_case_check_faults(row, "warnings", json_object_get(row, "warnings"), &warnings);
        if (needs)
            CASE_CHECK(row, p && p->needs_schema == json_integer_value(needs));
        if (reads_bot)
            CASE_CHECK(row, p && p->reads_verified_bot == json_is_true(reads_bot));
        json_decref(document);
        policy_free(&p);
        CU_ASSERT_PTR_NULL(p);
        forget_faults();
    }
    json_decref(rows);
}

static void valid_rows(void)
{
    valid_rows_of("tests/cases/policy/valid.json");
    valid_rows_of("tests/cases/policy/member_valid.json");
}

static void served_rows(void)
{
    json_t *rows = cases_load("tests/cases/policy/served.json"), *row;
    size_t i;

    json_array_foreach(rows, i, row)
    {
        struct policy *p = NULL;
        struct policy_options options = options_of(row, true);
        json_t *document = policy_case_document(row), *wanted = json_object_get(row, "errors");
        CASE_CHECK(row, policy_compile(document, &options, &p, &errors, &warnings) == (json_array_size(wanted) == 0));
        policy_case_check_faults(row, "faults", wanted, &errors);
        json_decref(document);
        policy_free(&p);
        forget_faults();
    }
    json_decref(rows);
}

static void contents(void)
{
    struct policy *p = NULL;
    const struct rate_rule *login, *trial;

    CU_ASSERT_FATAL(policy_load("tests/cases/policy/full.json", &policy_options_any, &p, &errors, &warnings));
    CU_ASSERT_EQUAL(p->schema, 6);
    CU_ASSERT_EQUAL(p->version, 3);
    CU_ASSERT_EQUAL(p->max_inflight, 5000);
    CU_ASSERT_EQUAL_FATAL(p->n_config_rules, 3);
    CU_ASSERT_EQUAL_FATAL(p->n_rate_rules, 3);
    CU_ASSERT_EQUAL_FATAL(p->n_header_rules, 1);
    CU_ASSERT(p->rate_rules[0].site_wide);
    CU_ASSERT_EQUAL(p->rate_rules[0].params.burst, 200);
    login = &p->rate_rules[1];
    trial = &p->rate_rules[2];
    CU_ASSERT(str_eq(login->id, STR("login")) && !login->site_wide);
    CU_ASSERT(login->params.limit == 5 && login->params.burst == 5 && login->params.period_ms == 60000);
    CU_ASSERT(login->on_missing_key == MISSING_REJECT && login->action == ACTION_BLOCK && login->fail_mode == FAIL_CLOSED);
    CU_ASSERT(trial->on_missing_key == MISSING_SKIP && trial->action == ACTION_LOG && trial->fail_mode == FAIL_LOCAL);
    CU_ASSERT(p->rate_rules[0].on_missing_key == MISSING_FALLBACK_IP && p->rate_rules[0].action == ACTION_BLOCK && p->rate_rules[0].fail_mode == FAIL_OPEN);
    CU_ASSERT(str_eq(p->header_rules[0].ops[0].name, STR("x-tenant")));
    for (int k = 0; k < KIND_N; k++)
        CU_ASSERT(p->defaults[k] && p->defaults[k]->status == kind_status((enum kind) k));
    policy_free(&p);
}

static void built_in_forbidden(void)
{
    struct template_values v = {.request_id = STR("id-1")};
    struct policy *p = NULL;
    char storage[256];
    struct buf b;

    CU_ASSERT_FATAL(policy_load("tests/cases/policy/minimal.json", &policy_options_any, &p, &errors, &warnings));
    buf_init(&b, storage, sizeof storage);
    template_render(p->defaults[KIND_FORBIDDEN], &v, &b);
    CU_ASSERT(str_eq(buf_str(&b), STR("{\"error\":\"forbidden\",\"request_id\":\"id-1\"}")));
    CU_ASSERT_EQUAL(p->max_inflight, 0);
    CU_ASSERT(str_eq(p->defaults[KIND_FORBIDDEN]->content_type, STR("application/json")));
    policy_free(&p);
}

static void names(void)
{
    CU_ASSERT_STRING_EQUAL(kind_name(KIND_RATE_LIMITED), "rate_limited");
    CU_ASSERT_EQUAL(kind_status(KIND_RATE_LIMITED), 429);
    CU_ASSERT_STRING_EQUAL(kind_name(KIND_N), "unknown");
    CU_ASSERT_EQUAL(kind_status(KIND_N), 0);
    CU_ASSERT_STRING_EQUAL(decision_name(DECISION_WOULD_BLOCK), "would_block");
    CU_ASSERT_STRING_EQUAL(decision_name(DECISION_N), "unknown");
    CU_ASSERT_STRING_EQUAL(jws_algorithm_name(JWS_EDDSA), "EdDSA");
    CU_ASSERT_STRING_EQUAL(jws_algorithm_name(JWS_N), "unknown");
}

/* --- Files --- */

static char file[] = "/tmp/edge-policy-XXXXXX";

/* Loads a file of that content, followed by zeros up to size. */
static const struct err *load(struct str content, off_t size)
{
    static struct err first;
    struct policy *p = NULL;
    int fd;

    memcpy(file + sizeof file - 7, "XXXXXX", 6);
    fd = mkstemp(file);
    CU_ASSERT_FATAL(fd >= 0);
    CU_ASSERT_FATAL(write(fd, content.p, content.len) == (ssize_t) content.len && (size == 0 || ftruncate(fd, size) == 0));
    close(fd);
    CU_ASSERT_FALSE(policy_load(file, &policy_options_any, &p, &errors, &warnings));
    unlink(file);
    CU_ASSERT_PTR_NULL(p);
    CU_ASSERT_EQUAL_FATAL(errors.n, 1);
    first = errors.items[0];
    forget_faults();
    return &first;
}

static void check_load(struct str content, enum err_code code, const char *says)
{
    const struct err *e = load(content, 0);

    CU_ASSERT_EQUAL(e->code, code);
    CU_ASSERT_STRING_EQUAL(e->path, "");
    CU_ASSERT(strstr(e->text, says) != NULL);
}

static void bad_files(void)
{
    char deep[400];
    struct policy *p = NULL;

    memset(deep, '[', sizeof deep);
    check_load(STR_NONE, ERR_UNREADABLE, "empty");
    check_load(STR(" \n"), ERR_SYNTAX, "empty");
    check_load(STR("{\"schema\":6,\"version\":1,\"caf\xe9\":1}"), ERR_SYNTAX, "UTF-8");
    check_load((struct str){deep, sizeof deep}, ERR_TOO_LARGE, "nested");
    check_load(STR("{\"schema\":6,\"schema\":2}"), ERR_DUPLICATE, "schema");
    check_load(STR("schema: 6\nversion: 1\n"), ERR_SYNTAX, "YAML");
    check_load(STR("{\"schema\":6} {}"), ERR_SYNTAX, "one document");
    CU_ASSERT_EQUAL(load(STR("{"), 50L * 1024 * 1024)->code, ERR_TOO_LARGE);

    CU_ASSERT_FALSE(policy_load("tests/cases/policy", &policy_options_any, &p, &errors, &warnings));
    CU_ASSERT_EQUAL(errors.items[0].code, ERR_UNREADABLE);
    CU_ASSERT(strstr(errors.items[0].text, "directory") != NULL);
    forget_faults();
    CU_ASSERT_FALSE(policy_load("tests/cases/policy/absent.json", &policy_options_any, &p, &errors, &warnings));
    CU_ASSERT_EQUAL(errors.items[0].code, ERR_UNREADABLE);
    forget_faults();
}

static void position(void)
{
    const struct err *e = load(STR("{\n  \"schema\": 6,\n  \"version\" 1\n}"), 0);

    CU_ASSERT_EQUAL(e->code, ERR_SYNTAX);
    CU_ASSERT_EQUAL(e->line, 3);
    CU_ASSERT(e->column > 0);
}

/* The largest policy that may be written: 200 rules of 32 conditions in each phase. */
static void largest(void)
{
    static const char shape[] = "{\"base\":\"minimal\",\"fill\":{\"/config_rules\":[200,{\"id\":\"c#\",\"expression\":%s,\"settings\":{}}],"
                                "\"/rate_limit_rules\":[200,{\"id\":\"l#\",\"expression\":%s,\"algorithm\":\"token_bucket\",\"limit\":1,\"period\":\"1s\",\"key\":[\"ip\"]}],"
                                "\"/request_header_rules\":[200,{\"id\":\"h#\",\"expression\":%s,\"ops\":[{\"op\":\"remove\",\"name\":\"x-a\"}]}]}}";
    static char expression[8192], text[32768];
    struct buf b;

    buf_init(&b, expression, sizeof expression - 1);
    for (int i = 0; i < EXPR_CONDITIONS_MAX; i++)
        buf_printf(&b, "%shttp.request.uri.path eq \\\"/a/#/%d\\\"", i == 0 ? "\"" : " or ", i);
    buf_put_byte(&b, '"');
    expression[b.len] = '\0';
    CU_ASSERT_FATAL(!b.full && snprintf(text, sizeof text, shape, expression, expression, expression) < (int) sizeof text);
    json_t *row = json_loads(text, 0, NULL);
    CU_ASSERT_PTR_NOT_NULL_FATAL(row);
    struct policy *p = policy_case_compile(row);
    CU_ASSERT_EQUAL(p->n_config_rules + p->n_rate_rules + p->n_header_rules, 600);
    CU_ASSERT_EQUAL(expr_set_n_predicates(p->config_set), 200 * EXPR_CONDITIONS_MAX);
    policy_free(&p);
    json_decref(row);
}

/* A set of as many words as an expression holds; n makes it another one. */
static json_t *large_set(size_t n)
{
    static char text[EXPR_TEXT_MAX];
    struct buf b;

    buf_init(&b, text, sizeof text);
    buf_printf(&b, "http.request.uri.args[\"q%zu\"] in {", n);
    for (size_t i = 0; b.len < sizeof text - 16; i++)
        buf_printf(&b, "%s\"%zx\"", i == 0 ? "" : " ", i);
    buf_put_byte(&b, '}');
    return json_stringn(text, b.len);
}

/* A list of POLICY_RULES_MAX rules: their id begins with initial, the rest is what shape has. */
static json_t *many_rules(char initial, const json_t *shape)
{
    json_t *rules = json_array();
    char id[32];

    for (size_t i = 0; i < POLICY_RULES_MAX; i++) {
        json_t *rule = json_copy((json_t *) (uintptr_t) shape);
        snprintf(id, sizeof id, "%c%zu", initial, i);
        json_object_set_new(rule, "id", json_string(id));
        json_object_set_new(rule, "expression", large_set(i));
        json_array_append_new(rules, rule);
    }
    return rules;
}

/* More than fits into a file: each value of header rules that are off is bounded, but not their sum. */
static void too_large_compiled(void)
{
    static char value[8192];
    json_t *document = json_load_file("tests/cases/policy/minimal.json", 0, NULL), *ops = json_array();
    struct policy *p = NULL;

    memset(value, 'v', sizeof value);
    json_t *op = json_pack("{s:s, s:s, s:s#}", "op", "set", "name", "x-a", "value", value, (int) sizeof value);
    for (size_t i = 0; i < POLICY_RULE_OPS_MAX; i++)
        json_array_append(ops, op);
    json_t *config = json_pack("{s:{}}", "settings"), *header = json_pack("{s:b, s:o}", "enabled", 0, "ops", ops);
    json_t *rate = json_pack("{s:s, s:i, s:s, s:[s]}", "algorithm", "token_bucket", "limit", 1, "period", "1s", "key", "ip");
    json_object_set_new(document, "config_rules", many_rules('c', config));
    json_object_set_new(document, "rate_limit_rules", many_rules('l', rate));
    json_object_set_new(document, "request_header_rules", many_rules('h', header));
    CU_ASSERT_FALSE(policy_compile(document, &policy_options_any, &p, &errors, &warnings));
    CU_ASSERT_EQUAL_FATAL(errors.n, 1);
    CU_ASSERT_EQUAL(errors.items[0].code, ERR_LIMIT_EXCEEDED);
    CU_ASSERT(strstr(errors.items[0].text, "at most 64") != NULL);
    forget_faults();
    json_decref(op);
    json_decref(config);
    json_decref(header);
    json_decref(rate);
    json_decref(document);
}

void test_policy_register(void)
{
    CU_pSuite s = CU_add_suite("policy", set_up, tear_down);
    CU_add_test(s, "every fault of a document is told with its code and place, and nothing is compiled", fault_rows);
    CU_add_test(s, "what the specification allows compiles, with the warnings it deserves and no others", valid_rows);
    CU_add_test(s, "a policy that would be enforced in part is not served", served_rows);
    CU_add_test(s, "a compiled policy holds what the document said, and the defaults for the rest", contents);
    CU_add_test(s, "without a forbidden template the built-in one answers", built_in_forbidden);
    CU_add_test(s, "kinds, decisions and signature algorithms have their names", names);
    CU_add_test(s, "a file that is no policy is refused with the reason in words", bad_files);
    CU_add_test(s, "a syntax error in a file is told with its line", position);
    CU_add_test(s, "a policy at every limit of the language compiles", largest);
    CU_add_test(s, "a policy that takes more memory than an edge gives it is refused in words", too_large_compiled);
}
