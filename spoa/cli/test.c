/* edge-spoa test: config tests, from the shell. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/parse.h"
#include "common/policy/config_tests.h"
#include "common/policy/members.h"
#include "spoa/cli/junit.h"
#include "spoa/cli/loaded.h"
#include "spoa/cli/options.h"
#include "spoa/cli/test_text.h"

enum { ARENA_BLOCK = 4096 };

struct test_call {
    struct policy_options options;
    const char *file, *tests_file, *pattern, *fail_under, *junit_file;
    uint64_t min_percent;
    bool coverage, fail_on_empty, as_json;
};

/* What one call works on. */
struct test_run {
    const struct test_call *call;
    struct cli_policy policy;
    struct cli_document tests_document; /* of --tests */
    const struct cli_document *tests_in; /* the document that the tests are in */
    json_t *report;
    struct config_tests_summary summary;
};

/* --- What is tested --- */

/* FILE is {"envelope", "tests"}, or a policy or snapshot whose tests are in another file. */
static bool load_policy(struct test_run *r, struct errlist *errors, struct errlist *warnings)
{
    struct jx_doc doc = {.errors = errors};
    if (!cli_document_load(&r->policy.document, r->call->file, errors))
        return false;
    const json_t *json = r->policy.document.json;
    const json_t *envelope = json_object_get(json, "envelope");
    r->policy.source = envelope != NULL ? envelope : json;
    if (envelope != NULL) {
        const struct jx root = jx_root(json, &doc);
        policy_only(&root, OBJECT_TESTED);
    }
    return cli_policy_compile(&r->policy, envelope != NULL ? "/envelope" : "", &r->call->options, errors, warnings) && errors->n == 0;
}

static bool run_tests(struct test_run *r, struct errlist *errors)
{
    const struct config_tests_options options = {.deployment = r->call->options.deployment, .document = r->policy.source, .pattern = r->call->pattern};
    static const char *const members[] = {"tests", NULL};
    struct arena arena;
    struct jx_doc doc = {.arena = &arena, .errors = errors};
    r->tests_in = &r->policy.document;
    if (r->call->tests_file != NULL) {
        r->tests_in = &r->tests_document;
        if (!cli_document_load(&r->tests_document, r->call->tests_file, errors))
            return false;
    }
    const struct jx root = jx_root(r->tests_in->json, &doc), tests = jx_member(&root, "tests");
    arena_init(&arena, ARENA_BLOCK, 0);
    if (r->call->tests_file != NULL && json_is_object(root.value))
        jx_only(&root, members);
    const bool ok = config_tests_run(r->policy.policy, &options, &tests, &r->report, &r->summary) && errors->n == 0;
    arena_release(&arena);
    return ok;
}

/* --- What came of it --- */

static unsigned percent_covered(const struct config_tests_summary *s)
{
    return s->n_rules == 0 ? 100 : (unsigned) (s->n_covered * 100 / s->n_rules);
}

static void print_failures(FILE *f, const json_t *report)
{
    const json_t *results = json_object_get(report, "results");
    for (size_t i = 0; i < json_array_size(results); i++) {
        const json_t *result = json_array_get(results, i), *failures = json_object_get(result, "failures");
        for (size_t k = 0; k < json_array_size(failures); k++) {
            char *text = test_text_failure(json_array_get(failures, k));
            fprintf(f, "FAIL: %s: ", json_string_value(json_object_get(result, "name")));
            test_text_print(f, text != NULL ? text : "no memory to tell");
            fputc('\n', f);
            free(text);
        }
    }
}

static void print_text(const struct test_run *r, FILE *f)
{
    const struct config_tests_summary *s = &r->summary;
    const json_t *uncovered = json_object_get(r->report, "uncovered_rules");
    print_failures(f, r->report);
    for (size_t i = 0; r->call->coverage && i < json_array_size(uncovered); i++)
        fprintf(f, "not covered: %s\n", json_string_value(json_array_get(uncovered, i)));
    fprintf(f, "%s: %zu test%s: %zu passed, %zu failed", r->call->file, s->n_passed + s->n_failed, s->n_passed + s->n_failed == 1 ? "" : "s", s->n_passed,
            s->n_failed);
    if (r->call->coverage || r->call->fail_under != NULL)
        fprintf(f, "; %zu of %zu enabled rules covered (%u %%)", s->n_covered, s->n_rules, percent_covered(s));
    fputc('\n', f);
}

static bool print_json(const struct test_run *r)
{
    const struct config_tests_summary *s = &r->summary;
    if (r->call->coverage &&
        json_object_set_new(r->report, "coverage", json_pack("{s:I, s:I, s:i}", "rules", (json_int_t) s->n_rules, "covered", (json_int_t) s->n_covered,
                                                              "percent", (int) percent_covered(s))) != 0)
        return false;
    const bool ok = json_dumpf(r->report, stdout, JSON_INDENT(2) | JSON_ENSURE_ASCII) == 0;
    printf("\n");
    return ok;
}

static bool write_junit(const struct test_run *r)
{
    const char *file = r->call->junit_file;
    const bool to_stdout = strcmp(file, "-") == 0;
    FILE *f = to_stdout ? stdout : fopen(file, "w");
    if (f != NULL) {
        junit_print(f, r->call->file, r->report);
        const bool ok = ferror(f) == 0;
        if (to_stdout ? ok : fclose(f) == 0 && ok)
            return true;
    }
    fprintf(stderr, "edge-spoa test: %s cannot be written: %s\n", file, strerror(errno));
    return false;
}

