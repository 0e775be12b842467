/* Inside common/expr: the vocabulary of the tables, the tree, and what its readers and writers share. */
#ifndef COMMON_EXPR_EXPR_PRIV_H
#define COMMON_EXPR_EXPR_PRIV_H

#include "common/expr/expr.h"

/* ---- vocabulary (vocab.c): rows of schemas/fields.def and schemas/operators.def ---- */

enum { T_STRING = 1, T_INT = 2, T_IP = 4, T_BOOL = 8, T_SIGNAL = 16 };

enum field {
#define FIELD_ROW(id, name, type, list, key, phases, source, client, absent, meaning) FIELD_##id,
#include "schemas/fields.def"
#undef FIELD_ROW
    FIELD_N
};

enum op {
#define OPERATOR_ROW(id, name, call, set, negated, types, label) OP_##id,
#include "schemas/operators.def"
#undef OPERATOR_ROW
    OP_N
};

enum signal_id {
#define SIGNAL_ROW(id, name, source, meaning) SIGNAL_##id,
#include "schemas/signals.def"
#undef SIGNAL_ROW
    SIGNAL_N
};
_Static_assert(SIGNAL_N <= 32, "signals are bits of a word");

enum key_kind { KEY_NONE, KEY_HEADER, KEY_COOKIE, KEY_PARAMETER, KEY_CLAIM };
enum absent { ABSENT_NEVER, ABSENT_MISSING, ABSENT_EMPTY, ABSENT_FALSE };

struct field_info {
    const char *name;
    unsigned type; /* one of T_* */
    bool list;
    enum key_kind key;
    unsigned phases; /* of enum expr_phase */
    enum expr_source source;
    bool client; /* the client chooses it freely */
    enum absent absent;
};

struct operator_info {
    const char *name;
    bool call, set, negated;
    unsigned types; /* any of T_* */
};

struct signal_info {
    const char *name;
    enum expr_source source;
};

const struct field_info *field_info(enum field f);
const struct operator_info *operator_info(enum op op);
/* Exact names. False when there is none; *out is untouched then. */
bool field_find(struct str name, enum field *out);
bool operator_find(struct str name, enum op *out);
const struct signal_info *signal_info(enum signal_id s);
bool signal_find(struct str name, enum signal_id *out);

/* What to say about a name that is none: "did you mean ...?", or all names when none is near. Each sets e and returns
 * false, with path "". */
bool field_unknown(struct str name, struct err *e);
bool operator_unknown(struct str name, struct err *e);
bool function_unknown(struct str name, struct err *e);
bool signal_unknown(struct str name, struct err *e);
/* Refuses an operator that does not take the field's type. */
MUSTUSE bool operator_takes(enum op op, enum field f, struct err *e);

/* ---- tree (ast.c) ---- */

/* Canonical, however it was written:
 * - a condition is a leaf, alone or in a group;
 * - a group with nothing in it is `true`, always with AND;
 * - a group of one is always negated and AND, and what it holds is a condition or a negated group: a negation goes into
 * the group below it where that has none, and parentheses around one thing are that thing;
 * - every other group is kept as it was written, also one inside another with the same combinator.
 * So trees, canonical texts and canonical JSON map to each other one to one. */

/* Where something stands in a text; line 0: it came from JSON. */
struct pos {
    unsigned line, column;
};

/* One literal. Which member of the union holds is the field's type: of a string only the text, of a signal its number. */
struct value {
    struct str text; /* canonical: a string without quotes and escapes, an address or range as written, "-5", "1..9", "true" */
    union {
        struct addr_range range; /* T_IP */
        struct {
            int64_t first, last; /* T_INT; equal for a single number */
        } ints;
        bool truth;            /* T_BOOL */
        enum signal_id signal; /* T_SIGNAL */
    };
    struct pos pos;
};

