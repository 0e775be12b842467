/* Lines as the expressions of one policy: each program answers as a naive evaluator of its tree does, over requests made
 * of the policy's own literals, and the index leaves out none that is not NO. */
#include "tests/fuzz/expr_model.h"
#include "tests/fuzz/fuzz.h"

static void add_line(struct world_policy *p, struct str line, struct arena *a)
{
    const struct expr *x = NULL;
    struct err e = {0};
    json_t *json;

    if (p->n == EXPR_PROGRAMS_MAX || !expr_parse(line, a, &x, &e))
        return;
    json = expr_to_json(x);
    GUARANTEE(json != NULL);
    if (naive_knows(json))
        world_add(p, x, json);
    else
        json_decref(json);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct world_policy *p = calloc(1, sizeof(*p));
    struct str rest = {(const char *)data, size};
    struct arena a;

    GUARANTEE(p != NULL);
    arena_init(&a, 65536, 0);
    GUARANTEE(expr_set_new(&a, &p->set));
    while (rest.len > 0) {
        size_t end = str_find_byte(rest, '\n');

        add_line(p, str_sub(rest, 0, end), &a);
        rest = end == SIZE_MAX ? STR_NONE : str_sub(rest, end + 1, rest.len);
    }
    world_check(p, model_seed(data, size), 8);
    world_forget(p);
    arena_release(&a);
    free(p);
    return 0;
}
