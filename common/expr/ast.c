/* The tree: its canonical form and its limits. */
#include "common/expr/expr_priv.h"

const char *const combinator_names[] = {[AND] = "and", [OR] = "or", NULL};

static bool no_memory(struct err *e)
{
    return err_set(e, ERR_NO_MEMORY, "", "no memory for this expression");
}

bool ast_condition(struct builder *b, const struct condition *c, const struct expr **out, struct err *e)
{
    struct expr *x = ARENA_NEW(b->arena, struct expr);

    if (x == NULL)
        return no_memory(e);
    if (++b->n_conditions > EXPR_CONDITIONS_MAX)
        return err_set(e, ERR_LIMIT_EXCEEDED, "", "more than %d conditions in one expression", EXPR_CONDITIONS_MAX);
    x->condition = *c;
    x->n_conditions = 1;
    *out = x;
    return true;
}

/* Counts what the group holds; x->group is complete but for that. */
static bool finish_group(struct expr *x, const struct expr **out, struct err *e)
{
    x->is_group = true;
    x->depth = 1;
    for (size_t i = 0; i < x->group.n_rules; i++) {
        const struct expr *rule = x->group.rules[i];

        x->n_conditions += rule->n_conditions;
        if (rule->depth >= x->depth)
            x->depth = rule->depth + 1;
    }
    if (x->depth > EXPR_NESTING_MAX)
        return err_set(e, ERR_LIMIT_EXCEEDED, "", "nested deeper than %d groups", EXPR_NESTING_MAX);
    *out = x;
    return true;
}

bool ast_group(struct builder *b, enum combinator c, const struct expr *const *rules, size_t n_rules,
               const struct expr **out, struct err *e)
{
    struct expr *x;
    const struct expr **copy;

    if (n_rules == 1) {
        *out = rules[0];
        return true;
    }
    x = ARENA_NEW(b->arena, struct expr);
    copy = ARENA_NEW_N(b->arena, n_rules, const struct expr *);
    if (x == NULL || copy == NULL)
        return no_memory(e);
    for (size_t i = 0; i < n_rules; i++)
        copy[i] = rules[i];
    x->group = (struct group){.combinator = c, .rules = copy, .n_rules = n_rules};
    return finish_group(x, out, e);
}

bool ast_negate(struct builder *b, const struct expr *x, const struct expr **out, struct err *e)
{
    struct expr *negated = ARENA_NEW(b->arena, struct expr);
    const struct expr **rule;

    if (negated == NULL)
        return no_memory(e);
    if (x->is_group && !x->group.negated) {
        *negated = *x;
        negated->group.negated = true;
        *out = negated;
        return true;
    }
    rule = ARENA_NEW(b->arena, const struct expr *);
    if (rule == NULL)
        return no_memory(e);
    *rule = x;
    negated->group = (struct group){.combinator = AND, .negated = true, .rules = rule, .n_rules = 1};
    return finish_group(negated, out, e);
}

bool ast_fits(const struct expr *x, struct err *e)
{
    char text[EXPR_TEXT_MAX];
    struct buf b;

    buf_init(&b, text, sizeof(text));
    expr_render(x, &b);
    if (b.full)
        return err_set(e, ERR_LIMIT_EXCEEDED, "", "the expression's canonical text is longer than %d bytes",
                       EXPR_TEXT_MAX);
    return true;
}

static bool condition_equal(const struct condition *a, const struct condition *b)
{
    if (a->field != b->field || !str_eq(a->key, b->key) || a->op != b->op || a->n_values != b->n_values)
        return false;
    for (size_t i = 0; i < a->n_values; i++)
        if (!str_eq(a->values[i].text, b->values[i].text))
            return false;
    return true;
}

bool expr_equal(const struct expr *a, const struct expr *b)
{
    if (a->is_group != b->is_group)
        return false;
    if (!a->is_group)
        return condition_equal(&a->condition, &b->condition);
    if (a->group.combinator != b->group.combinator || a->group.negated != b->group.negated ||
        a->group.n_rules != b->group.n_rules)
        return false;
    for (size_t i = 0; i < a->group.n_rules; i++)
        if (!expr_equal(a->group.rules[i], b->group.rules[i]))
            return false;
    return true;
}

bool expr_is_true(const struct expr *x)
{
    return x->is_group && x->group.n_rules == 0 && !x->group.negated;
}

size_t expr_n_conditions(const struct expr *x)
{
    return x->n_conditions;
}
