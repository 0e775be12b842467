/* What holds for every tree, shared by the fuzz targets of expressions: its text and JSON lead back to it, and a
 * compiled program answers as a naive evaluator of its JSON does, over facts made from its own literals. */
#ifndef TESTS_FUZZ_EXPR_MODEL_H
#define TESTS_FUZZ_EXPR_MODEL_H

#include "tests/fuzz/expr_world.h"

static inline uint64_t model_seed(const uint8_t *data, size_t size)
{
    uint64_t seed = 0x9e3779b97f4a7c15;

    for (size_t i = 0; i < size; i++)
        seed = (seed ^ data[i]) * 0x100000001b3;
    return seed == 0 ? 1 : seed;
}

static inline const struct expr *model_decode(const json_t *json, struct arena *a)
{
    struct errlist errors;
    struct jx_doc doc = {.arena = a, .errors = &errors};
    struct jx root = jx_root(json, &doc);
    const struct expr *x;

    GUARANTEE(errlist_init(&errors, 0));
    x = expr_decode(&root, a);
    GUARANTEE((x == NULL) == (errors.n > 0));
    errlist_release(&errors);
    return x;
}

static inline void model_check_inverse(const struct expr *x, const json_t *json, struct arena *a)
{
    char text[EXPR_TEXT_MAX];
    struct buf b;
    const struct expr *again = NULL;
    struct err e = {0};

    buf_init(&b, text, sizeof(text));
    expr_render(x, &b);
    GUARANTEE(!b.full && expr_n_conditions(x) <= EXPR_CONDITIONS_MAX);
    GUARANTEE(expr_parse(buf_str(&b), a, &again, &e) && expr_equal(x, again));
    again = model_decode(json, a);
    GUARANTEE(again != NULL && expr_equal(x, again));
}

/* Alone in a policy. Takes json over. */
static inline void model_check_answers(const struct expr *x, json_t *json, uint64_t seed, struct arena *a)
{
    struct world_policy *p = calloc(1, sizeof(*p));

    GUARANTEE(p != NULL && expr_set_new(a, &p->set));
    world_add(p, x, json);
    GUARANTEE(p->leaves.n == expr_n_conditions(x) && expr_set_n_predicates(p->set) <= p->leaves.n);
    world_check(p, seed, 8);
    world_forget(p);
    free(p);
}

/* Every code that expr_check gives is its list's: faults refuse the tree, warnings do not. */
static inline void model_check_meaning(const struct expr *x, enum expr_phase phase, const struct expr_deployment *d)
{
    struct expr_context context = {.phase = phase, .deployment = d, .schema = 6, .path = "/x"};
    struct errlist errors, warnings;
    bool ok;

    GUARANTEE(errlist_init(&errors, 0) && errlist_init(&warnings, 0));
    ok = expr_check(x, &context, &errors, &warnings);
    GUARANTEE(ok == (errors.n == 0));
    for (size_t i = 0; i < errors.n; i++)
        GUARANTEE(err_code_http_status(errors.items[i].code) != 200 && str_is_utf8(str_of(errors.items[i].text)));
    for (size_t i = 0; i < warnings.n; i++)
        GUARANTEE(err_code_http_status(warnings.items[i].code) == 200 && str_is_utf8(str_of(warnings.items[i].text)));
    errlist_release(&errors);
    errlist_release(&warnings);
}

static inline void model_check(const struct expr *x, uint64_t seed, struct arena *a)
{
    static const struct expr_deployment bare = {.sources = 0};
    json_t *json = expr_to_json(x);

    GUARANTEE(json != NULL);
    model_check_meaning(x, EXPR_RATE, &expr_deployment_any);
    model_check_meaning(x, EXPR_CONFIG, &bare);
    model_check_inverse(x, json, a);
    if (naive_knows(json))
        model_check_answers(x, json, seed, a);
    else
        json_decref(json);
}

#endif
