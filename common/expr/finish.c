/* A set's last step before it runs: predicates are numbered so that those answered together stand together, their tables
 * are built, and chains become steps over words of the memo. */
#include "common/expr/program_priv.h"

#include <stdlib.h>

enum { SCRATCH_BLOCK_BYTES = 16384 };

/* From so many literals on a pass over the value is cheaper than a look at each. */
enum { BULK_LITERALS_MIN = 8 };

/* How a predicate is answered, in the order of numbers: within a step the cheap ones are asked first. */
enum class { ALONE, RANGES, KEYS, WHOLE, BEGINNING, ENDING, GRAMS, REGEX };

struct place {
    enum class class;
    uint32_t where; /* the slot; of RANGES and KEYS the field; of ALONE 0 */
    uint32_t old;
};

struct finish {
    struct expr_set *set;
    struct arena *scratch;
    struct place *places; /* in the new order */
    uint32_t *new_of;     /* by old number */
};

/* ---- literals ---- */

static struct str longest_piece(const struct wildcard *w)
{
    struct str longest = w->pieces[0];

    for (size_t i = 1; i < w->n_pieces; i++)
        if (w->pieces[i].len > longest.len)
            longest = w->pieces[i];
    return longest;
}

static enum class class_of(const struct predicate *p)
{
    switch (p->kind) {
    case TEXT_IS:
    case TEXT_IN:
        return WHOLE;
    case TEXT_BEGINS:
        return BEGINNING;
    case TEXT_ENDS:
        return ENDING;
    case TEXT_CONTAINS:
        return p->text.len > 0 ? GRAMS : ALONE;
    case TEXT_WILDCARD:
        return longest_piece(&p->wildcard).len > 0 ? GRAMS : ALONE;
    case TEXT_MATCHES:
        return REGEX;
    case INT_IN:
    case ADDRESS_IN:
        return RANGES;
    case IS_TRUE:
    case HAS_SIGNAL:
        break;
    }
    return ALONE;
}

static uint32_t where_of(const struct predicate *p, enum class class)
{
    if (class == RANGES || class == KEYS)
        return p->field;
    return class == ALONE ? 0 : p->slot;
}

static size_t n_literals(const struct predicate *p)
{
    if (p->kind == TEXT_IN)
        return p->texts.n;
    if (p->kind == INT_IN)
        return p->ints.n;
    return p->kind == ADDRESS_IN ? p->addresses.n : 1;
}

static void put_literals(const struct predicate *p, uint32_t id, struct literal *out)
{
    if (p->kind == TEXT_IN) {
        for (size_t i = 0; i < p->texts.n; i++)
            out[i] = (struct literal){p->texts.items[i], id};
        return;
    }
    *out = (struct literal){p->kind == TEXT_WILDCARD ? longest_piece(&p->wildcard) : p->text, id};
}

/* ---- numbers ---- */

static int place_order(const void *x, const void *y)
{
    const struct place *a = x, *b = y;

    if (a->class != b->class)
        return a->class > b->class ? 1 : -1;
    if (a->where != b->where)
        return a->where > b->where ? 1 : -1;
    return (a->old > b->old) - (a->old < b->old);
}

static bool is_bulk_class(enum class c)
{
    return c != ALONE && c != REGEX;
}

static size_t count_run(const struct place *places, size_t n)
{
    size_t i = 1;

    while (i < n && places[i].class == places[0].class && places[i].where == places[0].where)
        i++;
    return i;
}

static size_t count_literals(const struct finish *f, size_t first, size_t n)
{
    size_t n_found = 0;

    for (size_t i = first; i < first + n; i++)
        n_found += f->places[i].class == KEYS ? 1 : n_literals(&f->set->predicates[f->places[i].old]);
    return n_found;
}

/* What becomes of a predicate that has too few companions. */
static void move_down(const struct finish *f, struct place *p)
{
    const struct predicate *predicate = &f->set->predicates[p->old];

    p->class = p->class != KEYS && field_info(predicate->field)->key != KEY_NONE ? KEYS : ALONE;
    p->where = where_of(predicate, p->class);
}

/* Groups that are too small for a pass are dissolved. Returns how many are left. */
static size_t dissolve_small(const struct finish *f)
{
    size_t n_bulks = 0, n = f->set->n_predicates;

    for (size_t i = 0, run; i < n; i += run) {
        run = count_run(&f->places[i], n - i);
        if (!is_bulk_class(f->places[i].class))
            continue;
        if (count_literals(f, i, run) >= BULK_LITERALS_MIN) {
            n_bulks++;
            continue;
        }
        for (size_t j = i + run; j-- > i;)
            move_down(f, &f->places[j]);
    }
    qsort(f->places, n, sizeof(*f->places), place_order);
    return n_bulks;
}

