/* Config tests: reads and runs a list of tests, and counts the rules that they reach. */
#include "common/policy/config_tests.h"

#include <fnmatch.h>

#include "common/base/map.h"
#include "common/policy/compile_priv.h"
#include "common/policy/config_tests_priv.h"
#include "common/policy/members.h"

enum { ARENA_BLOCK = 16 * 1024, ARENA_LIMIT = 64 * 1024 * 1024, NAME_MAX_BYTES = 1024 };

/* One run over a list of tests. */
struct running {
    const struct policy *policy;
    const struct config_tests_options *options;
    struct map names;    /* of the tests so far, for their places */
    json_t *results;
    json_t *covered;     /* {id of a rule that some test reached: true} */
    size_t n_passed, n_failed;
    bool ok;             /* there was memory */
};

static bool has_control(struct str s)
{
    for (size_t i = 0; i < s.len; i++)
        if ((unsigned char) s.p[i] < ' ' || s.p[i] == 0x7f)
            return true;
    return false;
}

static void check_name(struct running *r, const struct jx *j, struct str *out)
{
    void *earlier = NULL;

    if (!jx_need_str(j, out))
        return;
    if (out->len == 0 || out->len > NAME_MAX_BYTES || has_control(*out))
        jx_fault(j, ERR_BAD_VALUE, "no name of a test: write a sentence of at most %d bytes, without control characters", NAME_MAX_BYTES);
    else if (!map_add(&r->names, *out, r, &earlier))
        compile_no_memory(j);
    else if (earlier)
        jx_fault(j, ERR_DUPLICATE, "another test above has this name");
}

static bool is_selected(const struct running *r, struct str name)
{
    return !r->options->pattern || fnmatch(r->options->pattern, name.p, 0) == 0; /* jx_str ends texts with a NUL */
}

static void cover(struct running *r, const json_t *result, const struct rule_hits *quiet_limits)
{
    for (size_t i = 0; i < quiet_limits->n; i++) {
        struct str id = r->policy->rate_rules[quiet_limits->index[i]].id;
        r->ok = json_object_setn_new(r->covered, id.p, id.len, json_true()) == 0 && r->ok;
    }
    for (size_t i = 0; config_tests_lists[i]; i++) {
        const json_t *ids = json_object_get(result, config_tests_lists[i]);
        for (size_t k = 0; k < json_array_size(ids); k++)
            r->ok = json_object_set_new(r->covered, json_string_value(json_array_get(ids, k)), json_true()) == 0 && r->ok;
    }
}

/* The reasons take a second simulation, an explained one: only tests that fail have it. */
static bool add_reasons(struct running *r, const struct jx *request, json_t *failures)
{
    const struct simulate_options explained = {.deployment = r->options->deployment, .document = r->options->document};
    struct rule_hits quiet_limits;
    json_t *result = NULL;
    bool ok = simulate_at(r->policy, &explained, request, &result, &quiet_limits) && config_tests_explain(failures, result);

    json_decref(result);
    return ok;
}

static void judge(struct running *r, struct str name, const struct jx *request, const json_t *expect, const json_t *result)
{
    json_t *failures = config_tests_compare(expect, result), *entry = json_object();
    bool passed = json_array_size(failures) == 0;

    if (json_array_size(failures) > 0)
        r->ok = add_reasons(r, request, failures) && r->ok;
    bool ok = simulate_put(entry, "name", simulate_text(name));
    ok = simulate_put(entry, "ok", json_boolean(passed)) && ok;
    ok = simulate_put(entry, "failures", failures) && ok;
    r->ok = json_array_append_new(r->results, entry) == 0 && ok && r->ok;
    r->n_passed += passed ? 1 : 0;
    r->n_failed += passed ? 0 : 1;
}

