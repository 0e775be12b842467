/* How the offline commands collect and show faults. */
#include "spoa/cli/cli.h"

int cli_with_lists(int (*run)(const void *call, struct errlist *errors, struct errlist *warnings), const void *call)
{
    struct errlist errors, warnings;
    if (!errlist_init(&errors, 0))
        return CLI_USAGE;
    int rc = CLI_USAGE;
    if (errlist_init(&warnings, 0)) {
        rc = run(call, &errors, &warnings);
        errlist_release(&warnings);
    }
    errlist_release(&errors);
    return rc;
}

void cli_print_faults(FILE *f, const char *file, const char *severity, const struct errlist *list)
{
    for (size_t i = 0; i < list->n; i++) {
        const struct err *e = &list->items[i];
        fprintf(f, "%s: %s: ", file, severity);
        if (e->path[0] != '\0')
            fprintf(f, "%s: ", e->path);
        if (e->line != 0)
            fprintf(f, "line %u, column %u: ", e->line, e->column);
        fprintf(f, "%s [%s]\n", e->text, err_code_name(e->code));
    }
    if (list->n_dropped > 0)
        fprintf(f, "%s: %s: and %zu more\n", file, severity, list->n_dropped);
}

int cli_exit_code(const struct errlist *errors)
{
    for (size_t i = 0; i < errors->n; i++)
        if (errors->items[i].code == ERR_UNREADABLE)
            return CLI_USAGE;
    return CLI_FAULTS;
}
