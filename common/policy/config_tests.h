/* Config tests: requests with what must come of them, decided by the same simulation as everything else. Pure functions of documents. */
#ifndef COMMON_POLICY_CONFIG_TESTS_H
#define COMMON_POLICY_CONFIG_TESTS_H

#include "common/policy/simulate.h"

enum { CONFIG_TESTS_MAX = 10000 };

struct config_tests_options {
    const struct expr_deployment *deployment; /* as of simulate_options */
    const json_t *document;                   /* what the policy was compiled from, for the reasons of failures */
    const char *pattern;                      /* shell wildcard over names: which tests run. NULL: all */
};

struct config_tests_summary {
    size_t n_passed, n_failed;   /* of the tests that ran */
    size_t n_rules, n_covered; /* enabled rules, and how many of them some test that ran reached */
};

/* tests: a list of objects TEST of schemas/policy.def, strictly: every fault of every test, whether it is to run or not, is noted at its place and
 * gives false. An issuer that the policy does not have is one; a rule that it does not have only fails the test that expects it.
 *
 * Only what a test lists is compared: lists in order, settings, response kinds and headers one by one; header names in any case, null or []: the header
 * is absent, ["a"] is "a"; durations by value.
 *
 * *report, which the caller owns: {"passed", "failed", "results": [{"name", "ok", "failures": [{"path", "want", "got"}]}], "uncovered_rules": [ids]}. path:
 * JSON pointer into what simulate prints. A failure of a list of rules, of a setting that a rule set, or of a block also has "rules": [{"id", "reason"}],
 * what is missing, too much or set it, and the condition that decided it as a sentence. A rule is covered when its id is in one of simulate's lists; a
 * limit also when it matches and counts answers, or refuses the request for want of its key. */
MUSTUSE bool config_tests_run(const struct policy *p, const struct config_tests_options *options, const struct jx *tests, json_t **report,
                              struct config_tests_summary *summary);

#endif
