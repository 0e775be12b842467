/* Inside common/expr: the vocabulary of the tables, the tree, and what its readers and writers share. */
#ifndef COMMON_EXPR_EXPR_PRIV_H
#define COMMON_EXPR_EXPR_PRIV_H

#include "common/expr/expr.h"

/* ---- vocabulary (vocab.c): rows of schemas/fields.def and schemas/operators.def ---- */

enum { T_STRING = 1, T_INT = 2, T_IP = 4, T_BOOL = 8 };

enum field {
#define FIELD_ROW(id, name, type, keyed, phases, client_controlled, meaning) FIELD_##id,
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

struct field_info {
    const char *name;
    unsigned type; /* one of T_* */
    bool keyed;
    unsigned phases; /* of enum expr_phase */
};

struct operator_info {
    const char *name;
    bool call, set, negated;
    unsigned types; /* any of T_* */
};

const struct field_info *field_info(enum field f);
const struct operator_info *operator_info(enum op op);
/* Exact names. False when there is none; *out is untouched then. */
bool field_find(struct str name, enum field *out);
bool operator_find(struct str name, enum op *out);

/* What to say about a name that is none: "did you mean ...?", or all names when none is near. Each sets e and returns
 * false, with path "". */
bool field_unknown(struct str name, struct err *e);
bool operator_unknown(struct str name, struct err *e);
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

/* One literal. A field of type T_IP has addresses, every other one strings. */
struct value {
    struct str text;         /* as written, without quotes and escapes */
    struct addr_range range; /* of addresses */
    struct pos pos;
};

struct condition {
    enum field field;
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

/* Sets v->range from v->text, which stands behind op for a field of type T_IP: an address, or in a set also a CIDR or
 * `first..last`. */
MUSTUSE bool value_read_addresses(struct value *v, enum op op, struct err *e);

#endif
