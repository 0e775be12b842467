/* Why an expression says what it says: its tree with the answer of each part and what the request has there. */
#include "common/expr/expr_priv.h"

enum { SCRATCH_BLOCK_BYTES = 16384 };

struct explainer {
    const struct expr_facts *facts;
    struct arena scratch;
};

/* Adds value, which is NULL when memory was refused, to object and takes it over in any case. */
MUSTUSE static bool put(json_t *object, const char *name, json_t *value)
{
    return value != NULL && json_object_set_new(object, name, value) == 0;
}

static json_t *match_json(enum match m)
{
    return m == MATCH_ERROR ? json_string("error") : json_boolean(m == MATCH_YES);
}

/* ---- what the request has ---- */

/* Bytes that are no UTF-8 become U+FFFD. */
static json_t *text_json(struct explainer *x, struct str s)
{
    struct buf b;

    if (!arena_take_buf(&x->scratch, 3 * s.len, &b))
        return NULL;
    buf_put_utf8(&b, s);
    return json_stringn(b.p, b.len);
}

static json_t *append_text(struct explainer *x, json_t *list, struct str s)
{
    json_t *text = text_json(x, s);

    if (list != NULL && text != NULL && json_array_append_new(list, text) == 0)
        return list;
    json_decref(list);
    return NULL;
}

static json_t *texts_json(struct explainer *x, const struct condition *c)
{
    struct texts texts;
    json_t *list;

    if (!facts_texts(x->facts, c->field, c->key, &texts))
        return NULL;
    if (texts.n == 0)
        return json_null();
    if (!field_info(c->field)->list)
        return text_json(x, texts.items[0]);
    list = json_array();
    for (size_t i = 0; list != NULL && i < texts.n; i++)
        list = append_text(x, list, texts.items[i]);
    return list;
}

static json_t *signals_json(struct explainer *x)
{
    uint32_t signals = expr_facts_signals(x->facts);
    json_t *list = signals == 0 ? json_null() : json_array();

    for (size_t i = 0; list != NULL && i < expr_n_signals(); i++)
        if ((signals >> i & 1) != 0)
            list = append_text(x, list, str_of(expr_signal_name(i)));
    return list;
}

static json_t *address_json(const struct expr_facts *f)
{
    char text[ADDR_TEXT_MAX];

    return f->has_ip ? json_stringn(text, addr_render(&f->ip, text)) : json_null();
}

static json_t *value_json(struct explainer *x, const struct condition *c)
{
    int64_t number;

    switch (field_info(c->field)->type) {
    case T_INT:
        return facts_int(x->facts, c->field, &number) ? json_integer(number) : json_null();
    case T_BOOL:
        return json_boolean(facts_truth(x->facts, c->field));
    case T_IP:
        return address_json(x->facts);
    case T_SIGNAL:
        return signals_json(x);
    default:
        return texts_json(x, c);
    }
}

/* ---- parts ---- */

/* As the programs of a policy answer it. */
MUSTUSE static bool run_alone(struct explainer *x, const struct expr *condition, enum match *out)
{
    struct expr_set *set;
    struct expr_run run;
    size_t program;

    if (!expr_set_new(&x->scratch, &set) || !expr_set_add(set, condition, &program) || !expr_set_finish(set) ||
        !expr_run_init(&run, set, x->facts, &x->scratch))
        return false;
    *out = expr_run(&run, program);
    return true;
}

MUSTUSE static bool explain_condition(struct explainer *x, const struct expr *condition, bool needed, json_t *out,
                                      enum match *m)
{
    char text[EXPR_TEXT_MAX];
    struct buf b;

    buf_init(&b, text, sizeof(text));
    expr_render(condition, &b);
    if (!put(out, "text", json_stringn(b.p, b.len)))
        return false;
    if (!needed)
        return put(out, "result", json_null());
    return run_alone(x, condition, m) && put(out, "value", value_json(x, &condition->condition)) &&
           put(out, "result", match_json(*m));
}

static json_t *explain(struct explainer *x, const struct expr *part, bool needed, enum match *m);

static enum match not(enum match m)
{
    if (m == MATCH_ERROR)
        return m;
    return m == MATCH_YES ? MATCH_NO : MATCH_YES;
}

/* What decides a group whatever its other parts are. */
static enum match deciding(const struct group *g)
{
    return g->combinator == AND ? MATCH_NO : MATCH_YES;
}

MUSTUSE static bool explain_group(struct explainer *x, const struct group *g, bool needed, json_t *out, enum match *m)
{
    json_t *rules = json_array();
    enum match all = not(deciding(g));

    if (!put(out, "rules", rules))
        return false;
    for (size_t i = 0; i < g->n_rules; i++) {
        enum match one = MATCH_NO;
        bool part_needed = needed && all != deciding(g);
        json_t *part = explain(x, g->rules[i], part_needed, &one);

        if (part == NULL || json_array_append_new(rules, part) != 0)
            return false;
        if (part_needed && one != not(deciding(g)))
            all = one;
    }
    *m = g->negated ? not(all) : all;
    return put(out, "combinator", json_string(combinator_names[g->combinator])) && put(out, "not", json_boolean(g->negated)) &&
           put(out, "result", needed ? match_json(*m) : json_null());
}

/* *m is set where the part is needed. Recursion ends: a tree is at most EXPR_NESTING_MAX groups deep. */
static json_t *explain(struct explainer *x, const struct expr *part, bool needed, enum match *m)
{
    json_t *out = json_object();
    bool ok = out != NULL && (part->is_group ? explain_group(x, &part->group, needed, out, m)
                                             : explain_condition(x, part, needed, out, m));

    if (ok)
        return out;
    json_decref(out);
    return NULL;
}

json_t *expr_explain(const struct expr *x, const struct expr_facts *facts)
{
    struct explainer explainer = {.facts = facts};
    enum match m = MATCH_NO;
    json_t *out;

    arena_init(&explainer.scratch, SCRATCH_BLOCK_BYTES, 0);
    out = explain(&explainer, x, true, &m);
    arena_release(&explainer.scratch);
    return out;
}
