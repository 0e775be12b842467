/* Counters of ended requests with policies and records made here, for the tests of the pages that show them. */
#ifndef TESTS_UNIT_COUNTED_H
#define TESTS_UNIT_COUNTED_H

#include "spoa/record/counts.h"

/* Opens counters in a folder of their own. */
bool counted_init(struct counts **out);
void counted_release(struct counts **c);

/* A policy of that version with rules one to a phase, "shut", "login" and "tag". */
void counted_prepare(struct counts *c, int64_t version);
/* One ended request of version 7, as a record says it: rec's lists, and how it ended. */
void counted_add(struct counts *c, const struct rec *rec, enum decision decision, enum origin origin, unsigned status, uint64_t latency_ms);

/* As many versions as are counted apart, each with as many rules as a policy may have, of the longest ids and all their own; each outcome of each
 * rule and every status of both origins is above zero. Returns the number of rules. */
size_t counted_fill(struct counts *c);

#endif
