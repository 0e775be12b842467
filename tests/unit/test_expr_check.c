/* What expressions mean beyond their form: literals that their field can never have, and none refused that it can. The
 * rules are rows of tests/cases/expr. */
#include <CUnit/CUnit.h>

#include "tests/unit/cases.h"
#include "tests/unit/expr_rows.h"

static enum expr_phase phase_named(struct str name)
{
    static const struct {
        const char *name;
        enum expr_phase phase;
    } phases[] = {{"config", EXPR_CONFIG}, {"rate_limit", EXPR_RATE}, {"request_headers", EXPR_HEADERS}};

    for (size_t i = 0; i < sizeof(phases) / sizeof(phases[0]); i++)
        if (str_eq(name, str_of(phases[i].name)))
            return phases[i].phase;
    CU_FAIL_FATAL("a row names a phase that is none");
    return EXPR_CONFIG;
}

/* Faults and warnings of a row's expression are the row's. schema: the row's, else the newest. */
static void check_in(const json_t *row, enum expr_phase phase)
{
    const json_t *ast = json_object_get(row, "ast"), *schema = json_object_get(row, "schema");
    const struct expr *x = expr_row_decode(ast != NULL ? ast : json_object_get(row, "text"));
    struct expr_deployment deployment = expr_row_deployment(row);
    struct expr_context context = {.phase = phase, .deployment = &deployment, .schema = 6, .path = "/x"};
    bool ok;

    if (!CASE_CHECK_GOT(row, x != NULL, expr_errors.n > 0 ? str_of(expr_errors.items[0].text) : STR_NONE))
        return;
    if (schema != NULL)
        context.schema = json_integer_value(schema);
    ok = expr_check(x, &context, &expr_errors, &expr_warnings);
    CASE_CHECK(row, ok == (expr_errors.n == 0));
    expr_row_check_list(row, "errors", &expr_errors, true);
    expr_row_check_list(row, "warnings", &expr_warnings, true);
    expr_forget();
}

/* Rows without a phase hold in each. */
static void check_meaning(const json_t *row)
{
    struct str phase = case_str(row, "phase");

    if (phase.p != NULL) {
        check_in(row, phase_named(phase));
        return;
    }
    check_in(row, EXPR_CONFIG);
    check_in(row, EXPR_RATE);
    check_in(row, EXPR_HEADERS);
}

static void meaning(void)
{
    expr_each_row("tests/cases/expr/meaning.json", check_meaning);
}

static void availability(void)
{
    expr_each_row("tests/cases/expr/availability.json", check_meaning);
}

static void warned(void)
{
    expr_each_row("tests/cases/expr/warnings.json", check_meaning);
}

/* Whether `field operator value` is found able to match. */
static bool can_match(const char *field, const char *operator_name, struct str value)
{
    json_t *ast = json_pack("{s:s,s:s,s:o*}", "field", field, "operator", operator_name, "value",
                            json_stringn(value.p, value.len));
    const struct expr *x = expr_row_decode(ast);
    struct expr_context context = {.phase = EXPR_CONFIG, .deployment = &expr_deployment_any, .schema = 6, .path = ""};
    bool ok = x != NULL && expr_check(x, &context, &expr_errors, &expr_warnings);

    json_decref(ast);
    expr_forget();
    return ok;
}

/* value is what a request can have: every beginning, ending and inside of it is a literal that can match. */
static void check_possible(const json_t *row, const char *field, struct str value)
{
    CASE_CHECK_GOT(row, can_match(field, "eq", value), value);
    for (size_t from = 0; from < value.len; from++) {
        for (size_t to = from + 1; to <= value.len; to++) {
            struct str part = str_sub(value, from, to);

            if (!str_is_utf8(part))
                continue;
            CASE_CHECK_GOT(row, can_match(field, "contains", part), part);
            CASE_CHECK_GOT(row, from > 0 || can_match(field, "starts_with", part), part);
            CASE_CHECK_GOT(row, to < value.len || can_match(field, "ends_with", part), part);
        }
    }
}

static void check_possible_path(const json_t *row)
{
    check_possible(row, "http.request.uri.path", case_str(row, "normal"));
}

static bool is_ascii(struct str s)
{
    for (size_t i = 0; i < s.len; i++)
        if ((unsigned char)s.p[i] >= 0x80)
            return false;
    return true;
}

/* The only hosts left out are malformed ones: an open bracket, a second dot at the end, or what HAProxy refuses, bytes
 * beyond ASCII. */
static void check_possible_host(const json_t *row)
{
    struct str host = case_str(row, "host");

    if (is_ascii(host) && !str_ends(host, STR(".")) && str_find_byte(host, '[') == SIZE_MAX)
        check_possible(row, "http.host", host);
}

static void possible_literals(void)
{
    expr_each_row("tests/cases/http/path_accepted.json", check_possible_path);
    expr_each_row("tests/cases/http/target_host.json", check_possible_host);
}

void test_expr_check_register(void)
{
    CU_pSuite s = CU_add_suite("expr_check", expr_set_up, expr_tear_down);

    CU_add_test(s, "a literal that its field can never have is refused where it stands", meaning);
    CU_add_test(s, "what the phase or the deployment does not have is refused, and said what it needs", availability);
    CU_add_test(s, "what is legal but surely not meant is warned of, and nothing else", warned);
    CU_add_test(s, "no literal that a request can have is refused as impossible", possible_literals);
}
