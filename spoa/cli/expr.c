/* edge-spoa expr: one expression, read, judged, and decided for a request. */
#include <stdlib.h>

#include "common/policy/simulate.h"
#include "spoa/cli/expr_cost.h"
#include "spoa/cli/expr_fields.h"
#include "spoa/cli/loaded.h"
#include "spoa/cli/options.h"

enum { EXPR_ARENA = 1024 * 1024, STDIN_MAX = EXPR_TEXT_MAX + 2 };

struct expr_call {
    struct policy_options options;
    const char *text, *phase, *request_file;
    bool as_json, fields, cost;
};

static const struct {
    const char *name;
    enum expr_phase phase;
} phases[] = {{"config", EXPR_CONFIG}, {"rate_limit", EXPR_RATE}, {"request_headers", EXPR_HEADERS}};

/* Without a phase the last one is meant, which has every field. */
static bool find_phase(const char *name, enum expr_phase *out)
{
    *out = EXPR_HEADERS;
    for (size_t i = 0; name != NULL && i < sizeof phases / sizeof phases[0]; i++)
        if (strcmp(phases[i].name, name) == 0) {
            *out = phases[i].phase;
            return true;
        }
    return name == NULL;
}

static bool print_json(json_t *value)
{
    const bool ok = value != NULL && json_dumpf(value, stdout, JSON_INDENT(2) | JSON_ENSURE_ASCII) == 0;
    printf("\n");
    json_decref(value);
    return ok;
}

static json_t *fault_json(const struct err *e)
{
    json_t *fault = json_pack("{s:s, s:s}", "code", err_code_name(e->code), "message", e->text);
    if (fault != NULL && e->line != 0) {
        json_object_set_new(fault, "line", json_integer(e->line));
        json_object_set_new(fault, "column", json_integer(e->column));
    }
    return fault;
}

static void print_faults(struct str text, const char *severity, const struct errlist *list)
{
    for (size_t i = 0; i < list->n; i++) {
        const struct err *e = &list->items[i];
        if (e->line != 0)
            fprintf(stderr, "%u:%u: ", e->line, e->column);
        fprintf(stderr, "%s: %s [%s]\n", severity, e->text, err_code_name(e->code));
        if (e->line != 0)
            cli_print_caret(stderr, text, e->line, e->column);
    }
}

static int refuse(const struct expr_call *call, struct str text, const struct errlist *errors)
{
    json_t *faults = json_array();
    for (size_t i = 0; i < errors->n; i++)
        json_array_append_new(faults, fault_json(&errors->items[i]));
    if (!call->as_json)
        print_faults(text, "error", errors);
    return print_json(json_pack("{s:o}", "errors", faults)) ? CLI_FAULTS : CLI_USAGE;
}

static int no_memory(void)
{
    fprintf(stderr, "edge-spoa expr: no memory\n");
    return CLI_USAGE;
}

static enum match decide(const struct expr *x, const struct expr_facts *facts, struct arena *a)
{
    struct expr_set *set;
    struct expr_run run;
    size_t program;
    /* Without memory there is no answer either. */
    if (!expr_set_new(a, &set) || !expr_set_add(set, x, &program) || !expr_set_finish(set) || !expr_run_init(&run, set, facts, a))
        return MATCH_ERROR;
    return expr_run(&run, program);
}

static json_t *result_json(enum match result)
{
    return result == MATCH_ERROR ? json_string("error") : json_boolean(result == MATCH_YES);
}

/* "result" of out, from the request's file. The exit code; faults of the request are on standard error. */
static int put_result(const struct expr_call *call, const struct expr *x, struct arena *a, json_t *out)
{
    struct errlist errors;
    struct cli_document request;
    struct expr_facts facts;
    int exit_code = CLI_OK;
    if (!errlist_init(&errors, 0))
        return no_memory();
    if (cli_request_load(&request, call->request_file, &errors) &&
        simulate_facts(call->options.deployment, request.json, a, &facts, &errors)) {
        json_object_set_new(out, "result", result_json(decide(x, &facts, a)));
    } else {
        cli_document_print(stderr, &request, &errors, NULL);
        exit_code = cli_exit_code(&errors);
    }
    cli_document_release(&request);
    errlist_release(&errors);
    return exit_code;
}

