/* Tables of literals: hash tables by whole, beginning or ending, and by grams. */
#include "common/expr/tables_priv.h"

#include <stdlib.h>

/* FNV-1a, a byte at a time, so that every beginning's hash is met on the way to the whole one's. */
#define HASH_START UINT64_C(0xcbf29ce484222325)
#define HASH_PRIME UINT64_C(0x100000001b3)

static inline uint64_t hash_add(uint64_t hash, char byte)
{
    return (hash ^ (unsigned char)byte) * HASH_PRIME;
}

static inline size_t hash_end(uint64_t hash)
{
    return (size_t)(hash ^ hash >> 32);
}

/* Goes on over bytes [from, to) as the table reads: from the end where it looks for endings. */
static inline uint64_t hash_on(const struct text_table *t, struct str s, size_t from, size_t to, uint64_t hash)
{
    if (t->part == PART_ENDING)
        for (; from < to; from++)
            hash = hash_add(hash, s.p[s.len - 1 - from]);
    else
        for (; from < to; from++)
            hash = hash_add(hash, s.p[from]);
    return hash;
}

/* ---- building ---- */

static int literal_order(const void *x, const void *y)
{
    const struct literal *a = x, *b = y;
    int order = str_cmp(a->text, b->text);

    return order != 0 ? order : (a->id > b->id) - (a->id < b->id);
}

static int length_order(const void *x, const void *y)
{
    const size_t *a = x, *b = y;

    return (*a > *b) - (*a < *b);
}

static size_t hash_whole(const struct text_table *t, struct str s)
{
    return hash_end(hash_on(t, s, 0, s.len, HASH_START));
}

static void insert(struct text_table *t, const struct text_entry *entry)
{
    size_t i = hash_whole(t, entry->text) & t->mask;

    while (t->entries[i].n > 0)
        i = (i + 1) & t->mask;
    t->entries[i] = *entry;
}

static size_t count_distinct(const struct literal *literals, size_t n)
{
    size_t n_distinct = n > 0;

    for (size_t i = 1; i < n; i++)
        n_distinct += !str_eq(literals[i].text, literals[i - 1].text);
    return n_distinct;
}

MUSTUSE static bool build_lengths(struct text_table *t, const struct literal *literals, size_t n, struct arena *a,
                                  struct arena *scratch)
{
    size_t *all = ARENA_NEW_N(scratch, n, size_t), *lengths, n_lengths = 0;

    if (all == NULL)
        return false;
    for (size_t i = 0; i < n; i++)
        all[i] = literals[i].text.len;
    qsort(all, n, sizeof(*all), length_order);
    for (size_t i = 0; i < n; i++)
        if (n_lengths == 0 || all[n_lengths - 1] != all[i])
            all[n_lengths++] = all[i];
    lengths = ARENA_NEW_N(a, n_lengths, size_t);
    if (lengths == NULL)
        return false;
    if (n_lengths > 0)
        memcpy(lengths, all, n_lengths * sizeof(*lengths));
    t->lengths = lengths;
    t->n_lengths = n_lengths;
    return true;
}

bool text_table_build(struct text_table *t, enum text_part part, struct literal *literals, size_t n, struct arena *a,
                      struct arena *scratch)
{
    uint32_t *ids = ARENA_NEW_N(a, n, uint32_t);
    size_t n_entries = 4;

    if (n > 1)
        qsort(literals, n, sizeof(*literals), literal_order);
    while (n_entries < 2 * count_distinct(literals, n))
        n_entries *= 2;
    *t = (struct text_table){.part = part, .mask = n_entries - 1, .ids = ids};
    t->entries = ARENA_NEW_N(a, n_entries, struct text_entry);
    if (ids == NULL || t->entries == NULL || !build_lengths(t, literals, n, a, scratch))
        return false;
    for (size_t i = 0; i < n;) {
        struct text_entry entry = {.text = literals[i].text, .first = (uint32_t)i};

        for (; i < n && str_eq(literals[i].text, entry.text); i++)
            ids[entry.first + entry.n++] = literals[i].id;
        insert(t, &entry);
    }
    return true;
}

