/* What a worker counts besides its connections: rows of schemas/metrics.def, decisions, and refusals for who sent a request. */
#ifndef SPOA_COUNTERS_H
#define SPOA_COUNTERS_H

#include "common/base/counter.h"
#include "common/policy/ingress.h"
#include "common/policy/policy.h"

enum metric {
#define METRIC_ROW(id, name, help) METRIC_##id,
#include "schemas/metrics.def"
#undef METRIC_ROW
    METRIC_N
};

struct counters {
    _Atomic uint64_t plain[METRIC_N];
    _Atomic uint64_t decisions[DECISION_N];
    _Atomic uint64_t identity_refusals[IDENTITY_REFUSAL_N]; /* IDENTITY_OK is not counted */
};

#endif
