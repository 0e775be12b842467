/* edge-spoa diff: what changes from one policy to another. */
#include "common/policy/diff.h"

#include <stdlib.h>

#include "spoa/cli/document.h"
#include "spoa/cli/options.h"

struct diff_call {
    struct policy_options options;
    const char *files[2];
    bool as_json;
};

static const char *text_of(const json_t *change, const char *name)
{
    return json_string_value(json_object_get(change, name));
}

/* An expression stands as people write it, everything else as JSON. */
static void print_value(const char *name, const json_t *value)
{
    if (value != NULL && strcmp(name, "expression") == 0 && json_is_string(value)) {
        printf("%s", json_string_value(value));
        return;
    }
    char *text = value == NULL ? NULL : json_dumps(value, JSON_ENCODE_ANY | JSON_REAL_PRECISION(15));
    printf("%s", text != NULL ? text : "(absent)");
    free(text);
}

/* config_rules "r1" */
static void print_part(const json_t *change)
{
    const char *section = text_of(change, "section"), *id = text_of(change, "id");
    printf("%s", section);
    if (id != NULL)
        printf(" \"%s\"", id);
}

static void print_members(const json_t *value)
{
    const char *name;
    json_t *member;
    json_object_foreach((json_t *) (uintptr_t) value, name, member)
    {
        if (strcmp(name, "id") == 0)
            continue;
        printf("    %s: ", name);
        print_value(name, member);
        printf("\n");
    }
}

static void print_changed(const json_t *change)
{
    const char *path = text_of(change, "path");
    printf("~ ");
    print_part(change);
    printf("%s%s: ", text_of(change, "id") != NULL ? " " : "", path);
    print_value(path, json_object_get(change, "old"));
    printf(" -> ");
    print_value(path, json_object_get(change, "new"));
    printf("\n");
}

static void print_moved(const json_t *change)
{
    const char *behind = text_of(change, "behind");
    printf("> ");
    print_part(change);
    const long long from = json_integer_value(json_object_get(change, "old")), to = json_integer_value(json_object_get(change, "new"));
    /* Others may have gone round it. */
    if (from == to)
        printf(" moved among its neighbours at place %lld", to);
    else
        printf(" moved from place %lld to %lld", from, to);
    if (behind != NULL)
        printf(", behind \"%s\"\n", behind);
    else
        printf(", the first\n");
}

static void print_change(const json_t *change)
{
    const char *what = text_of(change, "change");
    if (strcmp(what, "changed") == 0) {
        print_changed(change);
    } else if (strcmp(what, "moved") == 0) {
        print_moved(change);
    } else {
        printf("%c ", strcmp(what, "added") == 0 ? '+' : '-');
        print_part(change);
        printf("\n");
        print_members(json_object_get(change, "value"));
    }
}

static bool print_json(const json_t *changes)
{
    json_t *report = json_pack("{s:b, s:O}", "same", (int) (json_array_size(changes) == 0), "changes", changes);
    const bool ok = report != NULL && json_dumpf(report, stdout, JSON_INDENT(2) | JSON_ENSURE_ASCII | JSON_REAL_PRECISION(15)) == 0;
    printf("\n");
    json_decref(report);
    return ok;
}

/* A file's faults go to standard error, in either form: there is no report about what is no policy. */
static bool load(struct cli_document *d, const struct diff_call *call, size_t i, struct errlist *errors, struct errlist *warnings)
{
    struct policy *policy = NULL;
    const size_t n_before = errors->n;
    if (cli_document_load(d, call->files[i], errors) && policy_compile(d->json, &call->options, &policy, errors, warnings)) {
        policy_free(&policy);
        return true;
    }
    const struct errlist own = {.items = errors->items + n_before, .n = errors->n - n_before, .n_dropped = errors->n_dropped};
    cli_document_print(stderr, d, &own, NULL);
    return false;
}

static int diff(const void *arg, struct errlist *errors, struct errlist *warnings)
{
    const struct diff_call *call = arg;
    struct cli_document d[2];
    json_t *changes = NULL;
    int exit_code = CLI_USAGE;
    /* Both, so that the faults of both are shown. */
    const bool old_ok = load(&d[0], call, 0, errors, warnings), new_ok = load(&d[1], call, 1, errors, warnings);
    if (old_ok && new_ok) {
        const json_t *change;
        size_t i;
        changes = policy_diff(d[0].json, d[1].json);
        if (changes != NULL)
            exit_code = json_array_size(changes) == 0 ? CLI_OK : CLI_FAULTS;
        else
            fprintf(stderr, "edge-spoa diff: no memory to compare\n");
        if (changes != NULL && call->as_json && !print_json(changes))
            exit_code = CLI_USAGE;
        json_array_foreach(changes, i, change) if (!call->as_json) print_change(change);
    }
    json_decref(changes);
    cli_document_release(&d[0]);
    cli_document_release(&d[1]);
    return exit_code;
}

int cli_diff(int argc, char **argv, char *const envp[])
{
    struct diff_call call = {0};
    const struct cli_option options[] = {{"--json", NULL, "{\"same\", \"changes\": [...]} on standard output", &call.as_json, NULL}};
    const struct cli_syntax syntax = {
        .command = "diff",
        .details = "Rules and issuers are compared by id, templates and CORS policies by name, expressions by their canonical text:\n"
                   "  +  added     -  removed     ~  changed, member by member: old -> new     >  moved in its list\n"
                   "Of snapshots the active policies are compared, and what concerns a canary.\n"
                   "Exit codes: 0 the same, 1 different, 2 a file can't be read or is no valid policy.\n",
        .options = options,
        .n_options = sizeof options / sizeof options[0],
        .operands = call.files,
        .n_required = 2,
        .n_operands = 2,
    };
    int exit_code;
    if (!cli_parse(&syntax, argc, argv, &exit_code))
        return exit_code;
    if (!cli_policy_options(&syntax, envp, &call.options, NULL))
        return CLI_USAGE;
    return cli_with_lists(diff, &call);
}
