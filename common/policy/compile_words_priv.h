/* Words of the document that stand for something of the request: header names, parts of limit keys, placeholders of header values. */
#ifndef COMMON_POLICY_COMPILE_WORDS_PRIV_H
#define COMMON_POLICY_COMPILE_WORDS_PRIV_H

#include "common/policy/compile_priv.h"

enum name_use { NAME_READ, NAME_WRITTEN };
/* A header name that a rule may read or write: a token that is not reserved and belongs to no source of the deployment. Lower case in *out; false
 * and a fault at j otherwise. */
bool compile_header_name(struct compile *c, const struct jx *j, struct str name, enum name_use use, struct str *out);

/* A vocabulary of such words: rows of key_parts.def or placeholders.def. Those that take a name are "header", "cookie", or take any text. */
struct word_row {
    const char *name;
    bool named;
    enum expr_source source;
};
struct words {
    const struct word_row *rows;
    const char *const *names; /* of the rows, NULL-terminated */
    const char *open, *close; /* what encloses a word as people write it */
    const char *what;         /* completes "... is no ..." */
};
/* text: "host" or "header:<name>". False and a fault at j when it is none, its name is no such name, or the deployment has no source for it. */
bool compile_word(struct compile *c, const struct jx *j, struct str text, const struct words *words, size_t *row, struct str *name);

/* j: a key part, or what a distinct limit counts (wants_distinct). */
bool compile_key_part(struct compile *c, const struct jx *j, bool wants_distinct, struct key_part *out);
bool key_part_eq(const struct key_part *a, const struct key_part *b);
/* Whether the client chooses the part's value freely. */
bool key_part_is_clients(const struct key_part *part);

/* A header value: literal text and placeholders; *out_parts NULL when there was a fault. */
void compile_value(struct compile *c, const struct jx *j, const struct value_part **out_parts, size_t *n_parts);

#endif
