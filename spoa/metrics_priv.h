/* Families of /metrics: what schemas/metrics.def says of them, and who writes which (metrics.c, metrics_counts.c, metrics_workers.c, metrics_store.c). */
#ifndef SPOA_METRICS_PRIV_H
#define SPOA_METRICS_PRIV_H

#include "common/base/metrics.h"
#include "spoa/record/counts.h"

struct agent;

enum family {
#define METRIC_FAMILY(id, name, type, label, label2, when, stability, help) FAMILY_##id,
#include "schemas/metrics.def"
    FAMILY_N
};

/* Begins a family: its name, type and help are the table's. */
void family_begin(struct metrics *m, enum family f);
/* A series of the family that was begun; value and value2 of its labels, NULL for those that it has not. */
void family_put(struct metrics *m, enum family f, const char *value, const char *value2, double number);
/* The whole of a family without labels. */
void family_put_one(struct metrics *m, enum family f, double number);

/* Sums one counter over the workers; offset is its place in struct worker. */
double metrics_sum(const struct agent *a, size_t offset);

void metrics_put_counts(struct metrics *m, struct counts *c);
void metrics_put_workers(struct metrics *m, const struct agent *a);
void metrics_put_store(struct metrics *m, const struct agent *a);
void metrics_put_spop(struct metrics *m, const struct agent *a);

/* Holds the largest page: the rules of all versions that are counted apart, each with six outcomes, and every status of both origins. */
enum {
    METRICS_RULE_BYTES = 6 * 160, /* "edge_ratelimit_rule_total{rule=...,outcome="would_limit"} ..." with an id of 64 bytes and a number of 20 */
    METRICS_STATUS_BYTES = 80,
    METRICS_OTHER_BYTES = 64 * 1024,
    METRICS_MAX_BYTES = COUNTS_VERSIONS_MAX * COUNTS_RULES_MAX * METRICS_RULE_BYTES + 2 * (OUTCOME_STATUS_MAX + 1) * METRICS_STATUS_BYTES + METRICS_OTHER_BYTES
};

#endif
