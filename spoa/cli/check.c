/* edge-spoa check: the one validator, from the shell. */
#include "common/base/clock.h"
#include "spoa/cli/document.h"
#include "spoa/cli/options.h"

struct check_call {
    struct policy_options options;
    const char *file;
    bool deployment_known, as_json, strict;
};

static bool print_json(const struct cli_document *d, const struct errlist *errors, const struct errlist *warnings)
{
    json_t *report = json_pack("{s:o, s:o}", "errors", cli_document_json(d, errors), "warnings", cli_document_json(d, warnings));
    const bool ok = report != NULL && json_dumpf(report, stdout, JSON_INDENT(2) | JSON_ENSURE_ASCII) == 0;
    printf("\n");
    json_decref(report);
    return ok;
}

static void print_count(FILE *f, size_t n, const char *what, const char *end)
{
    fprintf(f, "%zu %s%s%s", n, what, n == 1 ? "" : "s", end);
}

static void print_text(const struct cli_document *d, const struct policy *p, const struct errlist *errors, const struct errlist *warnings, bool strict)
{
    cli_document_print(stderr, d, errors, warnings);
    FILE *f = p != NULL ? stdout : stderr;
    if (p != NULL) {
        fprintf(f, "%s: valid: schema %lld, version %lld; in force ", d->file, (long long) p->schema, (long long) p->version);
        print_count(f, p->n_config_rules, "config rule", ", ");
        print_count(f, p->n_rate_rules, "limit", ", ");
        print_count(f, p->n_header_rules, "header rule", "; ");
    } else {
        fprintf(f, "%s: not valid: ", d->file);
        print_count(f, errors->n + errors->n_dropped, "error", ", ");
    }
    const bool fails = p != NULL && strict && warnings->n > 0;
    print_count(f, warnings->n + warnings->n_dropped, "warning", fails ? ", a fault with --strict\n" : "\n");
}

static int check(const void *arg, struct errlist *errors, struct errlist *warnings)
{
    const struct check_call *call = arg;
    struct cli_document d;
    struct policy *policy = NULL;
    const bool ok = cli_document_load(&d, call->file, errors) && policy_compile(d.json, &call->options, &policy, errors, warnings);
    if (d.json != NULL && !call->deployment_known)
        errlist_add(warnings, ERR_DEPLOYMENT_UNKNOWN, "",
                    "CLIENT_IP_SOURCE is not set, so every field counts as available: set it as the edge has it, such as CLIENT_IP_SOURCE=remote_addr");
    int exit_code = ok ? CLI_OK : cli_exit_code(errors);
    if (exit_code == CLI_OK && call->strict && warnings->n > 0)
        exit_code = CLI_FAULTS;
    if (!call->as_json)
        print_text(&d, policy, errors, warnings, call->strict);
    else if (!print_json(&d, errors, warnings))
        exit_code = CLI_USAGE;
    policy_free(&policy);
    cli_document_release(&d);
    return exit_code;
}

int cli_check(int argc, char **argv, char *const envp[])
{
    struct check_call call = {0};
    const struct cli_option options[] = {
        {"--json", NULL, "{\"errors\": [...], \"warnings\": [...]} on standard output, each with code, path, message, line, column", &call.as_json, NULL},
        {"--strict", NULL, "warnings count as faults", &call.strict, NULL},
    };
    const struct cli_syntax syntax = {
        .command = "check",
        .details = "POLICY is a policy or a snapshot (JSON). All faults are reported at once, with the place in the file, as\n"
                   "  FILE:LINE:COLUMN: error: PATH: what is wrong and what would be right [code]\n"
                   "Fields and key parts are judged for the deployment in the environment (what `edge-spoa --help` marks with check); where neither\n"
                   "CLIENT_IP_SOURCE nor VIEWER_HEADERS is set, every field counts as available. Nothing is written, no lock is taken, no connection\n"
                   "is made.\n"
                   "Exit codes: 0 valid, 1 not valid (or warnings, with --strict), 2 the file can't be read.\n",
        .options = options,
        .n_options = sizeof options / sizeof options[0],
        .operands = &call.file,
        .n_required = 1,
        .n_operands = 1,
    };
    int exit_code;
    if (!cli_parse(&syntax, argc, argv, &exit_code))
        return exit_code;
    if (!cli_policy_options(&syntax, envp, &call.options, &call.deployment_known))
        return CLI_USAGE;
    call.options.now_ms = (int64_t) clock_real_ms(&clock_system);
    return cli_with_lists(check, &call);
}
