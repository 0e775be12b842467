/* What the tests of expressions share: an arena and lists of faults and warnings, all emptied after each row, and reading rows. */
#ifndef TESTS_UNIT_EXPR_ROWS_H
#define TESTS_UNIT_EXPR_ROWS_H

#include <jansson.h>

#include "common/expr/expr.h"

extern struct arena expr_arena;
extern struct errlist expr_errors, expr_warnings;

/* A suite's set-up and clean-up. */
int expr_set_up(void);
int expr_tear_down(void);
void expr_forget(void);

void expr_each_row(const char *file, void (*check)(const json_t *row));
/* Faults go to expr_errors. */
const struct expr *expr_row_decode(const json_t *value);
unsigned expr_row_number(const json_t *row, const char *name);
bool expr_row_says(const struct err *e, const json_t *wanted);
/* The faults noted are the row's "errors", in order: codes, places and what the words hold. */
void expr_row_check_errors(const json_t *row, bool with_position);

/* The same of any list and member; a member that is absent is an empty one. */
void expr_row_check_list(const json_t *row, const char *member, const struct errlist *list, bool with_position);
/* The row's "deployment": {"sources": [names], "allow_regex", "unreadable": [names]}; without it expr_deployment_any. */
struct expr_deployment expr_row_deployment(const json_t *row);

#endif
