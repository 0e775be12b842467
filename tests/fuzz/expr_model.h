/* What holds for every tree, shared by the fuzz targets of expressions: its text and JSON lead back to it, and a
 * compiled program answers as a naive evaluator of its JSON does, over facts made from its own literals. */
#ifndef TESTS_FUZZ_EXPR_MODEL_H
#define TESTS_FUZZ_EXPR_MODEL_H

#include "common/expr/expr.h"
#include "tests/fuzz/guarantee.h"

enum { MODEL_LEAVES_MAX = EXPR_CONDITIONS_MAX, MODEL_LITERALS_MAX = 256 };

/* xorshift64: the same input gives the same run. */
static inline uint64_t model_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

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

/* ---- the naive evaluator ---- */

struct model {
    struct expr_facts facts;
    const json_t *leaves[MODEL_LEAVES_MAX]; /* in the order of a walk */
    enum match forced[MODEL_LEAVES_MAX];    /* outcome of a leaf's positive form, where is_forced */
    bool is_forced[MODEL_LEAVES_MAX];
    size_t n_leaves;
    struct str literals[MODEL_LITERALS_MAX];
    size_t n_literals;
};

static inline struct str model_string(const json_t *value)
{
    return (struct str){json_string_value(value), json_string_length(value)};
}

static inline bool model_is(const json_t *object, const char *member, const char *value)
{
    return str_eq(model_string(json_object_get(object, member)), str_of(value));
}

static inline void model_collect(struct model *m, const json_t *node)
{
    const json_t *rules = json_object_get(node, "rules"), *value = json_object_get(node, "value"), *item;
    size_t i;

    json_array_foreach(rules, i, item) model_collect(m, item);
    if (rules != NULL)
        return;
    GUARANTEE(m->n_leaves < MODEL_LEAVES_MAX);
    m->leaves[m->n_leaves++] = node;
    if (json_is_string(value) && m->n_literals < MODEL_LITERALS_MAX)
        m->literals[m->n_literals++] = model_string(value);
    json_array_foreach(value, i, item) if (m->n_literals < MODEL_LITERALS_MAX) m->literals[m->n_literals++] =
        model_string(item);
}

static inline bool model_address_is(const struct expr_facts *facts, struct str literal)
{
    size_t dots = str_find(literal, STR(".."));
    struct addr_range r;
    bool v4;

    if (dots == SIZE_MAX)
        GUARANTEE(addr_parse_cidr(literal, &r));
    else
        GUARANTEE(addr_parse(str_sub(literal, 0, dots), &r.first) &&
                  addr_parse(str_sub(literal, dots + 2, literal.len), &r.last));
    v4 = addr_is_v4(&r.first) && addr_is_v4(&r.last);
    return facts->has_ip && v4 == addr_is_v4(&facts->ip) && memcmp(facts->ip.b, r.first.b, 16) >= 0 &&
           memcmp(facts->ip.b, r.last.b, 16) <= 0;
}

static inline bool model_text_is(struct str text, struct str literal, const json_t *leaf)
{
    bool starts, ends, contains = false;

    for (size_t i = 0; i + literal.len <= text.len; i++)
        contains = contains || memcmp(text.p + i, literal.p, literal.len) == 0;
    starts = text.len >= literal.len && memcmp(text.p, literal.p, literal.len) == 0;
    ends = text.len >= literal.len && memcmp(text.p + text.len - literal.len, literal.p, literal.len) == 0;
    if (model_is(leaf, "operator", "contains"))
        return contains;
    if (model_is(leaf, "operator", "starts_with"))
        return starts;
    if (model_is(leaf, "operator", "ends_with"))
        return ends;
    return starts && text.len == literal.len;
}

static inline bool model_literal_is(const struct model *m, const json_t *leaf, struct str literal)
{
    if (model_is(leaf, "field", "ip.src"))
        return model_address_is(&m->facts, literal);
    if (model_is(leaf, "field", "http.host"))
        return model_text_is(m->facts.host, literal, leaf);
    if (model_is(leaf, "field", "http.request.method"))
        return model_text_is(m->facts.method, literal, leaf);
    GUARANTEE(model_is(leaf, "field", "http.request.uri.path"));
    return model_text_is(m->facts.path, literal, leaf);
}

static inline enum match model_not(enum match m)
{
    if (m == MATCH_ERROR)
        return m;
    return m == MATCH_YES ? MATCH_NO : MATCH_YES;
}

static inline enum match model_leaf(const struct model *m, const json_t *leaf)
{
    const json_t *value = json_object_get(leaf, "value"), *item;
    enum match out = MATCH_NO;
    size_t i;

    if (json_is_string(value) && model_literal_is(m, leaf, model_string(value)))
        out = MATCH_YES;
    json_array_foreach(value, i, item) if (model_literal_is(m, leaf, model_string(item))) out = MATCH_YES;
    for (i = 0; i < m->n_leaves; i++)
        if (m->leaves[i] == leaf && m->is_forced[i])
            out = m->forced[i];
    return model_is(leaf, "operator", "ne") || model_is(leaf, "operator", "not_in") ? model_not(out) : out;
}

