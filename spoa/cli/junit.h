/* Results of config tests as JUnit XML, for pipelines that show such files. */
#ifndef SPOA_CLI_JUNIT_H
#define SPOA_CLI_JUNIT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

/* One suite named name, a testcase for each result of report (as of config_tests_run); well-formed XML 1.0 whatever the texts hold. */
void junit_print(FILE *f, const char *name, const json_t *report);

#endif
