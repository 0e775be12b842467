/* Faults of a document at their places in its text. */
#include "spoa/cli/document.h"

#include <stdlib.h>

#include "common/base/json_place.h"
#include "common/base/jx.h"

struct placed {
    const struct err *e;
    const char *severity;
    size_t value;          /* offset of the value that the fault is about */
    bool in_expression;    /* e's line and column count inside that value, which is a string */
    size_t offset;         /* of the fault */
    unsigned line, column; /* of the fault; 0 where there is no place */
};

bool cli_document_load(struct cli_document *d, const char *file, struct errlist *errors)
{
    struct err e;
    err_clear(&e);
    *d = (struct cli_document){.file = file};
    if (jx_read(file, JX_DOCUMENT_MAX_BYTES, &d->text, &d->len, &e) &&
        jx_parse((struct str){d->text, d->len}, JX_DOCUMENT_MAX_BYTES, &d->json, &e))
        return true;
    errlist_add_err(errors, &e);
    cli_document_release(d);
    return false;
}

void cli_document_release(struct cli_document *d)
{
    json_decref(d->json);
    free(d->text);
    *d = (struct cli_document){.file = d->file};
}

static void place(struct placed *p, const struct cli_document *d)
{
    const struct str text = {d->text, d->len};
    struct json_place at;
    if (d->text == NULL) {
        /* What is no JSON has the document's own line and column. */
        p->line = p->e->line;
        p->column = p->e->column;
        return;
    }
    /* The environment has no place in the file. */
    if (p->e->code == ERR_DEPLOYMENT_UNKNOWN || !json_place_find(text, str_of(p->e->path), &at))
        return;
    p->value = at.value;
    p->offset = p->e->code == ERR_UNKNOWN_MEMBER ? at.name : at.value;
    if (p->e->line != 0 && !at.is_nearest) {
        const size_t inside = json_place_in_string(text, at.value, p->e->line, p->e->column);
        p->in_expression = inside != SIZE_MAX;
        p->offset = p->in_expression ? inside : p->offset;
    }
    json_place_position(text, p->offset, &p->line, &p->column);
}

static int compare(const void *a, const void *b)
{
    const struct placed *one = a, *other = b;
    if (one->offset != other->offset)
        return one->offset < other->offset ? -1 : 1;
    return one->e < other->e ? -1 : one->e > other->e; /* within a list as found */
}

/* The faults of one or two lists, sorted; NULL when there is no memory. */
static struct placed *place_all(const struct cli_document *d, const struct errlist *errors, const struct errlist *warnings, size_t *n)
{
    const size_t n_warnings = warnings == NULL ? 0 : warnings->n;
    struct placed *all = calloc(errors->n + n_warnings + 1, sizeof *all);
    *n = 0;
    if (all == NULL)
        return NULL;
    for (size_t i = 0; i < errors->n; i++)
        all[(*n)++] = (struct placed){.e = &errors->items[i], .severity = "error"};
    for (size_t i = 0; i < n_warnings; i++)
        all[(*n)++] = (struct placed){.e = &warnings->items[i], .severity = "warning"};
    for (size_t i = 0; i < *n; i++)
        place(&all[i], d);
    qsort(all, *n, sizeof *all, compare);
    return all;
}

/* The expression's line with a caret below the column. */
static void print_caret(FILE *f, const struct cli_document *d, const struct placed *p)
{
    const size_t end = json_place_end((struct str){d->text, d->len}, p->value);
    json_t *string = json_loadb(d->text + p->value, end - p->value, JSON_DECODE_ANY, NULL);
    if (string == NULL)
        return;
    cli_print_caret(f, (struct str){json_string_value(string), json_string_length(string)}, p->e->line, p->e->column);
    json_decref(string);
}

static void print(FILE *f, const struct cli_document *d, const struct placed *p)
{
    const struct err *e = p->e;
    const size_t file_len = strlen(d->file);
    const bool names_file = strncmp(e->text, d->file, file_len) == 0 && strncmp(e->text + file_len, ": ", 2) == 0;
    fprintf(f, "%s:", d->file);
    if (p->line != 0)
        fprintf(f, "%u:%u:", p->line, p->column);
    fprintf(f, " %s: %s%s%s [%s]\n", p->severity, e->path, e->path[0] != '\0' ? ": " : "", e->text + (names_file ? file_len + 2 : 0),
            err_code_name(e->code));
    if (p->in_expression)
        print_caret(f, d, p);
}

void cli_document_print(FILE *f, const struct cli_document *d, const struct errlist *errors, const struct errlist *warnings)
{
    size_t n;
    struct placed *all = place_all(d, errors, warnings, &n);
    if (all == NULL) {
        cli_print_faults(f, d->file, "error", errors);
        return;
    }
    for (size_t i = 0; i < n; i++)
        print(f, d, &all[i]);
    if (errors->n_dropped > 0)
        fprintf(f, "%s: error: and %zu more\n", d->file, errors->n_dropped);
    if (warnings != NULL && warnings->n_dropped > 0)
        fprintf(f, "%s: warning: and %zu more\n", d->file, warnings->n_dropped);
    free(all);
}

static json_t *to_json(const struct placed *p)
{
    json_t *fault = json_pack("{s:s, s:s, s:s}", "code", err_code_name(p->e->code), "path", p->e->path, "message", p->e->text);
    if (fault != NULL && p->line != 0) {
        json_object_set_new(fault, "line", json_integer(p->line));
        json_object_set_new(fault, "column", json_integer(p->column));
    }
    if (fault != NULL && p->in_expression)
        json_object_set_new(fault, "expression", json_pack("{s:i, s:i}", "line", (int) p->e->line, "column", (int) p->e->column));
    return fault;
}

json_t *cli_document_json(const struct cli_document *d, const struct errlist *list)
{
    size_t n;
    json_t *array = json_array();
    struct placed *all = place_all(d, list, NULL, &n);
    for (size_t i = 0; array != NULL && all != NULL && i < n; i++)
        json_array_append_new(array, to_json(&all[i]));
    free(all);
    return array;
}