static void run_test(struct running *r, const struct jx *test)
{
    const struct simulate_options options = {.deployment = r->options->deployment};
    const struct errlist *errors = test->doc->errors;
    const size_t n_before = errors->n + errors->n_dropped;
    struct rule_hits quiet_limits;
    struct str name = STR_NONE;
    json_t *result = NULL;

    if (!jx_is_object(test))
        return;
    policy_only(test, OBJECT_TEST);
    struct jx name_j = jx_member(test, "name"), request = jx_member(test, "request"), expect = jx_member(test, "expect");
    check_name(r, &name_j, &name);
    config_tests_check_expect(&expect);
    if (!request.value)
        jx_fault(&request, ERR_MISSING, "is required: the request that is simulated");
    else if (simulate_at(r->policy, &options, &request, &result, &quiet_limits) && errors->n + errors->n_dropped == n_before && is_selected(r, name)) {
        judge(r, name, &request, expect.value, result);
        cover(r, result, &quiet_limits);
    }
    json_decref(result);
}

static void run_tests(struct running *r, const struct jx *tests)
{
    size_t n = jx_array_len(tests);

    if (!tests->value)
        jx_fault(tests, ERR_MISSING, "is required: a list of tests, {\"name\", \"request\", \"expect\"}");
    if (n > CONFIG_TESTS_MAX)
        jx_fault(tests, ERR_LIMIT_EXCEEDED, "%zu tests; at most %d are allowed", n, CONFIG_TESTS_MAX);
    for (size_t i = 0; i < n && i < CONFIG_TESTS_MAX; i++) {
        struct jx test = jx_item(tests, i);
        run_test(r, &test);
    }
}

/* --- Coverage --- */

static bool count_rule(const struct running *r, struct str id, json_t *uncovered, struct config_tests_summary *out)
{
    bool is_covered = json_object_getn(r->covered, id.p, id.len) != NULL;

    out->n_rules++;
    out->n_covered += is_covered ? 1 : 0;
    return is_covered || json_array_append_new(uncovered, simulate_text(id)) == 0;
}

static json_t *uncovered_rules(const struct running *r, struct config_tests_summary *out)
{
    const struct policy *p = r->policy;
    json_t *uncovered = json_array();
    bool ok = true;

    for (size_t i = 0; i < p->n_config_rules; i++)
        ok = count_rule(r, p->config_rules[i].id, uncovered, out) && ok;
    for (size_t i = 0; i < p->n_rate_rules; i++)
        ok = count_rule(r, p->rate_rules[i].id, uncovered, out) && ok;
    for (size_t i = 0; i < p->n_header_rules; i++)
        ok = count_rule(r, p->header_rules[i].id, uncovered, out) && ok;
    return simulate_finished(uncovered, ok);
}

static json_t *report_of(struct running *r, struct config_tests_summary *out)
{
    json_t *report = json_object();
    bool ok = simulate_put(report, "passed", json_integer((json_int_t) r->n_passed));

    ok = simulate_put(report, "failed", json_integer((json_int_t) r->n_failed)) && ok;
    ok = json_object_set(report, "results", r->results) == 0 && ok;
    ok = simulate_put(report, "uncovered_rules", uncovered_rules(r, out)) && ok;
    return simulate_finished(report, ok && r->ok);
}

bool config_tests_run(const struct policy *p, const struct config_tests_options *options, const struct jx *tests, json_t **report,
                      struct config_tests_summary *summary)
{
    struct errlist *errors = tests->doc->errors;
    const size_t n_before = errors->n + errors->n_dropped;
    struct arena a;
    struct jx_doc doc = {.arena = &a, .errors = errors};
    struct jx here = *tests;
    struct running r = {.policy = p, .options = options, .results = json_array(), .covered = json_object(), .ok = true};
    struct config_tests_summary counts = {0};
    json_t *found = NULL;

    here.doc = &doc;
    arena_init(&a, ARENA_BLOCK, ARENA_LIMIT);
    map_init(&r.names, &a);
    run_tests(&r, &here);
    if (errors->n + errors->n_dropped == n_before) {
        counts = (struct config_tests_summary){.n_passed = r.n_passed, .n_failed = r.n_failed};
        found = report_of(&r, &counts);
        if (!found)
            jx_fault(tests, ERR_NO_MEMORY, "no memory for these tests");
    }
    json_decref(r.results);
    json_decref(r.covered);
    arena_release(&a);
    if (found) {
        *report = found;
        *summary = counts;
    }
    return found != NULL;
}
