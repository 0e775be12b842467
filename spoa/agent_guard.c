/* The backstop of the policy in force, swept every second on the policy feed's thread, which tells the metrics page what it found. */
#include "spoa/agent_priv.h"

static const double sweep_s = 1;

static void sweep(struct agent *a, struct backstop *b)
{
    struct rate_store_stats stats;
    backstop_stats(b, &stats);
    atomic_store(&a->backstop_clients, backstop_sweep(b, clock_mono_us(&clock_system) / 1000));
    atomic_store(&a->backstop_clients_max, stats.max_keys);
}

static void on_sweep(struct ev_loop *loop, struct ev_timer *watcher, int events)
{
    (void) loop;
    (void) events;
    struct agent *a = watcher->data;
    sweep(a, lease_newest_guard(&a->policy_file.source)->backstop);
}

void agent_guard_init(struct agent *a)
{
    ev_timer_init(&a->sweep, on_sweep, sweep_s, sweep_s);
    a->sweep.data = a;
}

void agent_guard_published(struct agent *a)
{
    struct backstop *b = lease_newest_guard(&a->policy_file.source)->backstop;
    if (b != NULL) {
        sweep(a, b);
        ev_timer_start(a->policy_file.loop, &a->sweep);
        return;
    }
    ev_timer_stop(a->policy_file.loop, &a->sweep);
    atomic_store(&a->backstop_clients, 0);
    atomic_store(&a->backstop_clients_max, 0);
}
