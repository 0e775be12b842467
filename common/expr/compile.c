/* Trees to programs: each condition becomes one step, `and` and `or` become the steps' targets, and equal predicates of
 * a set become one. */
#include "common/expr/program_priv.h"

#include <stdlib.h>

enum { FIRST_MAX = 16, SCRATCH_BLOCK_BYTES = 8192 };

bool expr_set_new(struct arena *a, struct expr_set **out)
{
    struct expr_set *set = ARENA_NEW(a, struct expr_set);

    if (set == NULL)
        return false;
    set->arena = a;
    map_init(&set->known, a);
    *out = set;
    return true;
}

size_t expr_set_n_predicates(const struct expr_set *set)
{
    return set->n_predicates;
}

/* Room for one item more behind n. Outgrown arrays stay in the arena: together they are no larger than the last one. */
MUSTUSE static bool make_room(struct arena *a, void *items, size_t *max, size_t n, size_t size_bytes)
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

/* ---- a predicate's key: its normal form as bytes; equal keys are equal predicates ----
 * Strings:   kind, field, then for each in order, without duplicates: length as uint32_t, bytes.
 * Addresses: kind, field, then the merged ranges as they are in memory. */

enum { KEY_HEAD_BYTES = 2 };

static enum predicate_kind kind_of(const struct condition *c, size_t n_distinct)
{
    if (c->op == OP_CONTAINS)
        return TEXT_CONTAINS;
    if (c->op == OP_STARTS_WITH)
        return TEXT_BEGINS;
    if (c->op == OP_ENDS_WITH)
        return TEXT_ENDS;
    return n_distinct == 1 ? TEXT_IS : TEXT_IN;
}

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

MUSTUSE static bool text_key(const struct condition *c, struct arena *scratch, struct str *out)
{
    struct str *texts = ARENA_NEW_N(scratch, c->n_values, struct str);
    size_t size_bytes = KEY_HEAD_BYTES, n;
    struct buf b;
    char *p;

    if (texts == NULL)
        return false;
    for (size_t i = 0; i < c->n_values; i++)
        texts[i] = c->values[i].text;
    n = sort_distinct(texts, c->n_values);
    for (size_t i = 0; i < n; i++)
        size_bytes += sizeof(uint32_t) + texts[i].len;
    p = arena_take_bytes(scratch, size_bytes);
    if (p == NULL)
        return false;
    buf_init(&b, p, size_bytes);
    buf_put_byte(&b, (char)kind_of(c, n));
    buf_put_byte(&b, (char)c->field);
    for (size_t i = 0; i < n; i++) {
        uint32_t len = (uint32_t)texts[i].len;

        buf_put(&b, (struct str){(const char *)&len, sizeof(len)});
        buf_put(&b, texts[i]);
    }
    *out = buf_str(&b);
    return true;
}

MUSTUSE static bool address_key(const struct condition *c, struct arena *scratch, struct str *out)
{
    struct addr_range *ranges = ARENA_NEW_N(scratch, c->n_values, struct addr_range);
    struct addr_set set;
    struct buf b;
    char *p;

    if (ranges == NULL)
        return false;
    for (size_t i = 0; i < c->n_values; i++)
        ranges[i] = c->values[i].range;
    addr_set_build(&set, ranges, c->n_values);
    p = arena_take_bytes(scratch, KEY_HEAD_BYTES + set.n * sizeof(*ranges));
    if (p == NULL)
        return false;
    buf_init(&b, p, KEY_HEAD_BYTES + set.n * sizeof(*ranges));
    buf_put_byte(&b, (char)ADDRESS_IN);
    buf_put_byte(&b, (char)c->field);
    buf_put(&b, (struct str){(const char *)ranges, set.n * sizeof(*ranges)});
    *out = buf_str(&b);
    return true;
}

/* ---- a predicate from its key, whose bytes it borrows ---- */

/* Moves *key behind its next text. False at the end. */
static bool next_text(struct str *key, struct str *text)
{
    uint32_t len;

    if (key->len == 0)
        return false;
    memcpy(&len, key->p, sizeof(len));
    *text = str_sub(*key, sizeof(len), sizeof(len) + len);
    *key = str_sub(*key, sizeof(len) + len, key->len);
    return true;
}

MUSTUSE static bool build_texts(struct str key, struct arena *a, struct string_set *out)
{
    struct string_set set = {.longest = 0};
    size_t n = 0, n_slots = 4;
    struct str rest = key, text;

    while (next_text(&rest, &text))
        n++;
    while (n_slots < 2 * n)
        n_slots *= 2;
    set.slots = ARENA_NEW_N(a, n_slots, struct str);
    if (set.slots == NULL)
        return false;
    set.mask = n_slots - 1;
    for (rest = key; next_text(&rest, &text);) {
        size_t i = string_set_hash(text) & set.mask;

        while (set.slots[i].p != NULL)
            i = (i + 1) & set.mask;
        set.slots[i] = text;
        if (text.len > set.longest)
            set.longest = text.len;
    }
    *out = set;
    return true;
}