static inline enum match model_answer(const struct model *m, const json_t *node)
{
    const json_t *rules = json_object_get(node, "rules"), *rule;
    bool all = model_is(node, "combinator", "and"), has_no = false, has_yes = false, has_error = false;
    enum match out;
    size_t i;

    if (rules == NULL)
        return model_leaf(m, node);
    json_array_foreach(rules, i, rule)
    {
        enum match one = model_answer(m, rule);

        has_no = has_no || one == MATCH_NO;
        has_yes = has_yes || one == MATCH_YES;
        has_error = has_error || one == MATCH_ERROR;
    }
    if (all ? has_no : has_yes)
        out = all ? MATCH_NO : MATCH_YES;
    else if (has_error)
        out = MATCH_ERROR;
    else
        out = all ? MATCH_YES : MATCH_NO;
    return json_is_true(json_object_get(node, "not")) ? model_not(out) : out;
}

/* ---- facts ---- */

/* A literal, part of one, one with a byte more, or nothing of the kind. */
static inline struct str model_text(const struct model *m, uint64_t *random, struct arena *a)
{
    struct str s;
    char *p;

    if (m->n_literals == 0 || model_random(random) % 8 == 0)
        return STR("shop.example");
    s = m->literals[model_random(random) % m->n_literals];
    switch (model_random(random) % 4) {
    case 0:
        return str_sub(s, 0, model_random(random) % (s.len + 1));
    case 1:
        p = arena_take_bytes(a, s.len + 2);
        GUARANTEE(p != NULL);
        memcpy(p + 1, s.p, s.len);
        p[0] = p[s.len + 1] = '/';
        return model_random(random) % 2 == 0 ? (struct str){p, s.len + 1} : (struct str){p + 1, s.len + 1};
    default:
        return s;
    }
}

static inline void model_facts(struct model *m, uint64_t *random, struct arena *a)
{
    struct str s = STR("192.0.2.7");
    struct addr_range r;

    m->facts = (struct expr_facts){
        .host = model_text(m, random, a), .method = model_text(m, random, a), .path = model_text(m, random, a)};
    if (m->n_literals > 0)
        s = m->literals[model_random(random) % m->n_literals];
    s = str_sub(s, 0, str_find(s, STR("..")));
    m->facts.has_ip = addr_parse_cidr(s, &r);
    if (!m->facts.has_ip)
        return;
    m->facts.ip = model_random(random) % 2 == 0 ? r.first : r.last;
    m->facts.ip.b[15] = (uint8_t)(m->facts.ip.b[15] + model_random(random) % 3 - 1);
}

/* ---- the compiled form against it ---- */

/* Each leaf as a program of its own shows which predicate it became. */
static inline size_t model_predicate(struct expr_set *set, const json_t *leaf, struct arena *a)
{
    const struct expr *x = model_decode(leaf, a);
    struct expr_facts facts = {0};
    struct expr_run run;
    size_t program, predicate = 0;

    GUARANTEE(x != NULL && expr_set_add(set, x, &program) && expr_run_init(&run, set, &facts, a));
    GUARANTEE(expr_run(&run, program) != MATCH_ERROR);
    while (run.memo[predicate] == 0)
        GUARANTEE(++predicate < expr_set_n_predicates(set));
    return predicate;
}

static inline void model_check_answers(const struct expr *x, const json_t *json, uint64_t random, struct arena *a)
{
    struct model m = {.n_leaves = 0};
    size_t program, predicates[MODEL_LEAVES_MAX];
    struct expr_set *set;
    struct expr_run run;

    model_collect(&m, json);
    GUARANTEE(m.n_leaves == expr_n_conditions(x));
    GUARANTEE(expr_set_new(a, &set) && expr_set_add(set, x, &program));
    GUARANTEE(expr_set_n_predicates(set) <= m.n_leaves);
    for (size_t i = 0; i < m.n_leaves; i++)
        predicates[i] = model_predicate(set, m.leaves[i], a);
    GUARANTEE(expr_set_n_predicates(set) <= m.n_leaves);
    for (size_t round = 0; round < 8; round++) {
        model_facts(&m, &random, a);
        GUARANTEE(expr_run_init(&run, set, &m.facts, a));
        for (size_t i = 0; i < m.n_leaves; i++) {
            uint8_t *memo = &run.memo[predicates[i]];

            if (*memo == 0 && round % 2 == 1 && model_random(&random) % 3 == 0)
                *memo = (uint8_t)(1 + model_random(&random) % 3);
        }
        for (size_t i = 0; i < m.n_leaves; i++) {
            m.is_forced[i] = run.memo[predicates[i]] != 0;
            m.forced[i] = (enum match)(m.is_forced[i] ? run.memo[predicates[i]] - 1 : MATCH_NO);
        }
        GUARANTEE(expr_run(&run, program) == model_answer(&m, json));
    }
}

static inline void model_check(const struct expr *x, uint64_t seed, struct arena *a)
{
    json_t *json = expr_to_json(x);
    struct errlist errors;
    bool ok;

    GUARANTEE(json != NULL && errlist_init(&errors, 0));
    ok = expr_check(x, EXPR_CONFIG, "/x", &errors);
    GUARANTEE(ok == (errors.n == 0));
    errlist_release(&errors);
    model_check_inverse(x, json, a);
    model_check_answers(x, json, seed, a);
    json_decref(json);
}

#endif
