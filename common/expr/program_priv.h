/* Inside common/expr: what expressions are compiled to. compile.c and predicate.c collect it, finish.c and index.c put it
 * in order, eval.c runs it. */
#ifndef COMMON_EXPR_PROGRAM_PRIV_H
#define COMMON_EXPR_PROGRAM_PRIV_H

#include <endian.h>

#include "common/base/map.h"
#include "common/expr/expr_priv.h"
#include "common/expr/tables_priv.h"

/* ---- predicates ---- */

/* The positive forms; a negated operator is a leaf's negation of one. What means the same has one form: a wildcard whose
 * only star ends it is TEXT_BEGINS, `lt 5` is a range of ints, `eq false` is a negated IS_TRUE. */
enum predicate_kind {
    TEXT_IS, /* TEXT_IN of one */
    TEXT_IN,
    TEXT_CONTAINS,
    TEXT_BEGINS,
    TEXT_ENDS,
    TEXT_WILDCARD,
    TEXT_MATCHES,
    INT_IN,
    ADDRESS_IN,
    IS_TRUE,
    HAS_SIGNAL
};

struct int_range {
    int64_t first, last; /* inclusive */
};

enum { NO_BULK = UINT32_MAX };

struct predicate {
    enum predicate_kind kind;
    enum field field;
    uint32_t slot;      /* TEXT_*: where its values are */
    uint32_t bulk;      /* that answers it; NO_BULK: it is asked alone */
    uint32_t rarest_at; /* TEXT_CONTAINS: the byte of text that a value lacks most likely */
    union {
        struct str text;
        struct {
            const struct str *items; /* sorted, distinct */
            size_t n;
        } texts;
        struct wildcard wildcard;
        const struct regex *regex;
        struct {
            const struct int_range *items; /* sorted, apart */
            size_t n;
        } ints;
        struct addr_set addresses;
        uint32_t signals; /* any of these bits */
    };
};

/* A text field with its key: its values are extracted once a run. */
struct slot {
    enum field field;
    struct str key; /* of a header: lower case */
};

/* How predicates are answered together: by tables over the values of one slot; by ranges that hold the one number or
 * address of a field; or, where few are asked of one key but many of a field's keys, by the keys that the request has. */
enum bulk_kind { BULK_TEXTS, BULK_GRAMS, BULK_RANGES, BULK_KEYS };

/* Predicates that one pass over the values answers: those numbered [first, first + n). */
struct bulk {
    enum bulk_kind kind;
    enum field field;
    uint32_t slot; /* BULK_TEXTS, BULK_GRAMS */
    uint32_t first, n;
    union {
        struct text_table texts; /* BULK_KEYS: the keys */
        struct gram_table grams;
        struct {
            struct range_table numbers; /* of addresses: those of IPv4 */
            struct range_table v6;
        } ranges;
    };
};

/* An address as a number, and an int as one in the same order. */
static inline unsigned __int128 address_number(const struct addr *a)
{
    uint64_t halves[2];

    memcpy(halves, a->b, sizeof(halves));
    return (unsigned __int128)be64toh(halves[0]) << 64 | be64toh(halves[1]);
}

static inline unsigned __int128 int_number(int64_t i)
{
    return (uint64_t)i ^ UINT64_C(1) << 63;
}

/* ---- programs ---- */

/* Where a chain or step leads: an index, or the end with an answer. */
enum { END_NO = -1, END_YES = -2 };

struct leaf {
    uint32_t predicate;
    bool negated;
};

/* The conditions of one group. inverted: of an `and`, which looks for a leaf that is no; else for one that is yes. */
struct chain {
    struct leaf *leaves;
    size_t n_leaves;
    bool inverted;
    int8_t if_any, if_none;
};

/* A chain's leaves whose predicates share a word of the memo. */
struct step {
    uint64_t yes, no; /* predicates for which that answer is what the chain looks for */
    uint32_t word;
    int8_t if_any, if_none;
    bool inverted;
};
_Static_assert(EXPR_CONDITIONS_MAX <= INT8_MAX, "a target is the index of a chain or step");

struct program {
    const struct chain *chains; /* what it was added as */
    int8_t n_chains, first_chain;
    int8_t entry;
    const struct step *steps; /* NULL until the set is finished */
};

/* Which programs can hold, by what their top-level `and` needs. Paths are compared by their beginning, in lower case and
 * cut to PATH_PREFIX_MAX: that leaves in a few too many and none too few. */
enum { PATH_PREFIX_MAX = 64 };
struct index {
    struct text_table hosts, methods, paths; /* -> programs */
    struct expr_candidates any_host, any_method, any_path;
    bool pays; /* it can leave out so many programs that reading it is less work than running them */
};

struct expr_set {
    struct arena *arena;
    struct predicate *predicates;
    size_t n_predicates, max_predicates;
    struct slot *slots;
    size_t n_slots, max_slots;
    struct program *programs;
    size_t n_programs, max_programs;
    struct bulk *bulks;
    size_t n_bulks;
    struct map known_predicates, known_slots; /* by key -> index + 1 */
    struct index index;
};

/* Room for one item more behind n (compile.c). */
MUSTUSE bool make_room(struct arena *a, void *items, size_t *max, size_t n, size_t size_bytes);
/* A condition in its normal form. Literals are borrowed from it or from scratch. */
struct form {
    struct predicate predicate;
    struct str pattern; /* TEXT_MATCHES: not compiled yet */
    bool negated;       /* the condition holds when the predicate does not */
};
/* False: memory is refused. The slot of a text is left to its caller (forms.c). */
MUSTUSE bool form_of(const struct condition *c, struct arena *scratch, struct form *out);
/* The predicate that c asks, the same for all that mean the same; *negated: c holds when it does not (predicate.c). */
MUSTUSE bool predicate_of(struct expr_set *set, const struct condition *c, struct arena *scratch, uint32_t *index,
                          bool *negated);
MUSTUSE bool index_build(struct expr_set *set, struct arena *scratch);

/* Words of one part of the memo. */
static inline size_t set_n_words(const struct expr_set *set)
{
    return (set->n_predicates + 63) / 64;
}

#endif
