/* What /metrics says of ended requests. The rest of the page is the agent's own (metrics_priv.h). */
#ifndef SPOA_METRICS_H
#define SPOA_METRICS_H

#include "common/base/metrics.h"
#include "spoa/record/counts.h"

/* Holds the largest page: the rules of all versions that are counted apart, each with six outcomes, and every status of both origins. */
enum {
    METRICS_RULE_BYTES = 6 * 160, /* "edge_ratelimit_rule_total{rule=...,outcome="would_limit"} ..." with an id of 64 bytes and a number of 20 */
    METRICS_STATUS_BYTES = 80,
    METRICS_OTHER_BYTES = 64 * 1024,
    METRICS_MAX_BYTES = COUNTS_VERSIONS_MAX * COUNTS_RULES_MAX * METRICS_RULE_BYTES + 2 * (OUTCOME_STATUS_MAX + 1) * METRICS_STATUS_BYTES + METRICS_OTHER_BYTES
};

/* Families of responses, decisions, latency and rules. Any thread. */
void metrics_put_counts(struct metrics *m, struct counts *c);

#endif
