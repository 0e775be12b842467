/* The page /metrics of an agent's internal listener. */
#include "common/base/metrics.h"
#include "spoa/agent_priv.h"

enum { METRICS_MAX_BYTES = 1024 * 1024 };

static void sample(struct metrics *m, double value)
{
    metrics_sample(m, value, (const char *const[]){NULL});
}

static void sample_label(struct metrics *m, const char *label, const char *name, double value)
{
    metrics_sample(m, value, (const char *const[]){label, name, NULL});
}

/* Sums one counter over the workers; offset is its place in struct worker. */
static double sum_at(const struct agent *a, size_t offset)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < a->n_workers; i++)
        sum += counter_get((const _Atomic uint64_t *) (const void *) ((const char *) &a->workers[i] + offset));
    return (double) sum;
}

static void put_requests(struct metrics *m, const struct agent *a)
{
    metrics_family(m, "edge_requests_total", METRIC_COUNTER, "Requests decided, by decision");
    for (size_t i = 0; i < DECISION_N; i++)
        sample_label(m, "decision", decision_name((enum decision) i),
                     sum_at(a, offsetof(struct worker, requests.counters.decisions) + i * sizeof(_Atomic uint64_t)));
    metrics_family(m, "edge_identity_refused_total", METRIC_COUNTER, "Requests refused for who sent them, by reason");
    for (size_t i = IDENTITY_OK + 1; i < IDENTITY_REFUSAL_N; i++)
        sample_label(m, "reason", identity_refusal_name((enum identity_refusal) i),
                     sum_at(a, offsetof(struct worker, requests.counters.identity_refusals) + i * sizeof(_Atomic uint64_t)));
    static const struct {
        const char *name, *help;
    } rows[] = {
#define METRIC_ROW(id, name, help) {name, help},
#include "schemas/metrics.def"
#undef METRIC_ROW
    };
    for (size_t i = 0; i < METRIC_N; i++) {
        metrics_family(m, rows[i].name, METRIC_COUNTER, rows[i].help);
        sample(m, sum_at(a, offsetof(struct worker, requests.counters.plain) + i * sizeof(_Atomic uint64_t)));
    }
}

static void put_spop(struct metrics *m, const struct agent *a)
{
    static const struct {
        const char *name, *help;
        size_t offset;
    } rows[] = {
        {"edge_spop_hellos_total", "SPOP connections opened by HAProxy", offsetof(struct worker, spop_counters.n_hellos)},
        {"edge_spop_healthchecks_total", "SPOP health checks answered", offsetof(struct worker, spop_counters.n_healthchecks)},
        {"edge_spop_notifies_total", "NOTIFY frames received", offsetof(struct worker, spop_counters.n_notifies)},
        {"edge_spop_acks_total", "ACK frames sent", offsetof(struct worker, spop_counters.n_acks)},
        {"edge_spop_lost_acks_total", "ACKs whose connection had gone", offsetof(struct worker, spop_counters.n_lost_acks)},
        {"edge_spop_protocol_errors_total", "SPOP connections ended for what the peer sent",
         offsetof(struct worker, spop_counters.n_protocol_errors)},
        {"edge_spop_frames_too_big_total", "SPOP connections ended for a frame above the agreed size",
         offsetof(struct worker, spop_counters.n_too_big)},
        {"edge_spop_disconnects_total", "AGENT-DISCONNECT frames sent, whatever their status",
         offsetof(struct worker, spop_counters.n_disconnects)},
        {"edge_spop_refused_total", "SPOP connections closed unheard because there were too many or memory was short",
         offsetof(struct worker, spop_counters.n_refused)},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        metrics_family(m, rows[i].name, METRIC_COUNTER, rows[i].help);
        sample(m, sum_at(a, rows[i].offset));
    }
    metrics_family(m, "edge_accept_failures_total", METRIC_COUNTER,
                   "Times that a connection of HAProxy had to wait because descriptors or memory were short");
    sample(m, (double) (atomic_load(&a->acceptor.n_failures) + atomic_load(&a->intake.acceptor.n_failures)));
}

static void gauge(struct metrics *m, const char *name, const char *help, double value)
{
    metrics_family(m, name, METRIC_GAUGE, help);
    sample(m, value);
}

static void put_embedded(struct metrics *m, const struct agent *a)
{
    struct rate_store_stats stats;
    rate_store_stats(a->store, &stats);
    gauge(m, "edge_ratelimit_keys", "Counters held in this agent's memory", (double) stats.n_keys);
    gauge(m, "edge_ratelimit_keys_max", "Counters this agent's memory holds at most", (double) stats.max_keys);
    gauge(m, "edge_ratelimit_memory_bytes", "Memory of these counters", (double) stats.memory_bytes);
    metrics_family(m, "edge_ratelimit_expired_total", METRIC_COUNTER, "Counters dropped because they equalled fresh ones");
    sample(m, (double) stats.n_expired);
}

