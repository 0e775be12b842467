/* What an expression costs: how much of the limits it takes, and which requests pass it by. */
#ifndef SPOA_CLI_EXPR_COST_H
#define SPOA_CLI_EXPR_COST_H

#include <stdio.h>

#include "common/expr/expr.h"

struct expr_cost {
    size_t n_conditions, n_predicates, n_bytes;
    bool skipped; /* the index leaves it out for requests that can't match */
};

/* x has passed expr_check. False: no memory. */
MUSTUSE bool expr_cost_measure(const struct expr *x, size_t n_bytes, struct arena *a, struct expr_cost *out);
void expr_cost_print(FILE *f, const struct expr_cost *c);
/* {"conditions", "conditions_max", "predicates", "text_bytes", "text_bytes_max", "indexed"}. The caller owns it; NULL when memory is refused. */
json_t *expr_cost_json(const struct expr_cost *c);

#endif
