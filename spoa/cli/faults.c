/* How the offline commands show faults. */
#include "spoa/cli/cli.h"

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
