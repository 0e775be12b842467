/* What a policy's guard takes over from the one before it, and when a part has no guard left. */
#include "spoa/guard/guard.h"

#include <stdlib.h>

static bool take_backstop(struct guard *g, const struct policy *p, const struct guard *before, struct err *e)
{
    if (p->backstop.params.limit == 0)
        return true;
    if (before != NULL && before->backstop != NULL && backstop_is_of(before->backstop, &p->backstop)) {
        g->backstop = before->backstop;
        g->n_backstop = before->n_backstop;
        ++*g->n_backstop;
        return true;
    }
    size_t *n = calloc(1, sizeof *n);
    if (n == NULL)
        return err_set(e, ERR_NO_MEMORY, "", "no memory for the backstop");
    if (!backstop_new(&g->backstop, &p->backstop, e)) {
        free(n);
        return false;
    }
    *n = 1;
    g->n_backstop = n;
    return true;
}

static void put_backstop(struct guard *g)
{
    if (g->backstop == NULL || --*g->n_backstop > 0)
        return;
    backstop_free(&g->backstop);
    free(g->n_backstop);
}

static bool take_locales(struct guard *g, const struct policy *p, const struct guard *before, struct err *e)
{
    g->matcher = p->locale.matcher;
    if (g->matcher == NULL)
        return true;
    if (before != NULL && before->locales != NULL && locale_matcher_equal(before->matcher, g->matcher)) {
        g->locales = before->locales;
        g->n_locales = before->n_locales;
        ++*g->n_locales;
        return true;
    }
    size_t *n = calloc(1, sizeof *n);
    if (n == NULL)
        return err_set(e, ERR_NO_MEMORY, "", "no memory to remember locales");
    if (!locale_cache_new(&g->locales, e)) {
        free(n);
        return false;
    }
    *n = 1;
    g->n_locales = n;
    return true;
}

static void put_locales(struct guard *g)
{
    if (g->locales == NULL || --*g->n_locales > 0)
        return;
    locale_cache_free(&g->locales);
    free(g->n_locales);
}

/* Part by part; what a guard that fails has taken is given back by guard_free. */
static bool take_parts(struct guard *g, const struct policy *p, const struct guard *before, struct err *e)
{
    return take_backstop(g, p, before, e) && take_locales(g, p, before, e);
}

bool guard_new(struct guard **out, const struct policy *p, const struct guard *before, struct err *e)
{
    struct guard *g = calloc(1, sizeof *g);
    if (g == NULL)
        return err_set(e, ERR_NO_MEMORY, "", "no memory for what is kept of clients");
    if (!take_parts(g, p, before, e)) {
        guard_free(&g);
        return false;
    }
    *out = g;
    return true;
}

void guard_free(struct guard **g)
{
    if (*g == NULL)
        return;
    put_backstop(*g);
    put_locales(*g);
    free(*g);
    *g = NULL;
}
