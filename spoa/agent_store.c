/* Where an agent's rate limits are counted: in its own memory, or in Valkey with shares of its own for the time without it. */
#include <stdio.h>

#include "common/base/log.h"
#include "spoa/agent_priv.h"

static const double wait_step_s = 0.005;

static bool node_init(struct agent *a, struct err *e)
{
    if (!valkey_target_parse(a->settings.valkey_url, &a->node.target, e))
        return false;
    a->node.timeout_ms = a->settings.valkey_timeout_ms;
    breaker_init(&a->node.breaker);
    return a->node.target.is_unix || (resolver_init(&a->node.resolver, a->node.target.host, e) && resolver_start(&a->node.resolver, e));
}

bool agent_store_init(struct agent *a, struct err *e)
{
    if (a->settings.valkey_url[0] == '\0') {
        log_event(LOG_LEVEL_INFO, "limits_embedded", "limits are counted in this agent's memory: exact for this agent, not shared with others");
        return rate_store_new(&a->store, AGENT_KEYS_MAX, e);
    }
    char name[300];
    if (!rate_shares_new(&a->shares, RATE_SHARES_KEYS_MAX, e) || !node_init(a, e))
        return false;
    a->is_shared = true;
    log_event(LOG_LEVEL_INFO, "limits_shared", "limits are counted in Valkey at %s, at most %u ms a request",
              valkey_target_name(&a->node.target, name, sizeof name), (unsigned) a->node.timeout_ms);
    return true;
}

void agent_store_prepare(struct agent *a, const struct policy *policy)
{
    struct str ids[POLICY_RULES_MAX];
    size_t n = 0;
    struct err e;

    if (!a->is_shared)
        return;
    for (size_t i = 0; i < policy->n_rate_rules; i++)
        if (policy->rate_rules[i].fail_mode == FAIL_LOCAL)
            ids[n++] = policy->rate_rules[i].id;
    err_clear(&e);
    if (!rate_shares_set(a->shares, ids, n, &e))
        log_err(LOG_LEVEL_ERROR, "limits_without_share", &e);
}

static bool all_attempted(const struct agent *a)
{
    for (size_t i = 0; i < a->n_workers; i++)
        if (atomic_load(&a->workers[i].valkey_counters.attempted) == 0)
            return false;
    return true;
}

void agent_store_wait(struct agent *a)
{
    if (!a->is_shared)
        return;
    uint64_t until_us = clock_mono_us(&clock_system) + (a->node.target.dial_timeout_ms + VALKEY_HANDSHAKE_MS) * 1000;
    atomic_store(&a->warming, true);
    while (!all_attempted(a) && clock_mono_us(&clock_system) < until_us)
        ev_sleep(wait_step_s);
    atomic_store(&a->warming, false);
}

size_t agent_store_n_connected(const struct agent *a)
{
    size_t n = 0;
    for (size_t i = 0; i < a->n_workers; i++)
        n += atomic_load(&a->workers[i].valkey_counters.connected);
    return n;
}

/* The first worker without a connection speaks for all: they reach for the same node. */
static void say_trouble(const struct agent *a, char *out, size_t size)
{
    for (size_t i = 0; i < a->n_workers && out[0] == '\0'; i++)
        if (atomic_load(&a->workers[i].valkey_counters.connected) == 0)
            valkey_trouble(a->workers[i].requests.valkey, out, size);
    if (out[0] == '\0' && breaker_is_open(&a->node.breaker))
        snprintf(out, size,
                 "%d calls in a row got an error, which the log quotes, or no answer within %u ms; it is tried again every second", BREAKER_FAILURES,
                 (unsigned) a->node.timeout_ms);
}

void agent_store_state(const struct agent *a, struct store_state *out)
{
    if (!a->is_shared) {
        *out = (struct store_state){.kind = "embedded", .connected = true};
        return;
    }
    *out = (struct store_state){.kind = "standalone"};
    say_trouble(a, out->trouble, sizeof out->trouble);
    out->connected = out->trouble[0] == '\0';
    for (size_t i = 0; i < a->n_workers; i++)
        if (atomic_load(&a->workers[i].valkey_counters.calls[STORE_ANSWERED]) > 0)
            out->clock_skew_ms = atomic_load(&a->workers[i].valkey_counters.skew_ms);
}

void agent_store_release(struct agent *a)
{
    rate_store_free(&a->store);
    rate_shares_free(&a->shares);
    if (!a->is_shared)
        return;
    if (!a->node.target.is_unix)
        resolver_stop(&a->node.resolver);
    valkey_target_release(&a->node.target);
}
