/* Counters of one thread: only that thread adds, any thread reads; no locked instruction on the request path. */
#ifndef SPOA_COUNTERS_H
#define SPOA_COUNTERS_H

#include <stdatomic.h>
#include <stdint.h>

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
};

static inline void counter_add(_Atomic uint64_t *counter, uint64_t n)
{
    atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + n, memory_order_relaxed);
}

static inline uint64_t counter_get(const _Atomic uint64_t *counter)
{
    return atomic_load_explicit(counter, memory_order_relaxed);
}

#endif
