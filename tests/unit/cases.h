/* Rows of data from tests/cases: loading a table, reading a row's members, and failing with the row printed. */
#ifndef TESTS_UNIT_CASES_H
#define TESTS_UNIT_CASES_H

#include <jansson.h>

#include "common/base/str.h"

/* An array with at least one row; anything else ends the test. The caller owns it (json_decref). */
json_t *cases_load(const char *file);

/* A text member, borrowed from the row; STR_NONE when it is absent. */
struct str case_str(const json_t *row, const char *name);
/* A member that holds bytes as hex digits, decoded into out; one that does not fit or is no hex ends the test. */
struct str case_bytes(const json_t *row, const char *name, char *out, size_t cap);

/* Counts as an assertion of the running test; when it fails, its report names the row and what was found instead. */
bool case_check(bool ok, const json_t *row, const char *what, struct str got, const char *file, unsigned line);
#define CASE_CHECK(row, condition) case_check((condition), (row), #condition, STR_NONE, __FILE__, __LINE__)
#define CASE_CHECK_GOT(row, condition, got) case_check((condition), (row), #condition, (got), __FILE__, __LINE__)

#endif
