/* Loading of what simulate and test work on. */
#include "spoa/cli/loaded.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/jx.h"

enum { REQUEST_MAX_BYTES = 1024 * 1024 };

static void prefix_path(struct err *e, const char *pointer)
{
    char inner[ERR_PATH_MAX];

    memcpy(inner, e->path, sizeof inner);
    if ((size_t) snprintf(e->path, sizeof e->path, "%s%s", pointer, inner) >= sizeof e->path)
        e->path[0] = '\0'; /* rather no place than a wrong one */
}

bool cli_policy_compile(struct cli_policy *p, const char *pointer, const struct policy_options *options, struct errlist *errors, struct errlist *warnings)
{
    const size_t n_errors = errors->n, n_warnings = warnings->n;
    const bool ok = policy_compile(p->source, options, &p->policy, errors, warnings);

    for (size_t i = n_errors; i < errors->n; i++)
        prefix_path(&errors->items[i], pointer);
    for (size_t i = n_warnings; i < warnings->n; i++)
        prefix_path(&warnings->items[i], pointer);
    return ok;
}

bool cli_policy_load(struct cli_policy *p, const char *file, const struct policy_options *options, struct errlist *errors, struct errlist *warnings)
{
    *p = (struct cli_policy){0};
    bool ok = cli_document_load(&p->document, file, errors);
    if (ok) {
        p->source = p->document.json;
        ok = cli_policy_compile(p, "", options, errors, warnings);
    }
    if (!ok)
        cli_document_print(stderr, &p->document, errors, NULL);
    return ok;
}

void cli_policy_release(struct cli_policy *p)
{
    policy_free(&p->policy);
    cli_document_release(&p->document);
    p->source = NULL;
}

/* All of standard input, at most one byte more than is allowed, so that jx_parse refuses what is too long. */
static bool read_stdin(struct cli_document *d, struct err *e)
{
    *d = (struct cli_document){.file = "standard input", .text = malloc(REQUEST_MAX_BYTES + 1)};
    if (d->text == NULL)
        return err_set(e, ERR_NO_MEMORY, "", "no memory to read the request");
    d->len = fread(d->text, 1, REQUEST_MAX_BYTES + 1, stdin);
    if (ferror(stdin) != 0)
        return err_set(e, ERR_UNREADABLE, "", "cannot be read: %s", strerror(errno));
    return true;
}

bool cli_request_load(struct cli_document *d, const char *file, struct errlist *errors)
{
    struct err e;
    err_clear(&e);
    *d = (struct cli_document){.file = file};
    const bool is_read = strcmp(file, "-") == 0 ? read_stdin(d, &e) : jx_read(file, REQUEST_MAX_BYTES, &d->text, &d->len, &e);
    if (is_read && jx_parse((struct str){d->text, d->len}, REQUEST_MAX_BYTES, &d->json, &e))
        return true;
    errlist_add_err(errors, &e);
    cli_document_release(d);
    return false;
}
