/* The language's fields and operators as the tables have them, for `expr --fields`. */
#ifndef SPOA_CLI_EXPR_FIELDS_H
#define SPOA_CLI_EXPR_FIELDS_H

#include <stdio.h>

#include "common/expr/expr.h"

/* For people: one field a paragraph, then the operators. */
void expr_fields_print(FILE *f, const struct expr_deployment *deployment);
/* {"fields": [{"name", "type", "list", "key", "phases", "source", "available", "client", "absent", "operators", "meaning"}],
 *  "operators": [{"name", "call", "set", "negated", "types", "label"}]}. The caller owns it; NULL when memory is refused. */
json_t *expr_fields_json(const struct expr_deployment *deployment);

#endif
