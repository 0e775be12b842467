/* The breaker of one Valkey node, shared by all workers: after BREAKER_FAILURES failures in a row the node is left alone for BREAKER_REST_US,
 * then one call may try it; its success closes the breaker, otherwise the next try comes after another rest. Atomics only, no lock. */
#ifndef SPOA_STORE_BREAKER_H
#define SPOA_STORE_BREAKER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { BREAKER_FAILURES = 5, BREAKER_REST_US = 1000000 };

struct breaker {
    _Atomic uint32_t n_failures;    /* in a row */
    _Atomic uint64_t open_until_us; /* 0: closed */
    _Atomic uint64_t n_opened;      /* for metrics: times it opened from closed */
};

void breaker_init(struct breaker *b);
/* May a call be made now? Once a rest has passed, exactly one caller gets true and has the probe. now_us: never runs backwards. */
bool breaker_allow(struct breaker *b, uint64_t now_us);
/* Of a call that breaker_allow let through, answered in time or not. A call that ends in neither way (its answer belongs to its caller, as an
 * error about one key does) reports success: the node answers. */
void breaker_success(struct breaker *b);
void breaker_failure(struct breaker *b, uint64_t now_us);
/* For metrics. */
bool breaker_is_open(const struct breaker *b);

#endif
