/* Inside common/expr: what literals and keys are held to. */
#ifndef COMMON_EXPR_LITERAL_PRIV_H
#define COMMON_EXPR_LITERAL_PRIV_H

#include "common/expr/expr_priv.h"

/* ---- form: what any deployment refuses (literals.c) ---- */

/* Reads v->text, a literal of field f behind op, into the union; of a string it looks at wildcards only. False and a
 * fault in e (path "", no position) when it has not the form that the field's type or the operator takes. */
MUSTUSE bool literal_read(struct value *v, enum field f, enum op op, struct err *e);
/* What literals of f look like, for messages: "a string in quotes", "a whole number such as 5". */
const char *literal_form(enum field f);
/* key is what f is written with, or p NULL when there is none. False and a fault in e (path "", no position) when f
 * needs one and has none, takes none and has one, or when nothing in a request can have that name. */
MUSTUSE bool literal_key_ok(enum field f, struct str key, struct err *e);

/* ---- meaning: what the field can never have (meaning.c) ---- */

/* Which part of the field's value a text is compared with. A negated operator is the negation of its positive form, so
 * its literal is held to the same rules: a `ne` that is always true is as dead as an `eq` that never is. */
enum part { WHOLE, BEGINNING, ENDING, INSIDE };

/* Why s is that part of no value of f, and what would be right; NULL: it can be. folded: upper and lower case are the
 * same, and s is lower case. */
const char *meaning_refuses(enum field f, struct str s, enum part part, bool folded);
/* The same of a whole number behind op. */
const char *meaning_refuses_int(enum field f, const struct value *v, enum op op);
/* Whether a path, or an address that begins with one, lacks the slash it begins with: all that documents of schema 1 are
 * warned of and not refused for. */
bool meaning_lacks_slash(enum field f, struct str s, enum part part);
/* Whether some HTTP version has s as that part. */
bool meaning_is_version(struct str s, enum part part);

/* Fingerprints, countries and continents: texts of one length whose every byte is of a class (fingerprint.c). */
bool shape_ja3_has(struct str s, enum part part, bool folded);
bool shape_ja4_has(struct str s, enum part part, bool folded);
bool shape_country_has(struct str s, enum part part, bool folded);

/* ---- contradictions (contradiction.c) ---- */

/* Whether x is proven never to be true: by two conditions that no request meets together, or by `not true`. *at is the
 * condition that contradicts one before it, NULL when none did; text says what contradicts what. False when it may be
 * true, or memory is refused. */
bool contradiction_find(const struct expr *x, const struct condition **at, struct buf *text);

#endif
