/* The canonical form of a policy document: what `fmt` writes and what `diff` compares. */
#ifndef COMMON_POLICY_FORMAT_H
#define COMMON_POLICY_FORMAT_H

#include <stdio.h>

#include "common/base/jx.h"

/* How expressions are given. */
enum format_expressions {
    FORMAT_AS_WRITTEN, /* text stays text, a tree a tree; either canonical */
    FORMAT_AS_TEXT     /* all as canonical text */
};

/* A copy of a document that policy_compile accepts (a bare config or an envelope): the same values, the members of every object in the order of
 * schemas/policy.def, kinds in that of schemas/kinds.def, names in maps as they stand; expressions as above. Nothing is added or left out. The
 * caller owns it; NULL when memory is refused. */
json_t *policy_canonical(const json_t *document, enum format_expressions expressions);

/* Writes a document as text that depends on nothing but its values and their order: two blanks a level, one member or item a line; what holds
 * nothing but single values and lists of such stands in one line where it fits. False when memory is refused; what becomes of the bytes is
 * for the caller to ask (ferror). */
MUSTUSE bool policy_format(const json_t *document, FILE *f);

#endif
