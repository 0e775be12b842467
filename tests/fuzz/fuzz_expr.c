/* Any bytes as an expression's text: refused with a place and words, or a tree for which everything in expr_model.h
 * holds. */
#include "tests/fuzz/expr_model.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str text = {(const char *)data, size};
    const struct expr *x = NULL;
    struct err e = {0};
    struct arena a;

    arena_init(&a, 65536, 0);
    if (expr_parse(text, &a, &x, &e)) {
        GUARANTEE(e.code == ERR_NONE);
        model_check(x, model_seed(data, size), &a);
    } else {
        GUARANTEE(x == NULL && e.code != ERR_NONE && e.code != ERR_NO_MEMORY && e.text[0] != '\0');
        GUARANTEE((e.line > 0 && e.column > 0 && e.column <= size + 1) || e.code == ERR_LIMIT_EXCEEDED);
        GUARANTEE(str_is_utf8(str_of(e.text)));
    }
    arena_release(&a);
    return 0;
}