MUSTUSE static bool number(struct finish *f, size_t *n_bulks)
{
    struct expr_set *set = f->set;
    size_t n = set->n_predicates;
    struct predicate *ordered = ARENA_NEW_N(set->arena, n, struct predicate);

    f->places = ARENA_NEW_N(f->scratch, n, struct place);
    f->new_of = ARENA_NEW_N(f->scratch, n, uint32_t);
    if (ordered == NULL || f->places == NULL || f->new_of == NULL)
        return false;
    for (size_t i = 0; i < n; i++) {
        enum class class = class_of(&set->predicates[i]);

        f->places[i] = (struct place){class, where_of(&set->predicates[i], class), (uint32_t)i};
    }
    qsort(f->places, n, sizeof(*f->places), place_order);
    /* Twice: what the first pass dissolves may have companions by key. */
    dissolve_small(f);
    *n_bulks = dissolve_small(f);
    for (size_t i = 0; i < n; i++) {
        ordered[i] = set->predicates[f->places[i].old];
        f->new_of[f->places[i].old] = (uint32_t)i;
        f->places[i].old = (uint32_t)i;
    }
    set->predicates = ordered;
    return true;
}

/* ---- bulks ---- */

/* Ranges of IPv4 addresses and of numbers grow from the front of one array, those of IPv6 from its end. */
struct range_room {
    struct range_entry *front, *back;
};

static void put_range(struct range_room *room, bool v6, const struct range_entry *entry)
{
    if (v6)
        *--room->back = *entry;
    else
        *room->front++ = *entry;
}

static void put_ranges(const struct predicate *p, uint32_t id, struct range_room *room)
{
    for (size_t i = 0; p->kind == INT_IN && i < p->ints.n; i++) {
        const struct int_range *r = &p->ints.items[i];

        put_range(room, false, &(struct range_entry){.first = int_number(r->first), .last = int_number(r->last), .id = id});
    }
    for (size_t i = 0; p->kind == ADDRESS_IN && i < p->addresses.n; i++) {
        const struct addr_range *r = &p->addresses.ranges[i];
        bool v6 = !addr_is_v4(&r->first) || !addr_is_v4(&r->last);

        put_range(room, v6,
                  &(struct range_entry){.first = address_number(&r->first), .last = address_number(&r->last), .id = id});
    }
}

MUSTUSE static bool build_ranges(const struct finish *f, struct bulk *b)
{
    size_t n_ranges = count_literals(f, b->first, b->n);
    struct range_entry *entries = ARENA_NEW_N(f->set->arena, n_ranges, struct range_entry);
    struct range_room room;

    if (entries == NULL)
        return false;
    room = (struct range_room){entries, entries + n_ranges};
    for (uint32_t i = b->first; i < b->first + b->n; i++)
        put_ranges(&f->set->predicates[i], i, &room);
    range_table_build(&b->ranges.numbers, entries, (size_t)(room.front - entries));
    range_table_build(&b->ranges.v6, room.back, (size_t)(entries + n_ranges - room.back));
    return true;
}

/* NULL: memory is refused. */
static struct literal *literals_of(const struct finish *f, const struct bulk *b, size_t n_texts)
{
    struct literal *literals = ARENA_NEW_N(f->scratch, n_texts, struct literal);
    size_t at = 0;

    for (uint32_t i = b->first; literals != NULL && i < b->first + b->n; i++) {
        const struct predicate *p = &f->set->predicates[i];

        if (b->kind == BULK_KEYS) {
            literals[at++] = (struct literal){f->set->slots[p->slot].key, i};
        } else {
            put_literals(p, i, &literals[at]);
            at += n_literals(p);
        }
    }
    return literals;
}

static enum bulk_kind kind_of(enum class class)
{
    if (class == RANGES)
        return BULK_RANGES;
    if (class == KEYS)
        return BULK_KEYS;
    return class == GRAMS ? BULK_GRAMS : BULK_TEXTS;
}

