/* Inside common/expr: what people write who know another language, and what it is called here. */
#ifndef COMMON_EXPR_HINTS_PRIV_H
#define COMMON_EXPR_HINTS_PRIV_H

#include "common/expr/lexer_priv.h"

/* Whether word holds an operator made of signs, such as == or &&: then a fault at its place in e says what to write. */
bool hint_signs(const struct token *word, struct err *e);
/* Whether word, which stands where "and" or "or" could, is one of them written another way; as above. */
bool hint_joint(const struct token *word, struct err *e);
/* Whether word, which stands where a condition begins, is a keyword out of place or written another way; as above. */
bool hint_condition(const struct token *word, struct err *e);
/* The field that another name is in common use for, or NULL. */
const char *hint_field(struct str name);
/* The operator that another word is in common use for, or NULL. */
const char *hint_operator(struct str name);

#endif
