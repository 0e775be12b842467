/* What a worker counts besides its connections: METRIC_WORKER rows of schemas/metrics.def, and refusals for who sent a request. */
#ifndef SPOA_COUNTERS_H
#define SPOA_COUNTERS_H

#include "common/base/counter.h"
#include "common/policy/ingress.h"

enum metric {
#define METRIC_WORKER(id, name, stability, help) METRIC_##id,
#include "schemas/metrics.def"
    METRIC_N
};

struct counters {
    _Atomic uint64_t plain[METRIC_N];
    _Atomic uint64_t identity_refusals[IDENTITY_REFUSAL_N]; /* IDENTITY_OK is not counted */
};

#endif
