/* Families of /metrics that the workers count: requests refused, SPOP. */
#include "spoa/agent_priv.h"
#include "spoa/metrics_priv.h"

double metrics_sum(const struct agent *a, size_t offset)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < a->n_workers; i++)
        sum += counter_get((const _Atomic uint64_t *) (const void *) ((const char *) &a->workers[i] + offset));
    return (double) sum;
}

void metrics_put_workers(struct metrics *m, const struct agent *a)
{
    static const enum family rows[] = {
#define METRIC_WORKER(id, name, stability, help) FAMILY_##id,
#include "schemas/metrics.def"
    };
    family_begin(m, FAMILY_IDENTITY_REFUSED);
    for (size_t i = IDENTITY_OK + 1; i < IDENTITY_REFUSAL_N; i++)
        family_put(m, FAMILY_IDENTITY_REFUSED, identity_refusal_name((enum identity_refusal) i), NULL,
                   metrics_sum(a, offsetof(struct worker, requests.counters.identity_refusals) + i * sizeof(_Atomic uint64_t)));
    for (size_t i = 0; i < METRIC_N; i++)
        family_put_one(m, rows[i], metrics_sum(a, offsetof(struct worker, requests.counters.plain) + i * sizeof(_Atomic uint64_t)));
}

void metrics_put_spop(struct metrics *m, const struct agent *a)
{
    static const struct {
        enum family family;
        size_t offset;
    } rows[] = {
        {FAMILY_SPOP_HELLOS, offsetof(struct worker, spop_counters.n_hellos)},
        {FAMILY_SPOP_HEALTHCHECKS, offsetof(struct worker, spop_counters.n_healthchecks)},
        {FAMILY_SPOP_NOTIFIES, offsetof(struct worker, spop_counters.n_notifies)},
        {FAMILY_SPOP_ACKS, offsetof(struct worker, spop_counters.n_acks)},
        {FAMILY_SPOP_LOST_ACKS, offsetof(struct worker, spop_counters.n_lost_acks)},
        {FAMILY_SPOP_PROTOCOL_ERRORS, offsetof(struct worker, spop_counters.n_protocol_errors)},
        {FAMILY_SPOP_TOO_BIG, offsetof(struct worker, spop_counters.n_too_big)},
        {FAMILY_SPOP_DISCONNECTS, offsetof(struct worker, spop_counters.n_disconnects)},
        {FAMILY_SPOP_REFUSED, offsetof(struct worker, spop_counters.n_refused)},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        family_put_one(m, rows[i].family, metrics_sum(a, rows[i].offset));
    family_put_one(m, FAMILY_ACCEPT_FAILURES, (double) (atomic_load(&a->acceptor.n_failures) + atomic_load(&a->intake.acceptor.n_failures)));
}