static void put_valkey_counters(struct metrics *m, const struct agent *a)
{
    static const struct {
        const char *name, *help;
        size_t offset;
    } rows[] = {
        {"edge_valkey_connects_total", "Connections to Valkey that became usable", offsetof(struct worker, valkey_counters.n_connects)},
        {"edge_valkey_connect_failures_total", "Attempts to connect to Valkey that failed", offsetof(struct worker, valkey_counters.n_connect_failures)},
        {"edge_valkey_noscript_total", "Calls sent once more with the script's source because Valkey had lost it",
         offsetof(struct worker, valkey_counters.n_noscript)},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        metrics_family(m, rows[i].name, METRIC_COUNTER, rows[i].help);
        sample(m, sum_at(a, rows[i].offset));
    }
    metrics_family(m, "edge_valkey_calls_total", METRIC_COUNTER, "Rate-limit calls to Valkey, one for each request with limits, by how they ended");
    for (size_t i = 0; i < STORE_OUTCOME_N; i++)
        sample_label(m, "outcome", store_outcome_name((enum store_outcome) i),
                     sum_at(a, offsetof(struct worker, valkey_counters.calls) + i * sizeof(_Atomic uint64_t)));
    metrics_family(m, "edge_valkey_breaker_opened_total", METRIC_COUNTER, "Times that Valkey was left alone after failures in a row");
    sample(m, (double) atomic_load(&a->node.breaker.n_opened));
}

static void put_valkey(struct metrics *m, const struct agent *a)
{
    struct store_state state;
    agent_store_state(a, &state);
    put_valkey_counters(m, a);
    gauge(m, "edge_valkey_connected", "Workers with a usable connection to Valkey", (double) agent_store_n_connected(a));
    gauge(m, "edge_valkey_breaker_open", "1 while Valkey is left alone after failures in a row", breaker_is_open(&a->node.breaker) ? 1 : 0);
    gauge(m, "edge_valkey_clock_skew_seconds", "Valkey's clock minus this machine's, at the last answer", (double) state.clock_skew_ms / 1000);
    gauge(m, "edge_ratelimit_keys", "Counters held in this agent's memory while Valkey could not be asked", (double) rate_shares_n_keys(a->shares));
}

static void put_limits(struct metrics *m, const struct agent *a)
{
    struct store_state state;
    agent_store_state(a, &state);
    metrics_family(m, "edge_ratelimit_store", METRIC_GAUGE, "1 for the kind of store that rate limits are counted in");
    sample_label(m, "kind", state.kind, 1);
    if (a->is_shared)
        put_valkey(m, a);
    else
        put_embedded(m, a);
}

static void put_policy(struct metrics *m, const struct agent *a)
{
    metrics_family(m, "edge_policy_version", METRIC_GAUGE, "Version of the policy in force; 0 = none");
    sample(m, (double) atomic_load(&a->policy_file.version));
    metrics_family(m, "edge_policies_in_memory", METRIC_GAUGE, "The policy in force and older ones that open requests still use");
    sample(m, (double) atomic_load(&a->policy_file.n_in_memory));
    metrics_family(m, "edge_policy_loads_total", METRIC_COUNTER, "Policy files read, by outcome");
    sample_label(m, "result", "loaded", (double) atomic_load(&a->policy_file.n_loaded));
    sample_label(m, "result", "refused", (double) atomic_load(&a->policy_file.n_refused));
}

static void put_records(struct metrics *m, const struct agent *a)
{
    metrics_family(m, "edge_records_total", METRIC_COUNTER, "Access records of requests that this agent decided");
    sample(m, (double) atomic_load(&a->access_log.n_own));
    metrics_family(m, "edge_records_without_verdict_total", METRIC_COUNTER,
                   "Access records of requests without any agent's decision (counted by agent 0)");
    sample(m, (double) atomic_load(&a->access_log.n_without_verdict));
    metrics_family(m, "edge_records_malformed_total", METRIC_COUNTER, "Access records that could not be read");
    sample(m, (double) (atomic_load(&a->access_log.n_malformed) + atomic_load(&a->intake.n_malformed)));
    metrics_family(m, "edge_log_dropped_total", METRIC_COUNTER, "Access log lines lost: their reader was slow, or writing failed");
    sample(m, (double) atomic_load(&a->writer.n_dropped));
}

void agent_metrics(void *ctx, struct httpd_reply *reply)
{
    const struct agent *a = ctx;
    struct metrics m;
    metrics_init(&m, METRICS_MAX_BYTES);
    put_requests(&m, a);
    put_spop(&m, a);
    put_limits(&m, a);
    put_policy(&m, a);
    put_records(&m, a);
    if (m.failed) {
        metrics_release(&m);
        agent_reply_text(reply, 503, "no memory for the metrics page\n");
        return;
    }
    reply->status = 200;
    reply->content_type = "text/plain; version=0.0.4; charset=utf-8";
    reply->body = m.p;
    reply->body_len = m.len;
}
