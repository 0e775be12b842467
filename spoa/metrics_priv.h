/* Families of /metrics: what schemas/metrics.def says of them, and who writes which (metrics.c, metrics_counts.c, metrics_workers.c, metrics_store.c). */
#ifndef SPOA_METRICS_PRIV_H
#define SPOA_METRICS_PRIV_H

#include "spoa/metrics.h"

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

void metrics_put_workers(struct metrics *m, const struct agent *a);
void metrics_put_store(struct metrics *m, const struct agent *a);
void metrics_put_spop(struct metrics *m, const struct agent *a);

#endif
