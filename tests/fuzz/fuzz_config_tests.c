/* Any bytes as a file of config tests: it has faults or a report about every test, whose failures are explained. */
#include <jansson.h>

#include "common/policy/config_tests.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/tested_policy.h"

static void check_failure(const json_t *failure)
{
    json_t *want = json_object_get(failure, "want"), *got = json_object_get(failure, "got"), *rules = json_object_get(failure, "rules");

    GUARANTEE(json_string_value(json_object_get(failure, "path"))[0] == '/');
    GUARANTEE(want && got && json_object_size(failure) == (rules ? 4 : 3));
    for (size_t i = 0; i < json_array_size(rules); i++) {
        const json_t *rule = json_array_get(rules, i);
        GUARANTEE(json_is_string(json_object_get(rule, "id")) && json_string_length(json_object_get(rule, "reason")) > 0);
    }
}

static void check_report(const json_t *report, const struct config_tests_summary *s, size_t n_tests)
{
    const json_t *results = json_object_get(report, "results");
    size_t n_failed = 0;

    GUARANTEE(json_object_size(report) == 4 && json_array_size(results) == n_tests && s->n_passed + s->n_failed == n_tests);
    for (size_t i = 0; i < n_tests; i++) {
        const json_t *result = json_array_get(results, i), *failures = json_object_get(result, "failures");
        n_failed += json_is_false(json_object_get(result, "ok")) ? 1 : 0;
        GUARANTEE(json_is_true(json_object_get(result, "ok")) == (json_array_size(failures) == 0));
        for (size_t k = 0; k < json_array_size(failures); k++)
            check_failure(json_array_get(failures, k));
    }
    GUARANTEE(n_failed == s->n_failed);
    GUARANTEE(s->n_rules - s->n_covered == json_array_size(json_object_get(report, "uncovered_rules")));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct tested_policy *t = tested_policy();
    const struct config_tests_options options = {.document = t->document};
    struct config_tests_summary summary;
    json_t *document = NULL, *report = NULL;
    struct errlist errors;
    struct err e;

    err_clear(&e);
    if (!jx_parse((struct str){(const char *) data, size}, JX_DOCUMENT_MAX_BYTES, &document, &e))
        return 0;
    GUARANTEE(errlist_init(&errors, 0));
    struct jx_doc doc = {.errors = &errors};
    const struct jx tests = jx_root(document, &doc);
    bool ok = config_tests_run(t->policy, &options, &tests, &report, &summary);
    GUARANTEE(ok == (errors.n == 0) && ok == (report != NULL));
    if (ok)
        check_report(report, &summary, json_array_size(document));
    json_decref(report);
    json_decref(document);
    errlist_release(&errors);
    return 0;
}
