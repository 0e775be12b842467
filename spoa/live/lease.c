/* Policies in the hands of workers, counted once per worker instead of once per request. */
#include "spoa/live/lease.h"

#include <stdlib.h>

struct lease_shared {
    struct policy *policy;
    struct guard *guard;
    atomic_size_t n_holders;
    const struct lease_source *source;
    struct lease_shared *next; /* older one of the source's list */
};

/* After the last put the publisher may free shared at any moment. */
static void shared_put(struct lease_shared *shared)
{
    if (shared == NULL)
        return;
    const struct lease_source *source = shared->source;
    if (atomic_fetch_sub_explicit(&shared->n_holders, 1, memory_order_acq_rel) == 1)
        source->released(source->ctx);
}

static void lease_free(struct lease *lease)
{
    shared_put(lease->shared);
    free(lease);
}

void lease_slot_init(struct lease_slot *slot)
{
    atomic_init(&slot->incoming, NULL);
    slot->current = NULL;
    slot->n_leases = 0;
}

bool lease_publish(struct lease_source *source, struct lease_slot *const slots[], size_t n, struct policy *policy, struct guard *guard)
{
    struct lease_shared *shared = calloc(1, sizeof *shared);
    if (shared == NULL)
        return false;
    shared->policy = policy;
    shared->guard = guard;
    atomic_init(&shared->n_holders, n);
    shared->source = source;
    shared->next = source->published;
    source->published = shared;
    for (size_t i = 0; i < n; i++)
        shared_put(atomic_exchange_explicit(&slots[i]->incoming, shared, memory_order_acq_rel));
    return true;
}

const struct guard *lease_newest_guard(const struct lease_source *source)
{
    return source->published != NULL ? source->published->guard : NULL;
}

void lease_reap(struct lease_source *source)
{
    struct lease_shared **at = &source->published;
    while (*at != NULL) {
        struct lease_shared *shared = *at;
        if (atomic_load_explicit(&shared->n_holders, memory_order_acquire) != 0) {
            at = &shared->next;
            continue;
        }
        *at = shared->next;
        policy_free(&shared->policy);
        guard_free(&shared->guard);
        free(shared);
    }
}

size_t lease_n_published(const struct lease_source *source)
{
    size_t n = 0;
    for (const struct lease_shared *shared = source->published; shared != NULL; shared = shared->next)
        n++;
    return n;
}

bool lease_refresh(struct lease_slot *slot)
{
    if (atomic_load_explicit(&slot->incoming, memory_order_relaxed) == NULL)
        return true;
    struct lease *fresh = calloc(1, sizeof *fresh);
    if (fresh == NULL)
        return false;
    fresh->shared = atomic_exchange_explicit(&slot->incoming, NULL, memory_order_acq_rel);
    fresh->policy = fresh->shared->policy;
    fresh->guard = fresh->shared->guard;
    fresh->number = ++slot->n_leases;

    struct lease *old = slot->current;
    slot->current = fresh;
    if (old != NULL) {
        old->retired = true;
        if (old->n_requests == 0)
            lease_free(old);
    }
    return true;
}

struct lease *lease_take(struct lease_slot *slot)
{
    if (slot->current != NULL)
        slot->current->n_requests++;
    return slot->current;
}

void lease_put(struct lease *lease)
{
    lease->n_requests--;
    if (lease->retired && lease->n_requests == 0)
        lease_free(lease);
}

void lease_slot_release(struct lease_slot *slot)
{
    shared_put(atomic_exchange_explicit(&slot->incoming, NULL, memory_order_acq_rel));
    if (slot->current != NULL)
        lease_free(slot->current);
    slot->current = NULL;
}
