/* How the offline commands collect and show faults. */
#include "spoa/cli/cli.h"

/* How much of a long line is shown before a caret, and in all. */
enum { CARET_BEFORE_MAX = 80, CARET_LINE_MAX = 160 };

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

/* Control characters, tabs too, are shown as blanks, so that the caret stands below its byte. */
void cli_print_caret(FILE *f, struct str text, unsigned line, unsigned column)
{
    for (unsigned i = 1; i < line; i++) {
        const size_t end = str_find_byte(text, '\n');
        if (end == SIZE_MAX)
            return;
        str_skip(&text, end + 1);
    }
    text = str_sub(text, 0, str_find_byte(text, '\n'));
    if (column == 0 || column > text.len + 1)
        return;
    const size_t from = column > CARET_BEFORE_MAX ? column - CARET_BEFORE_MAX : 0;
    const struct str shown = str_cut_utf8(str_sub(text, from, text.len), CARET_LINE_MAX);
    fprintf(f, "    ");
    for (size_t i = 0; i < shown.len; i++)
        putc((unsigned char) shown.p[i] < 0x20 || shown.p[i] == 0x7f ? ' ' : shown.p[i], f);
    fprintf(f, "\n    ");
    for (size_t i = from; i + 1 < column; i++)
        if (((unsigned char) text.p[i] & 0xc0) != 0x80) /* one for each character */
            putc(' ', f);
    fprintf(f, "^ column %u\n", column);
}
