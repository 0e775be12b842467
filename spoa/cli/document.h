/* A policy file that a command reads, together with its text, so that faults are shown where they stand in it. */
#ifndef SPOA_CLI_DOCUMENT_H
#define SPOA_CLI_DOCUMENT_H

#include <jansson.h>

#include "spoa/cli/cli.h"

struct cli_document {
    const char *file; /* borrowed */
    char *text;
    size_t len;
    json_t *json;
};

/* False: a fault in errors, with its line and column where the text is no JSON; d needs no release then. */
MUSTUSE bool cli_document_load(struct cli_document *d, const char *file, struct errlist *errors);
void cli_document_release(struct cli_document *d);

/* Both lists in the order of the file, one line each, an expression's text with a caret below:
 *   FILE:LINE:COLUMN: error: PATH: message [code]
 * d may be one that did not load. */
void cli_document_print(FILE *f, const struct cli_document *d, const struct errlist *errors, const struct errlist *warnings);

/* [{"code","path","message","line","column"}] in the order of the file; line and column are the file's, and are absent where there is no place. A
 * fault inside an expression's text also has "expression": {"line","column"}. The caller owns it; NULL when memory is refused. */
json_t *cli_document_json(const struct cli_document *d, const struct errlist *list);

#endif
