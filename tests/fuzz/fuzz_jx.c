/* Any bytes as a JSON document: bounded, and what is accepted is read and written back without a fault of memory. */
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>

#include "common/base/jx.h"
#include "tests/fuzz/guarantee.h"

enum { VISITS_MAX = 2000 };

/* Asks every kind of reader about every value; depth is bounded by JX_DEPTH_MAX, which the parser promises. */
static void visit(const struct jx *j, unsigned depth, unsigned *n_visits)
{
    static const char *const names[] = {"name", "value", "items", NULL};
    struct str text;
    uint64_t ms;
    int64_t n;
    bool yes;
    int index;

    GUARANTEE(depth <= JX_DEPTH_MAX);
    if ((*n_visits)++ > VISITS_MAX)
        return;
    jx_only(j, names);
    jx_need_str(j, &text);
    jx_need_int(j, -5, 5, &n);
    jx_need_duration_ms(j, 1, 1000, &ms);
    jx_bool(j, &yes);
    jx_enum(j, names, &index);
    if (jx_is_object(j)) {
        const char *key;
        json_t *value;

        json_object_foreach((json_t *)(uintptr_t)j->value, key, value)
        {
            struct jx member = jx_member(j, key);

            GUARANTEE(member.value == value);
            visit(&member, depth + 1, n_visits);
        }
    }
    for (size_t i = 0; json_is_array(j->value) && i < jx_array_len(j); i++) {
        struct jx item = jx_item(j, i);

        visit(&item, depth + 1, n_visits);
    }
}

static void check_accepted(json_t *document)
{
    struct arena arena;
    struct errlist errors;
    struct jx_doc doc = {.arena = &arena, .errors = &errors};
    struct jx root = jx_root(document, &doc);
    char *text = json_dumps(document, JSON_ENCODE_ANY | JSON_COMPACT);
    json_t *again = NULL;
    unsigned n_visits = 0;
    struct err e;

    err_clear(&e);
    GUARANTEE(text != NULL && jx_parse(str_of(text), SIZE_MAX, &again, &e) && json_equal(document, again));
    json_decref(again);
    free(text);
    arena_init(&arena, 1024, 65536);
    GUARANTEE(errlist_init(&errors, 20));
    visit(&root, 0, &n_visits);
    for (size_t i = 0; i < errors.n; i++)
        GUARANTEE(errors.items[i].code != ERR_NONE && memchr("/", errors.items[i].path[0], 2) != NULL);
    errlist_release(&errors);
    arena_release(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str text = {(const char *)data, size};
    json_t *document = NULL;
    struct err e;

    err_clear(&e);
    if (jx_parse(text, 65536, &document, &e)) {
        GUARANTEE(str_is_utf8(text) && e.code == ERR_NONE);
        check_accepted(document);
        json_decref(document);
    } else {
        GUARANTEE(document == NULL && e.code != ERR_NONE && e.text[0] != '\0' && e.column <= size + 1);
    }
    return 0;
}
