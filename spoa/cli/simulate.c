/* edge-spoa simulate: what the edge would do with one request. */
#include "common/policy/simulate.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "spoa/cli/cli.h"

enum { REQUEST_MAX_BYTES = 1024 * 1024 };

/* All of standard input, at most one byte more than is allowed, so that jx_parse refuses what is too long. */
static bool read_stdin(char *storage, size_t *len)
{
    *len = fread(storage, 1, REQUEST_MAX_BYTES + 1, stdin);
    return ferror(stdin) == 0;
}

static bool load_request(const char *file, json_t **out, struct err *e)
{
    if (strcmp(file, "-") != 0)
        return jx_load(file, REQUEST_MAX_BYTES, out, e);
    char *storage = malloc(REQUEST_MAX_BYTES + 1);
    if (storage == NULL)
        return err_set(e, ERR_NO_MEMORY, "", "no memory to read the request");
    size_t len = 0;
    bool ok = read_stdin(storage, &len);
    if (!ok)
        err_set(e, ERR_UNREADABLE, "", "standard input cannot be read: %s", strerror(errno));
    else
        ok = jx_parse((struct str){storage, len}, REQUEST_MAX_BYTES, out, e);
    free(storage);
    return ok;
}

struct simulate_call {
    const char *policy_file, *request_file;
};

static int run(const void *call, struct errlist *errors, struct errlist *warnings)
{
    const char *policy_file = ((const struct simulate_call *) call)->policy_file;
    const char *request_file = ((const struct simulate_call *) call)->request_file;
    struct policy *policy = NULL;
    if (!policy_load(policy_file, &policy_options_any, &policy, errors, warnings)) {
        cli_print_faults(stderr, policy_file, "error", errors);
        return cli_exit_code(errors);
    }
    struct err e;
    err_clear(&e);
    json_t *request = NULL, *result = NULL;
    if (!load_request(request_file, &request, &e))
        errlist_add_err(errors, &e);
    bool ok = request != NULL && simulate(policy, request, &result, errors);
    if (ok) {
        json_dumpf(result, stdout, JSON_INDENT(2));
        printf("\n");
        json_decref(result);
    } else {
        cli_print_faults(stderr, request_file, "error", errors);
    }
    json_decref(request);
    policy_free(&policy);
    return ok ? CLI_OK : cli_exit_code(errors);
}

int cli_simulate(int argc, char **argv)
{
    const char *policy = NULL, *request = "-";
    bool usage = false;
    for (int i = 0; i < argc; i++) {
        if (strcmp(argv[i], "--request") == 0 && i + 1 < argc)
            request = argv[++i];
        else if (strcmp(argv[i], "--json") == 0)
            continue; /* the output is JSON either way */
        else if (argv[i][0] == '-' || policy != NULL)
            usage = true;
        else
            policy = argv[i];
    }
    if (usage || policy == NULL) {
        fprintf(stderr, "Usage: edge-spoa simulate POLICY [--request FILE|-]\n");
        return CLI_USAGE;
    }
    return cli_with_lists(run, &(struct simulate_call){policy, request});
}
