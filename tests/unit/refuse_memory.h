/* Memory that is refused on purpose: each place that takes some is made to fail, one after the other. */
#ifndef TESTS_UNIT_REFUSE_MEMORY_H
#define TESTS_UNIT_REFUSE_MEMORY_H

#include "common/base/str.h"

/* From now on this thread's n-th request for memory, counted from 0, is refused, and no other: takes from arenas, calloc and realloc, values of jansson,
 * the contexts of PCRE2, threads and their values, event loops, digests, streams of files and folders (REFUSABLE in the Makefile). */
void refuse_memory(size_t n);
/* The same without jansson, whose parser calls some refusals faults of the text. */
void refuse_memory_of_ours(size_t n);
/* Back to ordinary. True when one was refused since. */
bool refuse_memory_end(void);

/* Calls attempt(arg, n), which puts refuse_memory(n) and refuse_memory_end() around what it tests and returns what the latter said, for n = 0, 1, ...
 * until nothing is refused any more. Gives the number of refusals. */
size_t refuse_memory_everywhere(bool (*attempt)(void *arg, size_t n), void *arg);

#endif
