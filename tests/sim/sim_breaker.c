/* The breaker under several workers whose calls take their time and end as the node's health has it.
 *
 * The model is told what the workers tell the breaker and keeps the times that matter: when it opened, when the last call passed. From these follow
 * what the breaker has to answer, and for how long it may stay open once the node is well. */
#include "spoa/store/breaker.h"
#include "tests/sim/sim.h"

enum { WORKERS_MAX = 6, CALLS_MAX = 64, LATENCY_MAX_US = 500000, CLOCK_SKEW_US = 50, TICK_US = 1000 };

struct call {
    uint64_t ends_us;
    bool fails;
};

struct world {
    struct sim *s;
    struct breaker breaker;
    bool node_is_well;
    bool node_is_noisy; /* well, but for a call now and then */
    struct call calls[CALLS_MAX];
    unsigned n_calls, n_workers;

    /* the model */
    unsigned n_failures; /* in a row */
    bool open;
    uint64_t rests_since_us; /* while open: since the opening, or since the probe that passed last */
    uint64_t n_opened;
};

/* Workers read the clock, then come to the breaker: a little late, and not in order. */
static uint64_t seen_now(const struct world *w)
{
    const uint64_t late = sim_draw(w->s, CLOCK_SKEW_US);

    return w->s->now_us > late ? w->s->now_us - late : w->s->now_us;
}

static void check_state(const struct world *w)
{
    SIM_CHECK(w->s, breaker_is_open(&w->breaker) == w->open);
    SIM_CHECK(w->s, atomic_load(&w->breaker.n_opened) == w->n_opened);
}

/* A worker has a request. */
static bool try_call(struct world *w)
{
    const uint64_t now_us = seen_now(w);
    const bool rested = now_us >= w->rests_since_us + BREAKER_REST_US;
    const bool passed = breaker_allow(&w->breaker, now_us);

    SIM_CHECK(w->s, !w->open || rested || !passed);  /* a full rest after opening, and never two probes in one rest */
    SIM_CHECK(w->s, (w->open && !rested) || passed); /* closed: everything passes; rested: the first one does */
    if (w->open && passed)
        w->rests_since_us = now_us;
    check_state(w);
    return passed;
}

static void end_call(struct world *w, bool fails)
{
    const uint64_t now_us = seen_now(w);

    if (fails) {
        breaker_failure(&w->breaker, now_us);
        if (++w->n_failures >= BREAKER_FAILURES && !w->open) {
            w->open = true;
            w->rests_since_us = now_us;
            w->n_opened++;
        }
    } else {
        breaker_success(&w->breaker);
        w->n_failures = 0;
        w->open = false;
    }
    check_state(w);
}

static void start_call(struct world *w)
{
    struct call *c = &w->calls[w->n_calls];

    if (w->n_calls == CALLS_MAX || !try_call(w))
        return;
    w->n_calls++;
    c->fails = !w->node_is_well || (w->node_is_noisy && sim_one_in(w->s, 3));
    c->ends_us = w->s->now_us + 1 + sim_draw(w->s, sim_one_in(w->s, 4) ? LATENCY_MAX_US : LATENCY_MAX_US / 50);
}

/* Ends the calls that are due, in order. */
static void pass_until(struct world *w, uint64_t until_us)
{
    for (;;) {
        unsigned next = 0;

        for (unsigned i = 1; i < w->n_calls; i++)
            if (w->calls[i].ends_us < w->calls[next].ends_us)
                next = i;
        if (w->n_calls == 0 || w->calls[next].ends_us > until_us)
            break;
        struct call c = w->calls[next];
        w->calls[next] = w->calls[--w->n_calls];
        w->s->now_us = c.ends_us;
        end_call(w, c.fails);
    }
    w->s->now_us = until_us;
}

/* The node is well from now on and workers keep asking: what was under way ends within one call, and then one rest and one call are enough. */
static void recover(struct world *w)
{
    const uint64_t latest_us = w->s->now_us + BREAKER_REST_US + 2 * LATENCY_MAX_US + 2 * TICK_US;

    w->node_is_well = true;
    w->node_is_noisy = false;
    while (w->s->now_us < latest_us) {
        pass_until(w, w->s->now_us + TICK_US);
        if (w->n_calls < w->n_workers)
            start_call(w);
    }
    SIM_CHECK(w->s, !breaker_is_open(&w->breaker));
    SIM_CHECK(w->s, try_call(w));
    end_call(w, false);
}

static void step(struct world *w)
{
    static const uint64_t spans_us[] = {1, TICK_US, 20 * TICK_US, BREAKER_REST_US / 3, 2 * BREAKER_REST_US};

    switch (sim_draw(w->s, 100)) {
    case 0:
        w->node_is_well = !w->node_is_well;
        break;
    case 1:
        w->node_is_noisy = !w->node_is_noisy;
        break;
    case 2:
        if (sim_one_in(w->s, 20))
            recover(w);
        break;
    case 3: /* exactly at the end of the rest, or just before */
        if (w->open && w->s->now_us < w->rests_since_us + BREAKER_REST_US - 1)
            pass_until(w, w->rests_since_us + BREAKER_REST_US - sim_draw(w->s, 2));
        break;
    default:
        if (sim_one_in(w->s, 2))
            pass_until(w, w->s->now_us + sim_draw(w->s, spans_us[sim_draw(w->s, 5)]));
        for (unsigned i = 0; i < w->n_workers; i++)
            start_call(w);
        break;
    }
}

void sim_breaker(struct sim *s)
{
    struct world w = {.s = s, .node_is_well = true, .n_workers = 1 + (unsigned)sim_draw(s, WORKERS_MAX)};

    s->now_us = sim_draw(s, 1000000000);
    breaker_init(&w.breaker);
    while (sim_next(s))
        step(&w);
    recover(&w);
}
