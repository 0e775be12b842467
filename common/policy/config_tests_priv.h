/* The parts of config tests: expectations are read, compared, and failures explained. */
#ifndef COMMON_POLICY_CONFIG_TESTS_PRIV_H
#define COMMON_POLICY_CONFIG_TESTS_PRIV_H

#include "common/policy/config_tests.h"
#include "common/policy/simulate_priv.h"

/* The lists of rules in a result. */
extern const char *const config_tests_lists[]; /* NULL behind the last */

/* Notes every fault of what a test expects. */
void config_tests_check_expect(const struct jx *expect);
/* Failures of a result, in the order of expect, which has no fault. NULL: no memory. */
json_t *config_tests_compare(const json_t *expect, const json_t *result);
/* Adds "rules" to the failures of lists of rules, of settings that a rule set, and of a block. explained: the result with its explanation. False: no memory. */
MUSTUSE bool config_tests_explain(json_t *failures, const json_t *explained);

#endif
