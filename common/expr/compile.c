/* Trees to programs: the conditions of each group become one chain, `and` and `or` the chains' targets, and equal
 * predicates of a set become one. */
#include "common/expr/program_priv.h"

enum { FIRST_MAX = 16, SCRATCH_BLOCK_BYTES = 8192 };

bool expr_set_new(struct arena *a, struct expr_set **out)
{
    struct expr_set *set = ARENA_NEW(a, struct expr_set);

    if (set == NULL)
        return false;
    set->arena = a;
    map_init(&set->known_predicates, a);
    map_init(&set->known_slots, a);
    *out = set;
    return true;
}

size_t expr_set_n_predicates(const struct expr_set *set)
{
    return set->n_predicates;
}

/* Outgrown arrays stay in the arena: together they are no larger than the last one. */
bool make_room(struct arena *a, void *items, size_t *max, size_t n, size_t size_bytes)
{
    size_t bigger = *max == 0 ? FIRST_MAX : *max * 2;
    void *old, *new;

    if (n < *max)
        return true;
    new = arena_take_n(a, bigger, size_bytes);
    if (new == NULL)
        return false;
    memcpy(&old, items, sizeof(old));
    if (n > 0)
        memcpy(new, old, n * size_bytes);
    memcpy(items, &new, sizeof(new));
    *max = bigger;
    return true;
}

struct compiler {
    struct expr_set *set;
    struct arena *scratch;
    struct leaf *leaves; /* of all chains, one behind the other */
    struct chain *chains;
    size_t n_leaves;
    int8_t n_chains;
};

/* Whether a group asks that all its parts hold; with negation, `and` and `or` change places (De Morgan; it holds in three
 * values too). */
static bool is_all(const struct group *g, bool negated)
{
    return (g->combinator == AND) != (negated != g->negated);
}

/* A group of one is what it holds, negated or not. */
static const struct expr *unwrap(const struct expr *x, bool *negated)
{
    while (x->is_group && x->group.n_rules == 1) {
        *negated = *negated != x->group.negated;
        x = x->group.rules[0];
    }
    return x;
}

/* Groups inside one that asks the same are part of it. */
static bool is_inside(const struct expr *x, bool negated, bool all)
{
    return x->is_group && is_all(&x->group, negated) == all;
}

MUSTUSE static bool add_leaf(struct compiler *c, const struct condition *condition, bool negated)
{
    struct leaf *leaf = &c->leaves[c->n_leaves++];
    bool flipped;

    if (!predicate_of(c->set, condition, c->scratch, &leaf->predicate, &flipped))
        return false;
    leaf->negated = flipped != negated;
    return true;
}

/* Adds the conditions of x and of the groups that are part of it, in their order. Recursion ends: a tree is at most
 * EXPR_NESTING_MAX groups deep. So it does below. */
MUSTUSE static bool gather(struct compiler *c, const struct expr *x, bool negated, bool all)
{
    x = unwrap(x, &negated);
    if (!x->is_group)
        return add_leaf(c, &x->condition, negated);
    if (!is_inside(x, negated, all))
        return true;
    for (size_t i = 0; i < x->group.n_rules; i++)
        if (!gather(c, x->group.rules[i], negated != x->group.negated, all))
            return false;
    return true;
}

/* What is gathered becomes a chain that comes before *entry. */
MUSTUSE static bool compile_leaves(struct compiler *c, const struct expr *x, bool negated, bool all, int8_t found,
                                   int8_t *entry)
{
    struct chain chain = {.inverted = all, .if_any = found, .if_none = *entry};
    size_t first = c->n_leaves;

    if (!gather(c, x, negated, all))
        return false;
    chain.leaves = &c->leaves[first];
    chain.n_leaves = c->n_leaves - first;
    if (chain.n_leaves == 0)
        return true;
    *entry = c->n_chains;
    c->chains[c->n_chains++] = chain;
    return true;
}

MUSTUSE static bool compile(struct compiler *c, const struct expr *x, bool negated, int8_t yes, int8_t no,
                            int8_t *entry);

/* The groups in x that ask otherwise, the last one first: what a part leads to must have been written. */
MUSTUSE static bool compile_groups(struct compiler *c, const struct expr *x, bool negated, bool all, int8_t found,
                                   int8_t *entry)
{
    for (size_t i = x->group.n_rules; i-- > 0;) {
        bool part_negated = negated != x->group.negated, ok = true;
        const struct expr *part = unwrap(x->group.rules[i], &part_negated);

        if (is_inside(part, part_negated, all))
            ok = compile_groups(c, part, part_negated, all, found, entry);
        else if (part->is_group)
            ok = compile(c, part, part_negated, all ? *entry : found, all ? found : *entry, entry);
        if (!ok)
            return false;
    }
    return true;
}

/* Writes x so that it leads to yes or to no; *entry is where it begins. Conditions are asked before groups: they cost
 * less, and the order changes no answer. */
static bool compile(struct compiler *c, const struct expr *x, bool negated, int8_t yes, int8_t no, int8_t *entry)
{
    int8_t found;
    bool all;

    x = unwrap(x, &negated);
    all = !x->is_group || is_all(&x->group, negated);
    found = all ? no : yes;
    *entry = all ? yes : no;
    if (x->is_group && !compile_groups(c, x, negated, all, found, entry))
        return false;
    return compile_leaves(c, x, negated, all, found, entry);
}

bool expr_set_add(struct expr_set *set, const struct expr *x, size_t *program)
{
    struct arena scratch;
    struct compiler c = {.set = set, .scratch = &scratch};
    struct program compiled = {0};
    bool ok = false;

    if (set->n_programs == EXPR_PROGRAMS_MAX)
        return false;
    arena_init(&scratch, SCRATCH_BLOCK_BYTES, 0);
    c.leaves = ARENA_NEW_N(set->arena, x->n_conditions, struct leaf);
    c.chains = ARENA_NEW_N(set->arena, x->n_conditions, struct chain);
    if (c.leaves == NULL || c.chains == NULL || !compile(&c, x, false, END_YES, END_NO, &compiled.first_chain))
        goto out;
    if (!make_room(set->arena, &set->programs, &set->max_programs, set->n_programs, sizeof(compiled)))
        goto out;
    compiled.chains = c.chains;
    compiled.n_chains = c.n_chains;
    set->programs[set->n_programs] = compiled;
    *program = set->n_programs++;
    ok = true;
out:
    arena_release(&scratch);
    return ok;
}