/* What --fail-under and --fail-on-empty ask for. */
static bool is_enough(const struct test_run *r)
{
    bool ok = true;
    if (r->call->fail_on_empty && r->summary.n_passed + r->summary.n_failed == 0) {
        fprintf(stderr, "edge-spoa test: no test ran%s%s\n", r->call->pattern != NULL ? ": no name fits " : "", r->call->pattern != NULL ? r->call->pattern : "");
        ok = false;
    }
    if (r->call->fail_under != NULL && r->summary.n_covered * 100 < r->call->min_percent * r->summary.n_rules) {
        fprintf(stderr, "edge-spoa test: %zu of %zu enabled rules are covered (%u %%), fewer than %s %%\n", r->summary.n_covered, r->summary.n_rules,
                percent_covered(&r->summary), r->call->fail_under);
        ok = false;
    }
    return ok;
}

static int tell(const struct test_run *r)
{
    bool written = r->call->junit_file == NULL || write_junit(r);
    if (r->call->as_json)
        written = print_json(r) && written;
    else
        print_text(r, r->call->junit_file != NULL && strcmp(r->call->junit_file, "-") == 0 ? stderr : stdout);
    const bool enough = is_enough(r);
    if (!written)
        return CLI_USAGE;
    return r->summary.n_failed == 0 && enough ? CLI_OK : CLI_FAULTS;
}

static void print_faults(const struct test_run *r, const struct cli_document *in, const struct errlist *errors)
{
    if (!r->call->as_json) {
        cli_document_print(stderr, in, errors, NULL);
        return;
    }
    json_t *out = json_pack("{s:o}", "errors", cli_document_json(in, errors));
    json_dumpf(out, stdout, JSON_INDENT(2) | JSON_ENSURE_ASCII);
    printf("\n");
    json_decref(out);
}

static int run(const void *arg, struct errlist *errors, struct errlist *warnings)
{
    struct test_run r = {.call = arg};
    int exit_code;
    if (!load_policy(&r, errors, warnings)) {
        print_faults(&r, &r.policy.document, errors);
        exit_code = cli_exit_code(errors);
    } else if (r.call->tests_file == NULL && r.policy.source == r.policy.document.json) {
        fprintf(stderr, "edge-spoa test: %s is a policy without tests: name their file with --tests, or give {\"envelope\", \"tests\"}\n", r.call->file);
        exit_code = CLI_USAGE;
    } else if (r.call->tests_file != NULL && json_object_get(r.policy.document.json, "tests") != NULL) {
        fprintf(stderr, "edge-spoa test: %s has tests of its own: leave --tests out\n", r.call->file);
        exit_code = CLI_USAGE;
    } else if (!run_tests(&r, errors)) {
        print_faults(&r, r.tests_in, errors);
        exit_code = cli_exit_code(errors);
    } else {
        exit_code = tell(&r);
    }
    json_decref(r.report);
    cli_document_release(&r.tests_document);
    cli_policy_release(&r.policy);
    return exit_code;
}

static const char details[] =
    "FILE is {\"envelope\": a policy or snapshot, \"tests\": [...]}, or a policy or snapshot with --tests. A test is\n"
    "  {\"name\", \"request\": as simulate reads it, \"expect\": {any key that simulate prints; only what is listed is compared}}\n"
    "A line for each failure says what was expected, what came, and which rule decided it by which condition.\n"
    "Exit codes: 0 all passed, 1 a test failed, too little covered, no test ran, or faults in a file, 2 usage or a file that can't be read.\n";

/* False: said on standard error. */
static bool check_call(struct test_call *call)
{
    struct err e;
    err_clear(&e);
    if (call->fail_under != NULL && !parse_u64(str_of(call->fail_under), 0, 100, &call->min_percent, "", &e)) {
        fprintf(stderr, "edge-spoa test: --fail-under %s\n", e.text);
        return false;
    }
    if (call->as_json && call->junit_file != NULL && strcmp(call->junit_file, "-") == 0) {
        fprintf(stderr, "edge-spoa test: --json and --junit - both want standard output: name a file for one of them\n");
        return false;
    }
    return true;
}

int cli_test(int argc, char **argv, char *const envp[])
{
    struct test_call call = {0};
    const struct cli_option options[] = {
        {"--tests", "FILE", "{\"tests\": [...]}, for a FILE without tests", NULL, &call.tests_file},
        {"--run", "PATTERN", "only tests whose names fit the shell wildcard, such as \"login*\"", NULL, &call.pattern},
        {"--coverage", NULL, "tells which enabled rules no test reached", &call.coverage, NULL},
        {"--fail-under", "N", "fails when fewer than N per cent of the enabled rules are covered", NULL, &call.fail_under},
        {"--fail-on-empty", NULL, "fails when no test ran", &call.fail_on_empty, NULL},
        {"--json", NULL, "{\"passed\", \"failed\", \"results\": [...], \"uncovered_rules\": [ids]} on standard output", &call.as_json, NULL},
        {"--junit", "FILE", "writes the results as JUnit XML; - is standard output", NULL, &call.junit_file},
    };
    const struct cli_syntax syntax = {.command = "test",
                                      .details = details,
                                      .options = options,
                                      .n_options = sizeof options / sizeof options[0],
                                      .operands = &call.file,
                                      .n_required = 1,
                                      .n_operands = 1};
    int exit_code;
    if (!cli_parse(&syntax, argc, argv, &exit_code))
        return exit_code;
    if (!check_call(&call))
        return CLI_USAGE;
    if (!cli_policy_options(&syntax, envp, &call.options, NULL))
        return CLI_USAGE;
    return cli_with_lists(run, &call);
}