struct condition {
    enum field field;
    struct str key; /* of a keyed field, as written; p NULL for others */
    enum op op;
    const struct value *values;
    size_t n_values; /* 1 unless the operator takes a set; then at least 1 */
    struct pos pos;
    struct str pointer; /* from the expression's place in its document to here; "" when it came from a text */
};

enum combinator { AND, OR };
extern const char *const combinator_names[]; /* by combinator, NULL behind the last */

struct group {
    enum combinator combinator;
    bool negated;
    const struct expr *const *rules;
    size_t n_rules;
};

struct expr {
    bool is_group;
    unsigned depth; /* groups on the longest way down: 0 for a condition */
    size_t n_conditions;
    union {
        struct condition condition;
        struct group group;
    };
};

/* What both readers build a tree with. */
struct builder {
    struct arena *arena;
    size_t n_conditions;
};

/* Each makes a canonical node. False and a fault in e (path "", no position): too deep, too many conditions, no memory.
 */
MUSTUSE bool ast_condition(struct builder *b, const struct condition *c, const struct expr **out, struct err *e);
/* rules are copied. n_rules 0 needs AND. */
MUSTUSE bool ast_group(struct builder *b, enum combinator c, const struct expr *const *rules, size_t n_rules,
                       const struct expr **out, struct err *e);
MUSTUSE bool ast_negate(struct builder *b, const struct expr *x, const struct expr **out, struct err *e);
/* What one tree may be in all: its canonical text fits EXPR_TEXT_MAX, so that it can always be read back. */
MUSTUSE bool ast_fits(const struct expr *x, struct err *e);

/* Each reads v->text, which stands behind op, into the union; false and a fault in e (path "", no position) otherwise.
 * Addresses: one, or in a set also a CIDR or `first..last`. Ints: decimal digits with an optional '-', no leading zeros,
 * 64 bits; in a set also `first..last`. */
MUSTUSE bool value_read_addresses(struct value *v, enum op op, struct err *e);
MUSTUSE bool value_read_int(struct value *v, enum op op, struct err *e);

/* ---- wildcards (wildcard.c) ---- */

/* '*' stands for any bytes, `\*` and `\\` for themselves; any other backslash is refused. Matching never backtracks. */
struct wildcard {
    struct str *pieces; /* literal bytes between the stars, unescaped; lower case when not strict. n_pieces - 1 stars */
    size_t n_pieces;
    bool strict;
};
/* text: a literal, which readers hold to EXPR_TEXT_MAX bytes; it need not live on. Any fault: in e (path "", no position). */
MUSTUSE bool wildcard_compile(struct str text, bool strict, struct arena *a, struct wildcard *out, struct err *e);
bool wildcard_matches(const struct wildcard *w, struct str text);

/* ---- regular expressions (regex.c): PCRE2 with JIT, UTF, linear by limit ---- */

enum { REGEX_SUBJECT_MAX = 8192, REGEX_MATCH_LIMIT = 10000 };
struct regex;
/* pattern: a literal, as above. The compiled pattern is freed with the arena. Any fault of the pattern: in e (path "", no position), with its offset. */
MUSTUSE bool regex_compile(struct str pattern, struct arena *a, const struct regex **out, struct err *e);
/* MATCH_ERROR: the limit was hit, the subject is longer than REGEX_SUBJECT_MAX or no UTF-8, or memory is refused. Any thread. */
enum match regex_matches(const struct regex *r, struct str text);

/* ---- values of a request (values.c, signals.c) ---- */

/* The values of one text field (T_STRING) of a request, in order. Empty and not missing for ABSENT_EMPTY. */
struct texts {
    const struct str *items;
    size_t n; /* 0: missing */
};
/* key: lower case for headers. False: memory is refused. */
MUSTUSE bool facts_texts(const struct expr_facts *f, enum field field, struct str key, struct texts *out);
/* False: missing. */
bool facts_int(const struct expr_facts *f, enum field field, int64_t *out);
bool facts_truth(const struct expr_facts *f, enum field field);

#endif
