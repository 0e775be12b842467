/* Inside common/expr: tables that find, in one pass over a value, which of many literals it equals, begins with, ends
 * with or holds, and which of many ranges it lies in. The literals are the policy's own, so nobody gains by collisions. */
#ifndef COMMON_EXPR_TABLES_PRIV_H
#define COMMON_EXPR_TABLES_PRIV_H

#include "common/base/arena.h"

/* A literal, and the bit that stands for it. */
struct literal {
    struct str text;
    uint32_t id;
};

enum text_part { PART_WHOLE, PART_BEGINNING, PART_ENDING };

struct text_entry {
    struct str text;
    uint32_t first, n; /* its ids; n 0: a free place */
};

struct text_table {
    enum text_part part;
    struct text_entry *entries; /* open addressing with linear probing; at most half full */
    size_t mask;                /* number of entries - 1; that is a power of two */
    const uint32_t *ids;
    const size_t *lengths; /* of the literals, ascending, distinct */
    size_t n_lengths;
};

/* Sorts literals in place; their bytes must live as long as the table. Temporary arrays come from scratch. False when
 * memory is refused. */
MUSTUSE bool text_table_build(struct text_table *t, enum text_part part, struct literal *literals, size_t n,
                              struct arena *a, struct arena *scratch);
/* Sets the bits of all literals that are that part of s. */
void text_table_mark(const struct text_table *t, struct str s, uint64_t *bits);

/* Of literals that may stand anywhere: each is known by a few bytes in a row of it (a gram), in lower case, which the
 * other literals have least. A value that holds the gram is looked at closely. */
enum { GRAM_MAX = 4 };

struct gram_entry {
    uint64_t key;      /* of the gram's bytes and length; 0: a free place */
    uint32_t first, n; /* its ids */
};

struct gram_table {
    uint64_t *filter; /* bits by hash: most grams of a value are in no literal */
    struct gram_entry *entries;
    unsigned filter_shift, entry_shift; /* of the hash */
    size_t mask;
    const uint32_t *ids;
    bool has_length[GRAM_MAX + 1];
};

/* No literal is empty. As above. */
MUSTUSE bool gram_table_build(struct gram_table *t, const struct literal *literals, size_t n, struct arena *a,
                              struct arena *scratch);

/* A walk over the grams of a value. */
struct gram_walk {
    struct str rest;
    uint32_t last; /* bytes read last, in lower case */
    unsigned n_last, length;
};
/* The next entry whose gram the value holds, as often as it does; NULL at the end. */
const struct gram_entry *gram_next(const struct gram_table *t, struct gram_walk *w);

/* Ranges of numbers, of which any may hold a value. */
struct range_entry {
    unsigned __int128 first, last;
    unsigned __int128 most; /* the greatest last up to here: behind a value that is greater, nothing is left to find */
    uint32_t id;
};

struct range_table {
    struct range_entry *entries; /* by first */
    size_t n;
};

/* Puts entries, whose first, last and id are set, in order. */
void range_table_build(struct range_table *t, struct range_entry *entries, size_t n);
/* Sets the bits of all ranges that hold value. */
void range_table_mark(const struct range_table *t, unsigned __int128 value, uint64_t *bits);

#endif
