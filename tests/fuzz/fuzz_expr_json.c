/* Any JSON as an expression: refused with faults, or a tree for which everything in expr_model.h holds. */
#include "tests/fuzz/expr_model.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct expr *x;
    json_t *json = NULL;
    struct err e = {0};
    struct arena a;

    if (!jx_parse((struct str){(const char *)data, size}, JX_DOCUMENT_MAX_BYTES, &json, &e))
        return 0;
    arena_init(&a, 65536, 0);
    x = model_decode(json, &a);
    if (x != NULL)
        model_check(x, model_seed(data, size), &a);
    arena_release(&a);
    json_decref(json);
    return 0;
}
