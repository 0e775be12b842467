/* A counter that one thread adds to and any thread reads: no locked instruction on the request path. */
#ifndef COMMON_BASE_COUNTER_H
#define COMMON_BASE_COUNTER_H

#include <stdatomic.h>
#include <stdint.h>

static inline void counter_add(_Atomic uint64_t *counter, uint64_t n)
{
    atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + n, memory_order_relaxed);
}

static inline uint64_t counter_get(const _Atomic uint64_t *counter)
{
    return atomic_load_explicit(counter, memory_order_relaxed);
}

#endif
