/* Prometheus text exposition (0.0.4): HELP and TYPE once a family, suffix and label rules, histograms, escaping, no duplicate series. */
#ifndef COMMON_BASE_METRICS_H
#define COMMON_BASE_METRICS_H

#include "common/base/str.h"

enum metric_type { METRIC_COUNTER, METRIC_GAUGE, METRIC_HISTOGRAM };

struct metrics_key;

/* Grows up to max_bytes, and with the number of series. A scrape that does not fit fails as a whole, and so does one that breaks a rule of the
 * format: a bad name, a counter without _total (or another with it), a family or series given twice, a sample without a family or of another type. */
struct metrics {
    char *p;
    size_t len, cap, max_bytes;
    bool failed;
    const char *family; /* the family that samples belong to now */
    enum metric_type type;
    struct metrics_key *keys; /* names of families and series so far, by hash */
    size_t n_keys, n_slots;
};

void metrics_init(struct metrics *m, size_t max_bytes);
void metrics_release(struct metrics *m);
/* The text, malloc'd, is the caller's from here on; the rest is released. NULL when the scrape has failed. */
MUSTUSE char *metrics_take(struct metrics *m, size_t *len);

/* Starts a family; all its samples follow before the next family starts. name must live as long. */
void metrics_family(struct metrics *m, const char *name, enum metric_type type, const char *help);
/* labels: pairs name, value, ..., NULL (values of any bytes are escaped; what is not UTF-8 becomes U+FFFD). Not of a histogram. */
void metrics_sample(struct metrics *m, double value, const char *const *labels);
/* All of a histogram without labels: bounds are n upper limits as text, finite numbers that rise; counts are n + 1, each of its own bucket alone,
 * the last of what is above all bounds. Written are cumulative buckets and _count; there is no _sum where only buckets are counted. */
void metrics_histogram(struct metrics *m, const char *const *bounds, const uint64_t *counts, size_t n);

#endif
