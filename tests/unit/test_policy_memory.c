/* Policies when memory is refused: every place that takes some is made to fail, and the answer is either a clean failure or the whole one. */
#include <CUnit/CUnit.h>

#include "common/policy/config_tests.h"
#include "common/policy/diff.h"
#include "common/policy/format.h"
#include "tests/unit/cases.h"
#include "tests/unit/policy_cases.h"
#include "tests/unit/refuse_memory.h"

enum { REFUSALS_MIN = 10 };
/* That request of the rows is refused before any rule. */
enum { SEEN_BY_NO_RULE = 3 };

/* What an attempt works on, and what comes of it where nothing is refused. */
struct subject {
    json_t *row;
    json_t *document, *changed;
    struct policy *policy;
    const json_t *request, *whole;
    bool is_seen; /* by rules: the request has facts */
    size_t n_warnings;
};

static struct errlist errors, warnings;

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

/* Failed for want of memory, and says nothing else of the input, which has no fault. */
/* Header rules that find no memory are told as ones that make too many headers. */
static bool is_clean_failure(void)
{
    bool ok = errors.n > 0 && errors.n_dropped == 0;

    for (size_t i = 0; i < errors.n; i++)
        ok = ok && (errors.items[i].code == ERR_NO_MEMORY || strstr(errors.items[i].text, "(or memory is short)") != NULL);
    return ok;
}

static void forget(void)
{
    errors.n = errors.n_dropped = 0;
    warnings.n = warnings.n_dropped = 0;
}

/* What a report of a failed assertion shows. */
static json_t *shown(const struct subject *s, size_t n)
{
    json_t *row = json_pack("{s:O?, s:I, s:I}", "row", json_object_get(s->row, "name"), "n", (json_int_t) n, "warnings", (json_int_t) warnings.n);

    for (size_t i = 0; i < errors.n; i++)
        json_object_set_new(row, errors.items[i].path, json_string(errors.items[i].text));
    return row;
}

/* Holds what came of the n-th attempt, which this takes over, against the whole answer; NULL: a failure. */
static bool check(const struct subject *s, size_t n, json_t *out, bool refused)
{
    json_t *row = shown(s, n);

    if (out)
        CASE_CHECK(row, json_equal(out, (json_t *) (uintptr_t) s->whole) && errors.n == 0);
    else
        CASE_CHECK(row, refused);
    json_decref(row);
    json_decref(out);
    return refused;
}

/* The same where faults are noted. */
static bool check_noted(const struct subject *s, size_t n, bool ok, json_t *out, bool refused)
{
    json_t *row = shown(s, n);

    CASE_CHECK(row, ok == (out != NULL) && (ok || is_clean_failure()));
    json_decref(row);
    return check(s, n, out, refused);
}

static bool compile(void *arg, size_t n)
{
    struct subject *s = arg;
    struct policy *p = NULL;
    json_t *out = NULL;

    forget();
    refuse_memory_of_ours(n);
    bool ok = policy_compile(s->document, &policy_options_any, &p, &errors, &warnings);
    bool refused = refuse_memory_end();
    json_t *row = shown(s, n);
    CASE_CHECK(row, ok ? p && warnings.n == s->n_warnings : !p);
    json_decref(row);
    bool answered = ok && simulate(p, &(struct simulate_options){0}, s->request, &out, &errors);
    policy_free(&p);
    return check_noted(s, n, answered, out, refused);
}

static bool simulated(void *arg, size_t n)
{
    struct subject *s = arg;
    const struct simulate_options options = {.document = s->document};
    json_t *out = NULL;

    forget();
    refuse_memory(n);
    bool ok = simulate(s->policy, &options, s->request, &out, &errors);
    bool refused = refuse_memory_end();
    return check_noted(s, n, ok, out, refused);
}

/* Of a request that a rule sees, or that none does. */
static bool facts_taken(void *arg, size_t n)
{
    struct subject *s = arg;
    struct expr_facts facts = {0};
    struct arena a;

    forget();
    arena_init(&a, 4096, 0);
    refuse_memory(n);
    bool ok = simulate_facts(NULL, s->request, &a, &facts, &errors);
    bool refused = refuse_memory_end();
    json_t *row = shown(s, n);
    CASE_CHECK(row, ok ? s->is_seen && errors.n == 0 : is_clean_failure() ? refused : !s->is_seen && errors.n == 1);
    json_decref(row);
    arena_release(&a);
    return refused;
}

static bool tested(void *arg, size_t n)
{
    struct subject *s = arg;
    const struct config_tests_options options = {.document = s->document};
    struct config_tests_summary summary;
    struct jx_doc doc = {.errors = &errors};
    const struct jx tests = jx_root(json_object_get(s->row, "tests"), &doc);
    json_t *report = NULL;

    forget();
    refuse_memory(n);
    bool ok = config_tests_run(s->policy, &options, &tests, &report, &summary);
    bool refused = refuse_memory_end();
    return check_noted(s, n, ok, report, refused);
}

