/* Failures of config tests as lines that people read. */
#ifndef SPOA_CLI_TEST_TEXT_H
#define SPOA_CLI_TEST_TEXT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

/* "PATH: expected X, got Y; RULE: why; ...", without a line end. The caller frees it; NULL: no memory. */
char *test_text_failure(const json_t *failure);
/* Text that is shown on a terminal: control characters become '?'. */
void test_text_print(FILE *f, const char *text);

#endif