MUSTUSE static bool build_bulk(const struct finish *f, size_t first, size_t n, struct bulk *out)
{
    enum class class = f->places[first].class;
    enum text_part part = PART_WHOLE;
    size_t n_texts = count_literals(f, first, n);
    struct literal *literals;

    *out = (struct bulk){.kind = kind_of(class), .field = f->set->predicates[first].field, .slot = f->set->predicates[first].slot,
                         .first = (uint32_t)first, .n = (uint32_t)n};
    if (class == RANGES)
        return build_ranges(f, out);
    literals = literals_of(f, out, n_texts);
    if (literals == NULL)
        return false;
    if (class == GRAMS)
        return gram_table_build(&out->grams, literals, n_texts, f->set->arena, f->scratch);
    if (class == BEGINNING || class == ENDING)
        part = class == BEGINNING ? PART_BEGINNING : PART_ENDING;
    return text_table_build(&out->texts, part, literals, n_texts, f->set->arena, f->scratch);
}

MUSTUSE static bool build_bulks(const struct finish *f, size_t n_bulks)
{
    struct expr_set *set = f->set;

    set->bulks = ARENA_NEW_N(set->arena, n_bulks, struct bulk);
    if (set->bulks == NULL)
        return false;
    for (size_t i = 0, run; i < set->n_predicates; i += run) {
        run = count_run(&f->places[i], set->n_predicates - i);
        if (!is_bulk_class(f->places[i].class))
            continue;
        if (!build_bulk(f, i, run, &set->bulks[set->n_bulks]))
            return false;
        for (size_t j = i; j < i + run; j++)
            set->predicates[j].bulk = (uint32_t)set->n_bulks;
        set->n_bulks++;
    }
    return true;
}

/* ---- steps ---- */

/* A chain's leaves as one step a word, in the order of words; returns how many. Targets are still chains. */
static int8_t split_chain(const struct chain *c, struct step *steps)
{
    int8_t n = 0;

    for (size_t i = 0; i < c->n_leaves; i++) {
        uint32_t id = c->leaves[i].predicate, word = id / 64;
        uint64_t bit = UINT64_C(1) << id % 64;
        int8_t at = n;

        while (at > 0 && steps[at - 1].word >= word)
            at--;
        if (at == n || steps[at].word != word) {
            memmove(&steps[at + 1], &steps[at], (size_t)(n - at) * sizeof(*steps));
            steps[at] = (struct step){.word = word, .inverted = c->inverted};
            n++;
        }
        /* An `and` looks for what is no. */
        if (c->leaves[i].negated == c->inverted)
            steps[at].yes |= bit;
        else
            steps[at].no |= bit;
    }
    return n;
}

static int8_t step_of(int8_t chain, const int8_t *first_steps)
{
    return chain < 0 ? chain : first_steps[chain];
}

MUSTUSE static bool build_steps(struct arena *a, struct program *p)
{
    struct step steps[EXPR_CONDITIONS_MAX + 1];
    int8_t first_steps[EXPR_CONDITIONS_MAX], n = 0;
    struct step *kept;

    /* A chain leads to chains that were written before it. */
    for (int8_t c = 0; c < p->n_chains; c++) {
        const struct chain *chain = &p->chains[c];
        int8_t n_steps = split_chain(chain, &steps[n]);

        first_steps[c] = n;
        for (int8_t i = n; i < n + n_steps; i++) {
            steps[i].if_any = step_of(chain->if_any, first_steps);
            steps[i].if_none = i + 1 < n + n_steps ? (int8_t)(i + 1) : step_of(chain->if_none, first_steps);
        }
        n = (int8_t)(n + n_steps);
    }
    kept = ARENA_NEW_N(a, (size_t)n, struct step);
    if (kept == NULL)
        return false;
    if (n > 0)
        memcpy(kept, steps, (size_t)n * sizeof(*kept));
    p->steps = kept;
    p->entry = step_of(p->first_chain, first_steps);
    return true;
}

/* From here on the chains' leaves have the new numbers too: the index reads them. */
static void renumber(const struct finish *f, struct program *p)
{
    for (int8_t c = 0; c < p->n_chains; c++)
        for (size_t i = 0; i < p->chains[c].n_leaves; i++)
            p->chains[c].leaves[i].predicate = f->new_of[p->chains[c].leaves[i].predicate];
}

bool expr_set_finish(struct expr_set *set)
{
    struct arena scratch;
    struct finish f = {.set = set, .scratch = &scratch};
    size_t n_bulks;
    bool ok = false;

    arena_init(&scratch, SCRATCH_BLOCK_BYTES, 0);
    if (!number(&f, &n_bulks) || !build_bulks(&f, n_bulks))
        goto out;
    for (size_t i = 0; i < set->n_programs; i++) {
        renumber(&f, &set->programs[i]);
        if (!build_steps(set->arena, &set->programs[i]))
            goto out;
    }
    ok = index_build(set, &scratch);
out:
    arena_release(&scratch);
    return ok;
}
