/* The page /stats of an agent's internal listener: what was counted of each policy version, as JSON, for who looks into one agent. */
#ifndef SPOA_STATS_H
#define SPOA_STATS_H

#include "spoa/record/counts.h"

enum {
    STATS_RULE_BYTES = 320, /* an id of 64 bytes and six counts with their names */
    STATS_OTHER_BYTES = 64 * 1024, /* of a version: every status of both origins, decisions, latency, most limited subjects */
    STATS_PAGE_MAX = COUNTS_VERSIONS_MAX * (COUNTS_RULES_MAX * STATS_RULE_BYTES + STATS_OTHER_BYTES) + 4096
};

/* Appends {"agent", "records_lost", "rules_left_out", "versions": [{"config_version", "cohort", "requests", "status_codes", "decisions",
 * "upstream_errors", "latency", "rules", "most_limited"}]}: all since the counters' file was made, of versions that are counted apart. What is zero is left
 * out of an object of counts; latency is not cumulative. False: no memory, or it does not fit. Any thread. */
MUSTUSE bool stats_put(struct buf *out, struct counts *c, unsigned agent);

#endif
