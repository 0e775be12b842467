/* Handing policies to workers: a publisher puts a compiled policy into each worker's slot, the worker swaps between requests, and the
 * policy is freed when every worker's last request on it has finished. No lock and no atomic on the request path. */
#ifndef SPOA_LIVE_LEASE_H
#define SPOA_LIVE_LEASE_H

#include <stdatomic.h>

#include "spoa/guard/guard.h"

struct lease_shared; /* a policy, its guard, and the number of workers that still hold them */

/* The publisher's side. released is called on whichever thread lets go last and must only wake the publisher, who then calls
 * lease_reap: taking a large policy apart is no work for a worker. */
struct lease_source {
    struct lease_shared *published;
    void (*released)(void *ctx);
    void *ctx;
};

/* A worker's hold on one policy. Touched by that worker alone. */
struct lease {
    struct lease_shared *shared;
    const struct policy *policy;
    const struct guard *guard; /* its parts change under the hands of all who use them */
    size_t n_requests;
    bool retired; /* a newer policy has replaced it */
    uint64_t number;        /* of the policies that this slot has had: 1, 2, ... */
    uint64_t told_since_us; /* its first ACK to say what it sets for HAProxy's process; 0: none yet */
};

/* One worker's slot. */
struct lease_slot {
    _Atomic(struct lease_shared *) incoming; /* written by the publisher, emptied by the worker */
    struct lease *current;                   /* the worker's; NULL before the first policy */
    uint64_t n_leases;                       /* the worker's: policies it has had */
};

void lease_slot_init(struct lease_slot *slot);

/* Publisher's thread. Takes the policy and its guard over and offers them to all n slots; a policy that a worker had not picked up yet is let go.
 * Wake the workers afterwards. False when memory is refused: nothing has changed, both are still the caller's. */
MUSTUSE bool lease_publish(struct lease_source *source, struct lease_slot *const slots[], size_t n, struct policy *policy, struct guard *guard);
/* Publisher's thread: the guard of the policy that was published last; NULL before the first one. */
const struct guard *lease_newest_guard(const struct lease_source *source);
/* Publisher's thread: frees the policies that nobody holds, with their guards. */
void lease_reap(struct lease_source *source);
/* Publisher's thread: policies that are not freed yet. */
size_t lease_n_published(const struct lease_source *source);

/* Worker's thread, outside of any request: makes an offered policy the current one. False when memory is refused: the offer
 * stays for the next call. */
bool lease_refresh(struct lease_slot *slot);
/* For one request; NULL before the first policy. */
struct lease *lease_take(struct lease_slot *slot);
void lease_put(struct lease *lease);
/* At the end of the worker, when no request is left: lets go of the current and the offered policy. */
void lease_slot_release(struct lease_slot *slot);

#endif
