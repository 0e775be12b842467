/* edge-spoa simulate: what the edge would do with one request. */
#include "common/policy/simulate.h"

#include "spoa/cli/loaded.h"
#include "spoa/cli/options.h"

struct simulate_call {
    struct policy_options options;
    const char *policy_file, *request_file, *other_file;
    bool explain, as_json;
};

/* False: faults of the request are on standard error. */
static bool simulate_policy(const struct simulate_call *call, const struct cli_policy *p, const struct cli_document *request, json_t **result,
                            struct errlist *errors)
{
    const struct simulate_options options = {.deployment = call->options.deployment, .document = call->explain ? p->source : NULL};
    if (simulate(p->policy, &options, request->json, result, errors))
        return true;
    cli_document_print(stderr, request, errors, NULL);
    return false;
}

static bool print_json(const json_t *value)
{
    const bool ok = value != NULL && json_dumpf(value, stdout, JSON_INDENT(2)) == 0;
    printf("\n");
    return ok;
}

static int run_one(const struct simulate_call *call, const struct cli_policy *p, const struct cli_document *request, struct errlist *errors)
{
    json_t *result = NULL;
    if (!simulate_policy(call, p, request, &result, errors))
        return CLI_FAULTS;
    const int exit_code = print_json(result) ? CLI_OK : CLI_USAGE;
    json_decref(result);
    return exit_code;
}

static int run_both(const struct simulate_call *call, const struct cli_policy *p, const struct cli_policy *other, const struct cli_document *request,
                    struct errlist *errors)
{
    json_t *a = NULL, *b = NULL, *differences = NULL;
    int exit_code = CLI_FAULTS;
    if (simulate_policy(call, p, request, &a, errors) && simulate_policy(call, other, request, &b, errors)) {
        differences = simulate_differences(a, b);
        if (!print_json(differences))
            exit_code = CLI_USAGE;
        else if (json_is_true(json_object_get(differences, "same")))
            exit_code = CLI_OK;
    }
    json_decref(differences);
    json_decref(a);
    json_decref(b);
    return exit_code;
}

static int run(const void *arg, struct errlist *errors, struct errlist *warnings)
{
    const struct simulate_call *call = arg;
    struct cli_policy policy = {0}, other = {0};
    struct cli_document request = {0};
    int exit_code = CLI_FAULTS;
    if (!cli_policy_load(&policy, call->policy_file, &call->options, errors, warnings) ||
        (call->other_file != NULL && !cli_policy_load(&other, call->other_file, &call->options, errors, warnings)))
        exit_code = cli_exit_code(errors);
    else if (!cli_request_load(&request, call->request_file, errors)) {
        cli_print_faults(stderr, request.file, "error", errors);
        exit_code = cli_exit_code(errors);
    } else if (call->other_file != NULL)
        exit_code = run_both(call, &policy, &other, &request, errors);
    else
        exit_code = run_one(call, &policy, &request, errors);
    cli_document_release(&request);
    cli_policy_release(&other);
    cli_policy_release(&policy);
    return exit_code;
}

static const char details[] =
    "POLICY is a policy or a snapshot (JSON). The request is an object:\n"
    "  {\"method\", \"host\", \"path\" (as sent, with its query), and optionally \"ip\", \"headers\": {name: value or [values]}, \"http_version\",\n"
    "   \"ssl\", \"country\", \"continent\", \"asnum\", \"ja3\", \"ja4\", \"cert\": {\"verified\", \"subject\", \"issuer\", \"serial\", \"sha256\"},\n"
    "   \"verified_bot\", \"jwt_claims\": {} of a valid token, \"jwt_issuer\"}\n"
    "The result is JSON: rejected, status, config_rules, settings, rate_limit_rules (those that count it), request_header_rules,\n"
    "upstream_headers (without what only the deployment knows), response_headers, locale (null where the settings leave it off). No limit is counted,\n"
    "no connection is made.\n"
    "Exit codes: 0 simulated (--against: nothing differs), 1 faults in POLICY or the request (--against: something differs), 2 usage or a file\n"
    "that can't be read.\n";

int cli_simulate(int argc, char **argv, char *const envp[])
{
    struct simulate_call call = {.request_file = "-"};
    const struct cli_option options[] = {
        {"--request", "FILE", "the request; - or absent: standard input", NULL, &call.request_file},
        {"--explain", NULL, "adds \"explain\": every rule with its condition and what the request has there, and who set each setting", &call.explain, NULL},
        {"--against", "OTHER", "prints instead what comes out differently with OTHER: {\"same\", \"differences\": [{\"path\", \"a\", \"b\"}]}", NULL,
         &call.other_file},
        {"--json", NULL, "accepted; the output is JSON anyway", &call.as_json, NULL},
    };
    const struct cli_syntax syntax = {.command = "simulate",
                                      .details = details,
                                      .options = options,
                                      .n_options = sizeof options / sizeof options[0],
                                      .operands = &call.policy_file,
                                      .n_required = 1,
                                      .n_operands = 1};
    int exit_code;
    if (!cli_parse(&syntax, argc, argv, &exit_code))
        return exit_code;
    if (call.explain && call.other_file != NULL) {
        fprintf(stderr, "edge-spoa simulate: --explain and --against exclude each other\n");
        return CLI_USAGE;
    }
    if (!cli_policy_options(&syntax, envp, &call.options, NULL))
        return CLI_USAGE;
    return cli_with_lists(run, &call);
}
