/* Rows about policies: a document made by changing a base one, and the faults that it must have. */
#ifndef TESTS_UNIT_POLICY_CASES_H
#define TESTS_UNIT_POLICY_CASES_H

#include "common/policy/policy.h"

/* The row's "document"; without one, tests/cases/policy/<"base", else "full">.json changed by the row's
 *   "set"     {pointer: value}                replaces or adds a member or item
 *   "remove"  [pointer]
 *   "repeat"  {pointer: [text, n]}            a text n times
 *   "fill"    {pointer: [n, item]}            a list of n items, "#" in them being 0, 1, ...
 *   "members" {pointer: [name, n, value]}     n members, "#" in the name being 0, 1, ...
 * The caller owns it. A row that can't be applied ends the test. */
json_t *policy_case_document(const json_t *row);

/* Holds a list against rows {"code","path"} and, where given, "says" (a part of the text), "line", "column": all of them, in that order. */
void policy_case_check_faults(const json_t *row, const char *what, const json_t *wanted, const struct errlist *got);

/* Compiles the row's document; a fault ends the test. */
struct policy *policy_case_compile(const json_t *row);

#endif
