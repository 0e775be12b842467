/* Prometheus text exposition (0.0.4): HELP and TYPE once a family, suffix and label rules, escaping, no duplicate series. */
#ifndef COMMON_BASE_METRICS_H
#define COMMON_BASE_METRICS_H

#include "common/base/str.h"

enum metric_type { METRIC_COUNTER, METRIC_GAUGE };

/* Grows up to max_bytes. A scrape that does not fit fails as a whole, and so does one that breaks a rule of the format:
 * a bad name, a counter without _total (or a gauge with it), a family or series given twice, a sample without a family. */
struct metrics {
    char *p;
    size_t len, cap, max_bytes;
    bool failed;
    const char *family; /* the family that samples belong to now */
    size_t family_at;   /* where its samples begin */
};

void metrics_init(struct metrics *m, size_t max_bytes);
void metrics_release(struct metrics *m);

/* Starts a family; all its samples follow before the next family starts. name must live as long. */
void metrics_family(struct metrics *m, const char *name, enum metric_type type, const char *help);
/* labels: pairs name, value, ..., NULL (values of any bytes are escaped; what is not UTF-8 becomes U+FFFD). */
void metrics_sample(struct metrics *m, double value, const char *const *labels);

#endif
