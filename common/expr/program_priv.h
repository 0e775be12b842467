/* Inside common/expr: what expressions are compiled to. compile.c builds it, eval.c runs it. */
#ifndef COMMON_EXPR_PROGRAM_PRIV_H
#define COMMON_EXPR_PROGRAM_PRIV_H

#include "common/base/map.h"
#include "common/expr/expr_priv.h"

/* A hash table of the literals of an `in`, open addressing with linear probing; at most half full. */
struct string_set {
    struct str *slots; /* p NULL: free */
    size_t mask;       /* number of slots - 1; that is a power of two */
    size_t longest;    /* in bytes: a longer value is in no set and is not hashed */
};

uint64_t string_set_hash(struct str s);

/* The positive forms; a negated operator is a step's negation of one. Addresses are always a set. */
enum predicate_kind { TEXT_IS, TEXT_IN, TEXT_CONTAINS, TEXT_BEGINS, TEXT_ENDS, ADDRESS_IN };

struct predicate {
    enum predicate_kind kind;
    enum field field;
    uint32_t rarest_at; /* TEXT_CONTAINS: the byte of text that a value lacks most likely */
    union {
        struct str text;
        struct string_set texts;
        struct addr_set addresses;
    };
};

/* Where a step leads: a step's index, or the end with an answer. */
enum { END_NO = -1, END_YES = -2 };

/* Asks one predicate and goes on. Negations are worked into negated and the targets, so there is nothing else to
 * execute. */
struct step {
    uint32_t predicate;
    bool negated;
    int8_t if_yes, if_no;
};
_Static_assert(EXPR_CONDITIONS_MAX <= INT8_MAX, "a target is a step's index");

struct program {
    const struct step *steps;
    int8_t entry;
};

struct expr_set {
    struct arena *arena;
    struct predicate *predicates;
    size_t n_predicates, max_predicates;
    struct program *programs;
    size_t n_programs, max_programs;
    struct map known; /* a predicate's key -> its index + 1 */
};

#endif
