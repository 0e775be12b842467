/* The breaker: a count of failures in a row, and the time until which nobody calls. */
#include "spoa/store/breaker.h"

void breaker_init(struct breaker *b)
{
    atomic_init(&b->n_failures, 0);
    atomic_init(&b->open_until_us, 0);
    atomic_init(&b->n_opened, 0);
}

/* The probe belongs to whoever moves the end of the rest: it lies a whole rest ahead again before the probe has left, so a probe that fails
 * needs no further step, and one that never reports costs one rest. */
bool breaker_allow(struct breaker *b, uint64_t now_us)
{
    uint64_t until_us = atomic_load_explicit(&b->open_until_us, memory_order_relaxed);

    if (until_us == 0)
        return true;
    if (now_us < until_us)
        return false;
    /* A failed exchange leaves what another worker has made of it: 0 is closed, anything else a rest that has just begun. */
    return atomic_compare_exchange_strong(&b->open_until_us, &until_us, now_us + BREAKER_REST_US) || until_us == 0;
}

void breaker_success(struct breaker *b)
{
    /* Most calls find nothing to change, and the workers then share the line without writing to it. */
    if (atomic_load_explicit(&b->n_failures, memory_order_relaxed) != 0)
        atomic_store(&b->n_failures, 0);
    if (atomic_load_explicit(&b->open_until_us, memory_order_relaxed) != 0)
        atomic_store(&b->open_until_us, 0);
}

void breaker_failure(struct breaker *b, uint64_t now_us)
{
    uint64_t closed = 0;

    if (atomic_fetch_add(&b->n_failures, 1) + 1 < BREAKER_FAILURES)
        return;
    /* While it is open, failures of calls that were under way do not move the next probe. */
    if (atomic_compare_exchange_strong(&b->open_until_us, &closed, now_us + BREAKER_REST_US))
        atomic_fetch_add_explicit(&b->n_opened, 1, memory_order_relaxed);
}

bool breaker_is_open(const struct breaker *b)
{
    return atomic_load_explicit(&b->open_until_us, memory_order_relaxed) != 0;
}