static bool canonical(void *arg, size_t n)
{
    struct subject *s = arg;

    refuse_memory(n);
    json_t *out = policy_canonical(s->document, FORMAT_AS_TEXT);
    bool refused = refuse_memory_end();
    return check(s, n, out, refused);
}

static bool compared(void *arg, size_t n)
{
    struct subject *s = arg;

    refuse_memory(n);
    json_t *out = policy_diff(s->document, s->changed);
    bool refused = refuse_memory_end();
    return check(s, n, out, refused);
}

static bool results_compared(void *arg, size_t n)
{
    struct subject *s = arg;

    refuse_memory(n);
    json_t *out = simulate_differences(s->document, s->changed);
    bool refused = refuse_memory_end();
    return check(s, n, out, refused);
}

/* whole, which this takes over: the answer without refusals. */
static void everywhere(struct subject *s, bool (*attempt)(void *arg, size_t n), json_t *whole)
{
    forget();
    s->whole = whole;
    CASE_CHECK(s->row, refuse_memory_everywhere(attempt, s) >= REFUSALS_MIN);
    json_decref(whole);
    s->whole = NULL;
}

static void each_row(void (*run)(struct subject *s))
{
    json_t *rows = cases_load("tests/cases/policy/memory.json");

    for (size_t i = 0; i < json_array_size(rows); i++) {
        struct subject s = {.row = json_array_get(rows, i)};
        s.document = policy_case_document(s.row);
        s.policy = policy_case_compile(s.row);
        s.request = json_array_get(json_object_get(s.row, "requests"), 0);
        s.changed = json_deep_copy(s.document);
        json_object_set_new(s.changed, "version", json_integer(77));
        json_array_insert_new(json_object_get(s.changed, "rate_limit_rules"), 0, json_incref(json_array_get(json_object_get(s.changed, "rate_limit_rules"), 2)));
        json_array_remove(json_object_get(s.changed, "rate_limit_rules"), 3);
        json_array_remove(json_object_get(s.changed, "config_rules"), 0);
        forget();
        run(&s);
        policy_free(&s.policy);
        json_decref(s.changed);
        json_decref(s.document);
    }
    json_decref(rows);
}

static json_t *simulation_of(const struct subject *s, const json_t *document)
{
    const struct simulate_options options = {.document = document};
    json_t *out = NULL;

    CU_ASSERT_FATAL(simulate(s->policy, &options, s->request, &out, &errors));
    return out;
}

static void compile_row(struct subject *s)
{
    struct policy *p = NULL;

    CU_ASSERT_FATAL(policy_compile(s->document, &policy_options_any, &p, &errors, &warnings));
    policy_free(&p);
    s->n_warnings = warnings.n;
    everywhere(s, compile, simulation_of(s, NULL));
}

static void compiling(void)
{
    each_row(compile_row);
}

static void simulate_row(struct subject *s)
{
    size_t i;

    for (i = 0; i < json_array_size(json_object_get(s->row, "requests")); i++) {
        s->request = json_array_get(json_object_get(s->row, "requests"), i);
        everywhere(s, simulated, simulation_of(s, s->document));
        s->is_seen = i != SEEN_BY_NO_RULE;
        CASE_CHECK(s->row, refuse_memory_everywhere(facts_taken, s) > 0);
    }
}

static void simulating(void)
{
    each_row(simulate_row);
}

static void test_row(struct subject *s)
{
    const struct config_tests_options options = {.document = s->document};
    struct config_tests_summary summary;
    struct jx_doc doc = {.errors = &errors};
    const struct jx tests = jx_root(json_object_get(s->row, "tests"), &doc);
    json_t *whole = NULL;

    CU_ASSERT_FATAL(config_tests_run(s->policy, &options, &tests, &whole, &summary));
    everywhere(s, tested, whole);
}

static void testing(void)
{
    each_row(test_row);
}

static void document_row(struct subject *s)
{
    everywhere(s, canonical, policy_canonical(s->document, FORMAT_AS_TEXT));
    everywhere(s, compared, policy_diff(s->document, s->changed));
    everywhere(s, results_compared, simulate_differences(s->document, s->changed));
}

static void documents(void)
{
    each_row(document_row);
}

void test_policy_memory_register(void)
{
    CU_pSuite s = CU_add_suite("policy memory", set_up, tear_down);
    CU_add_test(s, "a policy compiles whole or fails for want of memory, wherever memory is refused", compiling);
    CU_add_test(s, "a request is decided and explained whole or not at all, wherever memory is refused", simulating);
    CU_add_test(s, "config tests are reported whole or not at all, wherever memory is refused", testing);
    CU_add_test(s, "documents are formatted and compared whole or not at all, wherever memory is refused", documents);
}