/* ---- reading ---- */

static inline void mark_ids(const uint32_t *ids, uint32_t n, uint64_t *bits)
{
    for (uint32_t i = 0; i < n; i++)
        bits[ids[i] / 64] |= UINT64_C(1) << ids[i] % 64;
}

static inline void mark_text(const struct text_table *t, size_t hash, struct str s, uint64_t *bits)
{
    for (size_t i = hash & t->mask; t->entries[i].n > 0; i = (i + 1) & t->mask) {
        const struct text_entry *entry = &t->entries[i];

        if (str_eq(entry->text, s)) {
            mark_ids(t->ids + entry->first, entry->n, bits);
            return;
        }
    }
}

/* The first len bytes, in the order that the table reads. */
static inline struct str part_of(const struct text_table *t, struct str s, size_t len)
{
    return t->part == PART_ENDING ? str_sub(s, s.len - len, s.len) : str_sub(s, 0, len);
}

void text_table_mark(const struct text_table *t, struct str s, uint64_t *bits)
{
    uint64_t hash = HASH_START;
    size_t i = 0, l = 0;

    /* Values of a length that no literal has are not hashed. */
    if (t->part == PART_WHOLE) {
        while (l < t->n_lengths && t->lengths[l] < s.len)
            l++;
        if (l == t->n_lengths || t->lengths[l] != s.len)
            return;
    }
    for (; l < t->n_lengths && t->lengths[l] <= s.len; l++) {
        hash = hash_on(t, s, i, t->lengths[l], hash);
        i = t->lengths[l];
        mark_text(t, hash_end(hash), part_of(t, s, i), bits);
        if (t->part == PART_WHOLE)
            return;
    }
}

/* ---- grams ---- */

static inline uint64_t gram_hash(uint64_t key)
{
    return key * 0x9e3779b97f4a7c15;
}

/* Its length in the upper half: no key is 0, and grams of several lengths share a table. */
static inline uint64_t gram_key(uint32_t last, unsigned length)
{
    return (uint64_t)length << 32 | (length == GRAM_MAX ? last : last & ((UINT32_C(1) << 8 * length) - 1));
}

enum { COUNTERS = 4096, COUNTER_SHIFT = 52 };

static unsigned gram_length(struct str text)
{
    return text.len < GRAM_MAX ? (unsigned)text.len : GRAM_MAX;
}

/* Where a literal's gram ends; each call gives the next one's key, 0 at the end. */
static uint64_t next_key(struct str text, size_t *at, uint32_t *last)
{
    unsigned length = gram_length(text);

    while (*at < text.len) {
        *last = *last << 8 | (unsigned char)ascii_lower(text.p[(*at)++]);
        if (*at >= length)
            return gram_key(*last, length);
    }
    return 0;
}

static uint64_t rarest_key(struct str text, const uint32_t *counters)
{
    uint64_t key, rarest = 0;
    uint32_t last = 0;

    for (size_t at = 0; (key = next_key(text, &at, &last)) != 0;)
        if (rarest == 0 || counters[gram_hash(key) >> COUNTER_SHIFT] < counters[gram_hash(rarest) >> COUNTER_SHIFT])
            rarest = key;
    return rarest;
}

struct keyed {
    uint64_t key;
    uint32_t id;
};

static int keyed_order(const void *x, const void *y)
{
    const struct keyed *a = x, *b = y;

    if (a->key != b->key)
        return a->key > b->key ? 1 : -1;
    return (a->id > b->id) - (a->id < b->id);
}

/* NULL: memory is refused. */
static struct keyed *choose_keys(const struct literal *literals, size_t n, struct arena *scratch)
{
    uint32_t *counters = ARENA_NEW_N(scratch, COUNTERS, uint32_t);
    struct keyed *keyed = ARENA_NEW_N(scratch, n, struct keyed);

