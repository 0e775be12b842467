/* Families of /metrics about where rate limits are counted. */
#include "spoa/agent_priv.h"
#include "spoa/metrics_priv.h"

static void put_embedded(struct metrics *m, const struct agent *a)
{
    struct rate_store_stats stats;
    rate_store_stats(a->store, &stats);
    family_put_one(m, FAMILY_KEYS, (double) stats.n_keys);
    family_put_one(m, FAMILY_KEYS_MAX, (double) stats.max_keys);
    family_put_one(m, FAMILY_KEYS_MEMORY, (double) stats.memory_bytes);
    family_put_one(m, FAMILY_KEYS_EXPIRED, (double) stats.n_expired);
}

static void put_valkey(struct metrics *m, const struct agent *a)
{
    struct store_state state;
    agent_store_state(a, &state);
    family_put_one(m, FAMILY_KEYS, (double) rate_shares_n_keys(a->shares));
    family_put_one(m, FAMILY_VALKEY_CONNECTED, (double) agent_store_n_connected(a));
    family_put_one(m, FAMILY_VALKEY_BREAKER_OPEN, breaker_is_open(&a->node.breaker) ? 1 : 0);
    family_put_one(m, FAMILY_VALKEY_BREAKER_OPENED, (double) atomic_load(&a->node.breaker.n_opened));
    family_begin(m, FAMILY_VALKEY_CALLS);
    for (size_t i = 0; i < STORE_OUTCOME_N; i++)
        family_put(m, FAMILY_VALKEY_CALLS, store_outcome_name((enum store_outcome) i), NULL,
                   metrics_sum(a, offsetof(struct worker, valkey_counters.calls) + i * sizeof(_Atomic uint64_t)));
    family_put_one(m, FAMILY_VALKEY_CLOCK_SKEW, (double) state.clock_skew_ms / 1000);
    family_put_one(m, FAMILY_VALKEY_CONNECTS, metrics_sum(a, offsetof(struct worker, valkey_counters.n_connects)));
    family_put_one(m, FAMILY_VALKEY_CONNECT_FAILURES, metrics_sum(a, offsetof(struct worker, valkey_counters.n_connect_failures)));
    family_put_one(m, FAMILY_VALKEY_NOSCRIPT, metrics_sum(a, offsetof(struct worker, valkey_counters.n_noscript)));
}

void metrics_put_store(struct metrics *m, const struct agent *a)
{
    struct store_state state;
    agent_store_state(a, &state);
    family_begin(m, FAMILY_STORE);
    family_put(m, FAMILY_STORE, state.kind, NULL, 1);
    if (a->is_shared)
        put_valkey(m, a);
    else
        put_embedded(m, a);
}
