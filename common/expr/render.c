/* The canonical text of a tree: one blank between words, parentheses around every group inside another. */
#include "common/expr/expr_priv.h"

static void put_string(struct buf *out, struct str s)
{
    buf_put_byte(out, '"');
    for (size_t i = 0; i < s.len; i++) {
        if (s.p[i] == '"' || s.p[i] == '\\')
            buf_put_byte(out, '\\');
        buf_put_byte(out, s.p[i]);
    }
    buf_put_byte(out, '"');
}

static void put_value(struct buf *out, enum field f, const struct value *v)
{
    if (field_info(f)->type == T_STRING || field_info(f)->type == T_SIGNAL)
        put_string(out, v->text);
    else
        buf_put(out, v->text);
}

static void put_field(struct buf *out, const struct condition *c)
{
    buf_put_cstr(out, field_info(c->field)->name);
    if (c->key.p == NULL)
        return;
    buf_put_byte(out, '[');
    put_string(out, c->key);
    buf_put_byte(out, ']');
}

static void put_set(struct buf *out, const struct condition *c)
{
    buf_put_byte(out, '{');
    for (size_t i = 0; i < c->n_values; i++) {
        if (i > 0)
            buf_put_byte(out, ' ');
        put_value(out, c->field, &c->values[i]);
    }
    buf_put_byte(out, '}');
}

static void put_condition(struct buf *out, const struct condition *c)
{
    const struct operator_info *op = operator_info(c->op);

    if (op->call) {
        buf_put_cstr(out, op->name);
        buf_put_byte(out, '(');
        put_field(out, c);
        buf_put_cstr(out, ", ");
        put_value(out, c->field, c->values);
        buf_put_byte(out, ')');
        return;
    }
    put_field(out, c);
    buf_put_byte(out, ' ');
    buf_put_cstr(out, op->name);
    buf_put_byte(out, ' ');
    if (op->set)
        put_set(out, c);
    else
        put_value(out, c->field, c->values);
}

/* Recursion ends: a tree is at most EXPR_NESTING_MAX groups deep. */
static void put(struct buf *out, const struct expr *x, bool is_root)
{
    const struct group *g = &x->group;
    bool parentheses;

    if (!x->is_group) {
        put_condition(out, &x->condition);
        return;
    }
    if (g->negated)
        buf_put_cstr(out, "not ");
    if (g->n_rules == 0)
        buf_put_cstr(out, "true");
    parentheses = g->n_rules > 1 && (g->negated || !is_root);
    if (parentheses)
        buf_put_byte(out, '(');
    for (size_t i = 0; i < g->n_rules; i++) {
        if (i > 0)
            buf_put_cstr(out, g->combinator == AND ? " and " : " or ");
        put(out, g->rules[i], false);
    }
    if (parentheses)
        buf_put_byte(out, ')');
}

void expr_render(const struct expr *x, struct buf *out)
{
    put(out, x, true);
}
