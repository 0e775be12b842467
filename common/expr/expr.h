/* The expression language: text or JSON AST in, a checked tree, its canonical text, and a flat program that decides
 * without allocation. The one public header of this folder; the vocabulary is schemas/fields.def and
 * schemas/operators.def. */
#ifndef COMMON_EXPR_EXPR_H
#define COMMON_EXPR_EXPR_H

#include "common/base/arena.h"
#include "common/base/err.h"
#include "common/base/jx.h"
#include "common/net/addr.h"

enum { EXPR_TEXT_MAX = 4096, EXPR_CONDITIONS_MAX = 32, EXPR_NESTING_MAX = 8 };

enum expr_phase { EXPR_CONFIG = 1, EXPR_RATE = 2, EXPR_HEADERS = 4 };

struct expr; /* an AST in the arena it was read into; immutable */

/* Text as people write it. Names, operators that the field's type does not take and the form of literals are refused
 * here. Errors carry line and column (bytes, from 1; 0 when the whole text is too long) and, for a mistyped name, a
 * suggestion; path is "". */
MUSTUSE bool expr_parse(struct str text, struct arena *a, const struct expr **out, struct err *e);
/* Text or AST JSON ({"combinator","not","rules"} or {"field","key","operator","value"}), strictly, with the same
 * refusals; faults go to the document's list at the place they stand. NULL when there was one. Other ways to write the
 * same tree than the canonical one (a group of one, a negated group around a group) become canonical. */
const struct expr *expr_decode(const struct jx *j, struct arena *a);
/* Canonical text, at most EXPR_TEXT_MAX bytes; parse(render(x)) is x. */
void expr_render(const struct expr *x, struct buf *out);
/* Canonical AST; the caller owns it. NULL when memory is refused. */
json_t *expr_to_json(const struct expr *x);
bool expr_equal(const struct expr *a, const struct expr *b);
/* The literal `true` and no other tautology: the only site-wide form. */
bool expr_is_true(const struct expr *x);
/* `true` is none. */
size_t expr_n_conditions(const struct expr *x);

/* Meaning (phase, literals that the field can never have): every fault is added at path, below it at the member's own
 * place when x came from AST JSON, else with line and column. False when there was one. */
MUSTUSE bool expr_check(const struct expr *x, enum expr_phase phase, const char *path, struct errlist *errors);

/* A phase's programs; equal predicates of all of them are one, evaluated when first reached. Built once, then
 * immutable. */
struct expr_set;
MUSTUSE bool expr_set_new(struct arena *a, struct expr_set **out);
/* x must have passed expr_check. *program: its number in this set, from 0. */
MUSTUSE bool expr_set_add(struct expr_set *set, const struct expr *x, size_t *program);
size_t expr_set_n_predicates(const struct expr_set *set);

/* What a request looks like to expressions. Bytes are borrowed for as long as the run lasts. */
struct expr_facts {
    struct str host, method, path; /* normalised */
    struct addr ip;
    bool has_ip;
};

enum match { MATCH_NO, MATCH_YES, MATCH_ERROR };

/* One request's evaluation of one set: remembers which predicates are known. */
struct expr_run {
    const struct expr_set *set;
    const struct expr_facts *facts;
    uint8_t *memo; /* one byte a predicate: 0 unknown, else 1 + enum match */
};
/* Takes expr_set_n_predicates bytes from a. */
MUSTUSE bool expr_run_init(struct expr_run *run, const struct expr_set *set, const struct expr_facts *facts,
                           struct arena *a);
enum match expr_run(struct expr_run *run, size_t program);

#endif
