/* Any bytes as text and pointer: places stay within the text, and in a document they are those of the values that a parser finds. */
#include <stdlib.h>

#include "common/base/json_place.h"
#include "common/base/jx.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/guarantee.h"

/* Names that are longer may not fit a path, which then is the parent's. */
enum { VISITS_MAX = 500, BIG = 4096, NAME_MAX_BYTES = 64 };

static void check_place(struct str text, struct str pointer)
{
    struct json_place at;
    unsigned line, column;

    if (!json_place_find(text, pointer, &at))
        return;
    GUARANTEE(at.value < text.len && at.name <= at.value);
    const size_t end = json_place_end(text, at.value);
    GUARANTEE(end == SIZE_MAX || (end > at.value && end <= text.len));
    json_place_position(text, at.value, &line, &column);
    GUARANTEE(line >= 1 && column >= 1 && column <= text.len + 1);
}

/* Each byte of the decoded string has a place, the one behind the last is the closing quote. */
static void check_string(struct str text, size_t at, size_t end, const json_t *value)
{
    const char *p = json_string_value(value);
    unsigned line = 1, column = 1;

    for (size_t i = 0; i <= json_string_length(value); i++) {
        const size_t place = json_place_in_string(text, at, line, column);

        GUARANTEE(place > at && place < end);
        GUARANTEE((i == json_string_length(value)) == (place == end - 1));
        column++;
        if (p[i] == '\n') {
            line++;
            column = 1;
        }
    }
}

static void visit(struct str text, const struct jx *j, unsigned *n_visits)
{
    char path[ERR_PATH_MAX];
    struct json_place at;
    struct err e;
    json_t *again = NULL;

    if ((*n_visits)++ > VISITS_MAX)
        return;
    jx_path(j, path);
    GUARANTEE(json_place_find(text, str_of(path), &at));
    if (!at.is_nearest && strlen(path) < ERR_PATH_MAX / 2) {
        const size_t end = json_place_end(text, at.value);

        GUARANTEE(end != SIZE_MAX);
        err_clear(&e);
        GUARANTEE(jx_parse(str_sub(text, at.value, end), SIZE_MAX, &again, &e) && json_equal(again, j->value));
        json_decref(again);
        if (json_is_string(j->value) && json_string_length(j->value) < 64)
            check_string(text, at.value, end, j->value);
    }
    if (json_is_object(j->value)) {
        const char *key;
        json_t *value;

        json_object_foreach((json_t *)(uintptr_t)j->value, key, value)
        {
            struct jx member = jx_member(j, key);

            if (strlen(key) <= NAME_MAX_BYTES)
                visit(text, &member, n_visits);
        }
    }
    for (size_t i = 0; json_is_array(j->value) && i < json_array_size(j->value); i++) {
        struct jx item = jx_item(j, i);

        visit(text, &item, n_visits);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct str all = {(const char *)data, size};
    const size_t split = size > 0 ? data[0] % size : 0;
    const struct str text = str_sub(all, split, size);
    json_t *document = NULL;
    struct err e;

    check_place(text, str_sub(all, 1, split));
    check_place(all, STR("/a/0/b"));
    for (unsigned column = 1; column < 8; column++)
        json_place_in_string(text, 0, 1 + column / 6, column);
    err_clear(&e);
    if (size < BIG && jx_parse(all, SIZE_MAX, &document, &e)) {
        struct jx_doc doc = {0};
        struct jx root = jx_root(document, &doc);
        unsigned n_visits = 0;

        visit(all, &root, &n_visits);
        json_decref(document);
    }
    return 0;
}
