/* Conditions to their one normal form, whichever of the ways to say the same they use. */
#include "common/expr/program_priv.h"

#include <stdlib.h>

/* ---- texts ---- */

static int text_order(const void *x, const void *y)
{
    const struct str *a = x, *b = y;

    return str_cmp(*a, *b);
}

/* Sorts texts and drops duplicates; returns how many are left. */
static size_t sort_distinct(struct str *texts, size_t n)
{
    size_t n_distinct = 0;

    qsort(texts, n, sizeof(*texts), text_order);
    for (size_t i = 0; i < n; i++)
        if (n_distinct == 0 || !str_eq(texts[n_distinct - 1], texts[i]))
            texts[n_distinct++] = texts[i];
    return n_distinct;
}

MUSTUSE static bool text_set_form(const struct condition *c, struct arena *scratch, struct predicate *p)
{
    struct str *texts = ARENA_NEW_N(scratch, c->n_values, struct str);

    if (texts == NULL)
        return false;
    for (size_t i = 0; i < c->n_values; i++)
        texts[i] = c->values[i].text;
    p->texts.n = sort_distinct(texts, c->n_values);
    p->texts.items = texts;
    p->kind = TEXT_IN;
    if (p->texts.n > 1)
        return true;
    p->kind = TEXT_IS;
    p->text = texts[0];
    return true;
}

static bool has_letters(const struct wildcard *w)
{
    for (size_t i = 0; i < w->n_pieces; i++)
        for (size_t j = 0; j < w->pieces[i].len; j++)
            if (ascii_is_alpha(w->pieces[i].p[j]))
                return true;
    return false;
}

/* With stars at its ends only, and case of no account, a wildcard is one of the plain forms. */
static void wildcard_form(struct predicate *p)
{
    struct wildcard w = p->wildcard;
    struct str first = w.pieces[0], last = w.pieces[w.n_pieces - 1];

    p->kind = TEXT_WILDCARD;
    if (!w.strict && has_letters(&w))
        return;
    if (w.n_pieces == 1 || (w.n_pieces == 2 && last.len == 0)) {
        p->kind = w.n_pieces == 1 ? TEXT_IS : TEXT_BEGINS;
        p->text = first;
    } else if (w.n_pieces == 2 && first.len == 0) {
        p->kind = TEXT_ENDS;
        p->text = last;
    } else if (w.n_pieces == 3 && first.len == 0 && last.len == 0) {
        p->kind = TEXT_CONTAINS;
        p->text = w.pieces[1];
    }
}

MUSTUSE static bool text_form(const struct condition *c, struct arena *scratch, struct form *out)
{
    struct predicate *p = &out->predicate;
    struct err e = {0};

    if (c->op == OP_WILDCARD || c->op == OP_STRICT_WILDCARD) {
        if (!wildcard_compile(c->values[0].text, c->op == OP_STRICT_WILDCARD, scratch, &p->wildcard, &e))
            return false;
        wildcard_form(p);
        return true;
    }
    if (c->op == OP_EQ || c->op == OP_NE || c->op == OP_IN || c->op == OP_NOT_IN)
        return text_set_form(c, scratch, p);
    p->text = out->pattern = c->values[0].text;
    p->kind = TEXT_MATCHES;
    if (c->op == OP_CONTAINS)
        p->kind = TEXT_CONTAINS;
    else if (c->op == OP_STARTS_WITH)
        p->kind = TEXT_BEGINS;
    else if (c->op == OP_ENDS_WITH)
        p->kind = TEXT_ENDS;
    return true;
}

/* ---- numbers, addresses, truths, signals ---- */

static int int_order(const void *x, const void *y)
{
    const struct int_range *a = x, *b = y;

    return (a->first > b->first) - (a->first < b->first);
}

/* Sorts ranges and joins those that touch; returns how many are left. */
static size_t merge_ints(struct int_range *ranges, size_t n)
{
    size_t n_merged = 0;

    qsort(ranges, n, sizeof(*ranges), int_order);
    for (size_t i = 0; i < n; i++) {
        struct int_range *before = &ranges[n_merged == 0 ? 0 : n_merged - 1];

        if (n_merged == 0 || (before->last != INT64_MAX && ranges[i].first > before->last + 1))
            ranges[n_merged++] = ranges[i];
        else if (ranges[i].last > before->last)
            before->last = ranges[i].last;
    }
    return n_merged;
}

/* False: nothing is so, such as less than the least number. */
static bool int_range_of(enum op op, const struct value *v, struct int_range *out)
{
    int64_t first = v->ints.first, last = v->ints.last;

    *out = (struct int_range){first, last};
    if (op == OP_LT || op == OP_LE)
        *out = (struct int_range){INT64_MIN, op == OP_LE || last == INT64_MIN ? last : last - 1};
    if (op == OP_GT || op == OP_GE)
        *out = (struct int_range){op == OP_GE || first == INT64_MAX ? first : first + 1, INT64_MAX};
    return !(op == OP_LT && last == INT64_MIN) && !(op == OP_GT && first == INT64_MAX);
}

MUSTUSE static bool int_form(const struct condition *c, struct arena *scratch, struct predicate *p)
{
    struct int_range *ranges = ARENA_NEW_N(scratch, c->n_values, struct int_range);
    size_t n = 0;

    if (ranges == NULL)
        return false;
    for (size_t i = 0; i < c->n_values; i++)
        n += int_range_of(c->op, &c->values[i], &ranges[n]);
    p->kind = INT_IN;
    p->ints.n = merge_ints(ranges, n);
    p->ints.items = ranges;
    return true;
}

MUSTUSE static bool address_form(const struct condition *c, struct arena *scratch, struct predicate *p)
{
    struct addr_range *ranges = ARENA_NEW_N(scratch, c->n_values, struct addr_range);

    if (ranges == NULL)
        return false;
    for (size_t i = 0; i < c->n_values; i++)
        ranges[i] = c->values[i].range;
    p->kind = ADDRESS_IN;
    addr_set_build(&p->addresses, ranges, c->n_values);
    return true;
}

bool form_of(const struct condition *c, struct arena *scratch, struct form *out)
{
    struct predicate *p = &out->predicate;

    *out = (struct form){.predicate = {.field = c->field, .bulk = NO_BULK}, .negated = operator_info(c->op)->negated};
    switch (field_info(c->field)->type) {
    case T_INT:
        return int_form(c, scratch, p);
    case T_IP:
        return address_form(c, scratch, p);
    case T_BOOL:
        p->kind = IS_TRUE;
        out->negated = out->negated == c->values[0].truth;
        return true;
    case T_SIGNAL:
        p->kind = HAS_SIGNAL;
        for (size_t i = 0; i < c->n_values; i++)
            p->signals |= UINT32_C(1) << c->values[i].signal;
        return true;
    default:
        return text_form(c, scratch, out);
    }
}
