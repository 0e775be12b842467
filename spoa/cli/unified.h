/* The difference of two texts by lines, as `diff -u` shows it. */
#ifndef SPOA_CLI_UNIFIED_H
#define SPOA_CLI_UNIFIED_H

#include <stdio.h>

#include "common/base/str.h"

/* Nothing where the texts are equal. Texts that differ in thousands of lines are shown as one replaced by the other. False: no memory. */
MUSTUSE bool unified_print(FILE *f, const char *old_name, const char *new_name, struct str old, struct str new);

#endif
