/* What the tests of queries and cookies share: rows with the pairs that come out. */
#ifndef TESTS_UNIT_PAIR_ROWS_H
#define TESTS_UNIT_PAIR_ROWS_H

#include <jansson.h>

#include "common/base/arena.h"
#include "common/http/pairs.h"

void pair_rows_each(const char *file, void (*check)(const json_t *row, struct arena *a));
/* The row's "pairs" [["name", "value"]...], or "pairs_hex" with both as hex digits, in order. */
void pair_rows_check(const json_t *row, const struct pairs *pairs);

#endif