static int report(const struct expr_call *call, const struct expr *x, struct arena *a)
{
    struct buf text;
    struct expr_cost cost;
    if (!arena_take_buf(a, EXPR_TEXT_MAX, &text))
        return no_memory();
    expr_render(x, &text);
    json_t *out = json_pack("{s:o, s:o}", "text", json_stringn(text.p, text.len), "ast", expr_to_json(x));
    if (out == NULL || (call->cost && !expr_cost_measure(x, text.len, a, &cost))) {
        json_decref(out);
        return no_memory();
    }
    if (call->cost && call->as_json)
        json_object_set_new(out, "cost", expr_cost_json(&cost));
    int exit_code = call->request_file == NULL ? CLI_OK : put_result(call, x, a, out);
    if (exit_code != CLI_OK) {
        json_decref(out);
        return exit_code;
    }
    exit_code = print_json(out) ? CLI_OK : CLI_USAGE;
    if (call->cost && !call->as_json)
        expr_cost_print(stderr, &cost);
    return exit_code;
}

static int judge(const struct expr_call *call, struct str text, struct errlist *errors, struct errlist *warnings)
{
    struct expr_context context = {.deployment = call->options.deployment, .schema = POLICY_SCHEMA_MAX, .path = ""};
    const struct expr *x = NULL;
    struct arena arena;
    struct err e;
    int exit_code;
    find_phase(call->phase, &context.phase);
    err_clear(&e);
    arena_init(&arena, EXPR_ARENA, 0);
    if (!expr_parse(text, &arena, &x, &e))
        errlist_add_err(errors, &e);
    if (x != NULL && expr_check(x, &context, errors, warnings)) {
        print_faults(text, "warning", warnings);
        exit_code = report(call, x, &arena);
    } else {
        exit_code = refuse(call, text, errors);
    }
    arena_release(&arena);
    return exit_code;
}

static int expr(const void *arg, struct errlist *errors, struct errlist *warnings)
{
    const struct expr_call *call = arg;
    if (call->fields) {
        if (call->as_json)
            return print_json(expr_fields_json(call->options.deployment)) ? CLI_OK : CLI_USAGE;
        expr_fields_print(stdout, call->options.deployment);
        return CLI_OK;
    }
    if (strcmp(call->text, "-") != 0)
        return judge(call, str_of(call->text), errors, warnings);
    /* More than a text may have, so that one that is too long is refused as such. */
    char *storage = malloc(STDIN_MAX);
    if (storage == NULL)
        return no_memory();
    const size_t len = fread(storage, 1, STDIN_MAX, stdin);
    const int exit_code = judge(call, str_trim((struct str){storage, len}), errors, warnings);
    free(storage);
    return exit_code;
}

static int usage(const char *text)
{
    fprintf(stderr, "edge-spoa expr: %s\nUsage: edge-spoa expr %s\n", text, cli_command("expr")->arguments);
    return CLI_USAGE;
}

int cli_expr(int argc, char **argv, char *const envp[])
{
    struct expr_call call = {0};
    const struct cli_option options[] = {
        {"--phase", "PHASE", "config, rate_limit or request_headers: the phase that must have its fields (default: any)", NULL, &call.phase},
        {"--request", "FILE", "a request (as for simulate; - is standard input): says whether the expression holds for it", NULL, &call.request_file},
        {"--json", NULL, "JSON alone, also for --fields and --cost", &call.as_json, NULL},
        {"--fields", NULL, "all fields and operators, and whether the deployment has them", &call.fields, NULL},
        {"--cost", NULL, "how much of the limits it takes, and which requests pass it by", &call.cost, NULL},
    };
    const struct cli_syntax syntax = {
        .command = "expr",
        .details = "TEXT is an expression, \"-\" reads it from standard input. Prints {\"text\": its canonical form, \"ast\": its tree,\n"
                   "\"result\": true, false or \"error\" for the request}, or {\"errors\": [{\"code\", \"message\", \"line\", \"column\"}]}; without --json, places\n"
                   "and costs are also shown for people, on standard error. Fields are judged for the deployment in the environment.\n"
                   "No policy is read, so edge.locale is empty: what it is chosen among stands there.\n"
                   "Exit codes: 0 valid, 1 not valid (the expression or the request), 2 usage or unreadable file.\n",
        .options = options,
        .n_options = sizeof options / sizeof options[0],
        .operands = &call.text,
        .n_operands = 1,
    };
    enum expr_phase phase;
    int exit_code;
    if (!cli_parse(&syntax, argc, argv, &exit_code))
        return exit_code;
    if (!call.fields && call.text == NULL)
        return usage("an expression is missing");
    if (!call.fields && call.request_file != NULL && strcmp(call.text, "-") == 0 && strcmp(call.request_file, "-") == 0)
        return usage("only one of TEXT and --request can be standard input");
    if (!find_phase(call.phase, &phase))
        return usage("--phase is config, rate_limit or request_headers");
    if (!cli_policy_options(&syntax, envp, &call.options, NULL))
        return CLI_USAGE;
    return cli_with_lists(expr, &call);
}
