/* edge-spoa check: the one validator, from the shell. */
#include <jansson.h>
#include <string.h>

#include "common/policy/policy.h"
#include "spoa/cli/cli.h"

static json_t *faults_to_json(const struct errlist *list)
{
    json_t *array = json_array();
    for (size_t i = 0; i < list->n; i++) {
        const struct err *e = &list->items[i];
        json_t *fault = json_pack("{s:s, s:s, s:s}", "code", err_code_name(e->code), "path", e->path, "message", e->text);
        if (fault != NULL && e->line != 0) {
            json_object_set_new(fault, "line", json_integer(e->line));
            json_object_set_new(fault, "column", json_integer(e->column));
        }
        json_array_append_new(array, fault);
    }
    return array;
}

static void print_json(const struct errlist *errors, const struct errlist *warnings)
{
    json_t *report = json_pack("{s:o, s:o}", "errors", faults_to_json(errors), "warnings", faults_to_json(warnings));
    json_dumpf(report, stdout, JSON_INDENT(2) | JSON_ENSURE_ASCII);
    printf("\n");
    json_decref(report);
}

struct check_call {
    const char *file;
    bool as_json;
};

static int check(const void *call, struct errlist *errors, struct errlist *warnings)
{
    const char *file = ((const struct check_call *) call)->file;
    bool as_json = ((const struct check_call *) call)->as_json;
    struct policy *policy = NULL;
    bool ok = policy_load(file, &policy_options_any, &policy, errors, warnings);
    if (as_json) {
        print_json(errors, warnings);
    } else {
        cli_print_faults(stderr, file, "warning", warnings);
        cli_print_faults(stderr, file, "error", errors);
        if (ok)
            printf("%s: valid: schema %lld, version %lld; %zu config rules, %zu rate-limit rules, %zu header rules in force\n", file,
                   (long long) policy->schema, (long long) policy->version, policy->n_config_rules, policy->n_rate_rules,
                   policy->n_header_rules);
    }
    if (!ok)
        return cli_exit_code(errors);
    policy_free(&policy);
    return CLI_OK;
}

int cli_check(int argc, char **argv)
{
    const char *file = NULL;
    bool as_json = false, usage = false;
    for (int i = 0; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0)
            as_json = true;
        else if (argv[i][0] == '-' || file != NULL)
            usage = true;
        else
            file = argv[i];
    }
    if (usage || file == NULL) {
        fprintf(stderr, "Usage: edge-spoa check POLICY [--json]\n");
        return CLI_USAGE;
    }
    return cli_with_lists(check, &(struct check_call){file, as_json});
}