MUSTUSE static bool build_addresses(struct str key, struct arena *a, struct addr_set *out)
{
    size_t n = key.len / sizeof(struct addr_range);
    struct addr_range *ranges = ARENA_NEW_N(a, n, struct addr_range);

    if (ranges == NULL)
        return false;
    memcpy(ranges, key.p, key.len);
    addr_set_build(out, ranges, n);
    return true;
}

/* Where in text its rarest byte stands: hosts and paths are made of lower-case letters and slashes for the most part. */
static uint32_t rarest_at(struct str text)
{
    uint32_t found = 0;

    for (uint32_t i = 0; i < text.len; i++) {
        bool is_letter = text.p[i] >= 'a' && text.p[i] <= 'z';

        if (text.p[i] != '/' && (!is_letter || text.p[found] == '/'))
            found = i;
    }
    return found;
}

MUSTUSE static bool build_predicate(struct str key, struct arena *a, struct predicate *out)
{
    struct predicate p = {.kind = (enum predicate_kind)key.p[0], .field = (enum field)key.p[1]};
    struct str rest = str_sub(key, KEY_HEAD_BYTES, key.len);

    switch (p.kind) {
    case TEXT_IN:
        if (!build_texts(rest, a, &p.texts))
            return false;
        break;
    case ADDRESS_IN:
        if (!build_addresses(rest, a, &p.addresses))
            return false;
        break;
    case TEXT_IS:
    case TEXT_CONTAINS:
    case TEXT_BEGINS:
    case TEXT_ENDS:
        next_text(&rest, &p.text);
        p.rarest_at = rarest_at(p.text);
        break;
    }
    *out = p;
    return true;
}

MUSTUSE static bool add_predicate(struct expr_set *set, struct str key, uint32_t *index)
{
    struct predicate p;
    struct str kept;
    void *existing;

    if (set->n_predicates == UINT32_MAX || !arena_copy_str(set->arena, key, &kept) ||
        !build_predicate(kept, set->arena, &p) ||
        !make_room(set->arena, &set->predicates, &set->max_predicates, set->n_predicates, sizeof(p)) ||
        !map_add(&set->known, kept, (void *)(uintptr_t)(set->n_predicates + 1), &existing))
        return false;
    *index = (uint32_t)set->n_predicates;
    set->predicates[set->n_predicates++] = p;
    return true;
}

MUSTUSE static bool predicate_of(struct expr_set *set, const struct condition *c, struct arena *scratch,
                                 uint32_t *index)
{
    bool is_address = field_info(c->field)->type == T_IP;
    struct str key;
    uintptr_t known;

    if (!(is_address ? address_key(c, scratch, &key) : text_key(c, scratch, &key)))
        return false;
    known = (uintptr_t)map_get(&set->known, key);
    if (known == 0)
        return add_predicate(set, key, index);
    *index = (uint32_t)(known - 1);
    return true;
}

/* ---- programs ---- */

struct compiler {
    struct expr_set *set;
    struct arena *scratch;
    struct step *steps;
    int8_t n_steps;
};

/* Writes x so that it leads to yes or to no, last part first: what a part leads to must have been written. *entry is
 * where it begins. A negation goes down to the conditions, turning `and` into `or` on its way (De Morgan; it holds in
 * three values too). Recursion ends: a tree is at most EXPR_NESTING_MAX groups deep. */
MUSTUSE static bool compile(struct compiler *c, const struct expr *x, bool negated, int8_t yes, int8_t no,
                            int8_t *entry)
{
    const struct group *g = &x->group;
    bool all;

    if (!x->is_group) {
        struct step step = {.if_yes = yes, .if_no = no};

        step.negated = operator_info(x->condition.op)->negated != negated;
        if (!predicate_of(c->set, &x->condition, c->scratch, &step.predicate))
            return false;
        *entry = c->n_steps;
        c->steps[c->n_steps++] = step;
        return true;
    }
    negated = negated != g->negated;
    all = (g->combinator == AND) != negated;
    *entry = all ? yes : no;
    for (size_t i = g->n_rules; i-- > 0;)
        if (!compile(c, g->rules[i], negated, all ? *entry : yes, all ? no : *entry, entry))
            return false;
    return true;
}

bool expr_set_add(struct expr_set *set, const struct expr *x, size_t *program)
{
    struct arena scratch;
    struct compiler c = {.set = set, .scratch = &scratch};
    struct program compiled;
    bool ok = false;

    arena_init(&scratch, SCRATCH_BLOCK_BYTES, 0);
    c.steps = ARENA_NEW_N(set->arena, x->n_conditions, struct step);
    if (c.steps == NULL || !compile(&c, x, false, END_YES, END_NO, &compiled.entry))
        goto out;
    if (!make_room(set->arena, &set->programs, &set->max_programs, set->n_programs, sizeof(compiled)))
        goto out;
    compiled.steps = c.steps;
    set->programs[set->n_programs] = compiled;
    *program = set->n_programs++;
    ok = true;
out:
    arena_release(&scratch);
    return ok;
}