    if (counters == NULL || keyed == NULL)
        return NULL;
    for (size_t i = 0; i < n; i++) {
        uint32_t last = 0;
        uint64_t key;

        for (size_t at = 0; (key = next_key(literals[i].text, &at, &last)) != 0;)
            counters[gram_hash(key) >> COUNTER_SHIFT]++;
    }
    for (size_t i = 0; i < n; i++)
        keyed[i] = (struct keyed){rarest_key(literals[i].text, counters), literals[i].id};
    qsort(keyed, n, sizeof(*keyed), keyed_order);
    return keyed;
}

static void insert_gram(struct gram_table *t, const struct gram_entry *entry)
{
    uint64_t hash = gram_hash(entry->key);
    size_t bit = (size_t)(hash >> t->filter_shift), i = (size_t)(hash >> t->entry_shift);

    t->filter[bit / 64] |= UINT64_C(1) << bit % 64;
    while (t->entries[i].key != 0)
        i = (i + 1) & t->mask;
    t->entries[i] = *entry;
    t->has_length[entry->key >> 32] = true;
}

bool gram_table_build(struct gram_table *t, const struct literal *literals, size_t n, struct arena *a,
                      struct arena *scratch)
{
    enum { FILTER_BITS_A_GRAM = 16 };
    struct keyed *keyed = choose_keys(literals, n, scratch);
    uint32_t *ids = ARENA_NEW_N(a, n, uint32_t);
    unsigned entry_bits = 2, filter_bits = 8;

    while ((size_t)1 << entry_bits < 2 * n)
        entry_bits++;
    while ((size_t)1 << filter_bits < FILTER_BITS_A_GRAM * n)
        filter_bits++;
    *t = (struct gram_table){.entry_shift = 64 - entry_bits, .filter_shift = 64 - filter_bits, .ids = ids};
    t->mask = ((size_t)1 << entry_bits) - 1;
    t->entries = ARENA_NEW_N(a, t->mask + 1, struct gram_entry);
    t->filter = ARENA_NEW_N(a, ((size_t)1 << filter_bits) / 64, uint64_t);
    if (keyed == NULL || ids == NULL || t->entries == NULL || t->filter == NULL)
        return false;
    for (size_t i = 0; i < n;) {
        struct gram_entry entry = {.key = keyed[i].key, .first = (uint32_t)i};

        for (; i < n && keyed[i].key == entry.key; i++)
            ids[entry.first + entry.n++] = keyed[i].id;
        insert_gram(t, &entry);
    }
    return true;
}

static inline const struct gram_entry *find_gram(const struct gram_table *t, uint64_t key)
{
    uint64_t hash = gram_hash(key);
    size_t bit = (size_t)(hash >> t->filter_shift);

    if ((t->filter[bit / 64] >> bit % 64 & 1) == 0)
        return NULL;
    for (size_t i = (size_t)(hash >> t->entry_shift); t->entries[i].key != 0; i = (i + 1) & t->mask)
        if (t->entries[i].key == key)
            return &t->entries[i];
    return NULL;
}

const struct gram_entry *gram_next(const struct gram_table *t, struct gram_walk *w)
{
    for (;;) {
        /* Grams of several lengths end at one byte. */
        while (w->length > 0) {
            unsigned length = w->length--;
            const struct gram_entry *found;

            if (!t->has_length[length] || length > w->n_last)
                continue;
            found = find_gram(t, gram_key(w->last, length));
            if (found != NULL)
                return found;
        }
        if (w->rest.len == 0)
            return NULL;
        w->last = w->last << 8 | (unsigned char)ascii_lower(w->rest.p[0]);
        w->n_last += w->n_last < GRAM_MAX;
        w->length = GRAM_MAX;
        str_skip(&w->rest, 1);
    }
}
