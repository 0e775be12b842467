/* fail_mode local: while the shared store can't be asked, a rule is counted in this process at its share of the limit. The memory is bounded
 * and split evenly between the rules, so that a rule whose keys clients choose can fill only its own part. */
#ifndef COMMON_RATE_SHARES_H
#define COMMON_RATE_SHARES_H

#include "common/rate/rate.h"

enum { RATE_SHARES_KEYS_MAX = 100000, RATE_SHARES_FLEET_MAX = 10000 };

struct rate_shares;

/* max_keys: of all rules together, 1..RATE_SHARES_KEYS_MAX. */
MUSTUSE bool rate_shares_new(struct rate_shares **out, size_t max_keys, struct err *e);
void rate_shares_free(struct rate_shares **s);

/* The ids of the rules that count locally (distinct, at most POLICY_RULES_MAX; copied), given whenever a policy is published. Counts survive by
 * id, so that a publish during an outage resets nothing; they start fresh when the number of rules changes, because then the parts do. One
 * thread at a time; others may check meanwhile. False: no memory, or an id twice; nothing has changed. */
MUSTUSE bool rate_shares_set(struct rate_shares *s, const struct str *ids, size_t n, struct err *e);

/* Charges call at 1/fleet_size (taken as 1..RATE_SHARES_FLEET_MAX) of its limit, exactly, and of its burst, rounded down to at least 1. Counts
 * go on when the fleet changes its size. Any thread; a short lock. now_ms: from a clock that never runs backwards. False:
 * rule_id is not among the rules set (a policy that is just being published): nothing was counted. */
MUSTUSE bool rate_shares_check(struct rate_shares *s, struct str rule_id, struct rate_call *call, uint64_t fleet_size, uint64_t now_ms);
size_t rate_shares_n_keys(struct rate_shares *s);

#endif
