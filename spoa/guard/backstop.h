/* The local backstop: a token bucket for each client address in this process's memory, the cheap protection from floods ahead of tokens and shared limits. */
#ifndef SPOA_GUARD_BACKSTOP_H
#define SPOA_GUARD_BACKSTOP_H

#include "common/policy/policy.h"

struct backstop;

/* settings: of a policy that sets one (limit above 0); max_entries clients at most, of which each takes what a key of common/rate's store takes: 55
 * bytes or less. Without clients it takes no more than address space; memory that clients have taken is kept for others until the end. Publisher's
 * thread. */
MUSTUSE bool backstop_new(struct backstop **out, const struct backstop_settings *settings, struct err *e);
/* Whether it was made by these settings, so that what it knows holds for them. */
bool backstop_is_of(const struct backstop *b, const struct backstop_settings *settings);
void backstop_free(struct backstop **b);

/* One request of that client (IPv6: of its /64) at now_ms, of a clock that never runs backwards. Any thread; one short lock. A client that finds no place
 * passes, and is RATE_UNTRACKED: one bucket for all who find none would punish the innocent. */
enum rate_counted backstop_check(struct backstop *b, const struct addr *client, uint64_t now_ms, struct rate_verdict *out);

/* Looks at a part of the clients and forgets those whose bucket is full again, so that no place is held by who has gone; called every second, all are
 * looked at within a minute. Publisher's thread; short locks. Returns how many clients are tracked. */
size_t backstop_sweep(struct backstop *b, uint64_t now_ms);
/* Any thread. */
void backstop_stats(struct backstop *b, struct rate_store_stats *out);

#endif
