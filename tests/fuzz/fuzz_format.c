/* Any policy: its canonical text is canonical, compiles as the policy does, and differs from it in nothing. */
#include <stdlib.h>

#include "common/policy/diff.h"
#include "common/policy/format.h"
#include "common/policy/policy.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/guarantee.h"

static char *format(const json_t *document)
{
    char *text = NULL;
    size_t len = 0;
    FILE *f = open_memstream(&text, &len);
    json_t *canonical = policy_canonical(document, FORMAT_AS_WRITTEN);

    GUARANTEE(f != NULL && canonical != NULL && policy_format(canonical, f) && fclose(f) == 0);
    json_decref(canonical);
    return text;
}

static json_t *parse(struct str text)
{
    json_t *document = NULL;
    struct err e;

    err_clear(&e);
    return jx_parse(text, JX_DOCUMENT_MAX_BYTES, &document, &e) ? document : NULL;
}

/* needs_schema, or -1 when it does not compile. */
static int64_t compile(const json_t *document)
{
    struct errlist errors, warnings;
    struct policy *p = NULL;
    int64_t schema = -1;

    GUARANTEE(errlist_init(&errors, 0) && errlist_init(&warnings, 0));
    if (policy_compile(document, &policy_options_any, &p, &errors, &warnings))
        schema = p->needs_schema;
    policy_free(&p);
    errlist_release(&errors);
    errlist_release(&warnings);
    return schema;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    json_t *document = parse((struct str){(const char *) data, size}), *back, *changes;
    char *text, *again;

    if (document == NULL || !json_is_object(document)) {
        json_decref(document);
        return 0;
    }
    text = format(document);
    back = parse(str_of(text));
    GUARANTEE(back != NULL && compile(back) == compile(document));
    again = format(back);
    GUARANTEE(strcmp(text, again) == 0);
    changes = policy_diff(document, back);
    GUARANTEE(changes != NULL && (compile(document) < 0 || json_array_size(changes) == 0));
    json_decref(changes);
    json_decref(back);
    json_decref(document);
    free(text);
    free(again);
    return 0;
}
