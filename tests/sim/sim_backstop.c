/* The backstop under clients that flood, come back and stay away, while policies are swapped, open requests hold old ones, and the table is swept.
 *
 * The model keeps a bucket for each client and forgets none; it also keeps the times at which a client passed, from which follows how many may pass in
 * any span, whatever a bucket is. */
#include <string.h>

#include "spoa/guard/guard.h"
#include "tests/sim/sim.h"

enum { CLIENTS = 400, GUARDS_MAX = 5, PASSES_MAX = 16, SWEEPS_OF_ALL = 61 };

struct client {
    uint64_t level, at_ms; /* tokens x period_ms, at that time */
    bool known, tracked;   /* known: has asked; tracked: was counted since its bucket was full last */
    uint64_t passes_ms[PASSES_MAX];
    uint64_t n_passes;
};

/* Of one backstop, for as long as a guard has it. */
struct table {
    struct backstop_settings settings;
    struct client clients[CLIENTS];
    uint64_t n_untracked;
    unsigned n_guards;
};

struct world {
    struct sim *s;
    struct policy policy;
    struct guard *guards[GUARDS_MAX]; /* oldest first; the last one is in force, requests may be open on the others */
    struct table *tables[GUARDS_MAX]; /* theirs; NULL: none */
    struct table pool[GUARDS_MAX];
    unsigned n_guards;
};

static uint64_t now_ms(const struct world *w)
{
    return w->s->now_us / 1000;
}

/* Neighbours, IPv6 subscribers, and IPv4 clients who differ in their first byte only. */
static struct addr address_of(unsigned i, unsigned variant)
{
    const uint8_t near[4] = {10, 0, (uint8_t) (i >> 8), (uint8_t) i}, far[4] = {(uint8_t) (i / 3), 0, 0, 1};
    const uint8_t v6[16] = {0x20, 0x01, 0x0d, 0xb8, 0, 0, (uint8_t) (i >> 8), (uint8_t) i, (uint8_t) variant, 1, 2, 3, 4, 5, 6, (uint8_t) (variant >> 8)};

    return i % 3 == 0 ? addr_from_v4(near) : i % 3 == 1 ? addr_from_v6(v6) : addr_from_v4(far);
}

static uint64_t capacity_of(const struct table *t)
{
    return t->settings.params.burst * t->settings.params.period_ms;
}

static void refill(const struct table *t, struct client *c, uint64_t now)
{
    const uint64_t full = capacity_of(t);

    c->level = c->known ? c->level + (now - c->at_ms) * t->settings.params.limit : full;
    if (c->level >= full) {
        c->level = full;
        c->tracked = false;
    }
    c->known = true;
    c->at_ms = now;
}

/* Clients that must be in the table still. */
static size_t n_needed(struct table *t, uint64_t now)
{
    size_t n = 0;

    for (unsigned i = 0; i < CLIENTS; i++) {
        refill(t, &t->clients[i], now);
        n += t->clients[i].tracked;
    }
    return n;
}

/* In no span may more pass than burst and what flows in: looked at from each of the last passes on. */
static void check_span(struct world *w, const struct table *t, struct client *c)
{
    const struct rate_params *p = &t->settings.params;
    const uint64_t now = now_ms(w), n_kept = c->n_passes < PASSES_MAX ? c->n_passes : PASSES_MAX;

    for (uint64_t back = 1; back <= n_kept; back++) {
        const uint64_t since = c->passes_ms[(c->n_passes - back) % PASSES_MAX];
        SIM_CHECK(w->s, (back + 1) * p->period_ms <= p->burst * p->period_ms + (now - since) * p->limit);
    }
    c->passes_ms[c->n_passes++ % PASSES_MAX] = now;
}

static void ask(struct world *w, unsigned guard, unsigned i)
{
    struct table *t = w->tables[guard];
    struct backstop *b = w->guards[guard]->backstop;
    struct rate_store_stats stats;
    struct rate_verdict v;

    SIM_CHECK(w->s, (t == NULL) == (b == NULL));
    if (t == NULL)
        return;
    struct client *c = &t->clients[i];
    const struct addr address = address_of(i, (unsigned) sim_draw(w->s, 1 << 16));
    const enum rate_counted counted = backstop_check(b, &address, now_ms(w), &v);
    refill(t, c, now_ms(w));
    backstop_stats(b, &stats);
    SIM_CHECK(w->s, stats.n_keys <= t->settings.max_entries);
    if (counted == RATE_UNTRACKED) {
        t->n_untracked++;
        SIM_CHECK(w->s, !c->tracked && v.allowed && stats.n_keys == t->settings.max_entries);
    } else {
        const uint64_t period_ms = t->settings.params.period_ms;
        SIM_CHECK(w->s, counted == RATE_COUNTED && v.allowed == (c->level >= period_ms));
        SIM_CHECK(w->s, v.allowed || v.retry_after_ms == (period_ms - c->level + t->settings.params.limit - 1) / t->settings.params.limit);
        SIM_CHECK(w->s, v.allowed || rate_seconds_up(v.retry_after_ms) >= 1);
        if (v.allowed) {
            c->level -= period_ms;
            c->tracked = true;
            check_span(w, t, c);
        }
    }
    SIM_CHECK(w->s, stats.n_untracked == t->n_untracked);
}

static struct table *unused_table(struct world *w)
{
    struct table *t = w->pool;

    while (t->n_guards > 0)
        t++;
    return t;
}

static void let_go(struct world *w, unsigned guard)
{
    guard_free(&w->guards[guard]);
    if (w->tables[guard] != NULL)
        w->tables[guard]->n_guards--;
    w->n_guards--;
    memmove(&w->guards[guard], &w->guards[guard + 1], (w->n_guards - guard) * sizeof w->guards[0]);
    memmove(&w->tables[guard], &w->tables[guard + 1], (w->n_guards - guard) * sizeof w->tables[0]);
}

static void draw_settings(struct world *w)
{
    static const struct backstop_settings choices[] = {
        {.params = {.limit = 3, .burst = 5, .period_ms = 1000}, .max_entries = 64},     {.params = {.limit = 3, .burst = 5, .period_ms = 1000}, .max_entries = 1000},
        {.params = {.limit = 7, .burst = 1, .period_ms = 60000}, .max_entries = 64},    {.params = {.limit = 3, .burst = 6, .period_ms = 1000}, .max_entries = 64},
        {.params = {.limit = 1000, .burst = 30, .period_ms = 1500}, .max_entries = 300}, {.max_entries = 0},
    };

    if (sim_one_in(w->s, 2))
        w->policy.backstop = choices[sim_draw(w->s, sizeof choices / sizeof choices[0])];
}

static void publish(struct world *w)
{
    const struct guard *before = w->n_guards > 0 ? w->guards[w->n_guards - 1] : NULL;
    struct table *of_before = w->n_guards > 0 ? w->tables[w->n_guards - 1] : NULL, *t = NULL;
    struct guard *g = NULL;
    struct err e;

    if (w->n_guards == GUARDS_MAX)
        let_go(w, (unsigned) sim_draw(w->s, GUARDS_MAX - 1));
    err_clear(&e);
    draw_settings(w);
    const struct backstop_settings *new = &w->policy.backstop;
    SIM_CHECK(w->s, guard_new(&g, &w->policy, before, &e));
    if (of_before != NULL && memcmp(&of_before->settings, new, sizeof *new) == 0) {
        t = of_before;
        SIM_CHECK(w->s, g->backstop == before->backstop);
    } else if (new->params.limit > 0) {
        t = unused_table(w);
        *t = (struct table){.settings = *new};
        SIM_CHECK(w->s, g->backstop != NULL && (before == NULL || g->backstop != before->backstop));
    }
    if (t != NULL)
        t->n_guards++;
    w->guards[w->n_guards] = g;
    w->tables[w->n_guards++] = t;
}

/* A sweep forgets nobody who is needed; all parts of one leave nobody else. */
static void sweep(struct world *w, unsigned n_sweeps)
{
    struct table *t = w->tables[w->n_guards - 1];
    size_t n = 0;

    if (t == NULL)
        return;
    for (unsigned i = 0; i < n_sweeps; i++)
        n = backstop_sweep(w->guards[w->n_guards - 1]->backstop, now_ms(w));
    const size_t needed = n_needed(t, now_ms(w));
    SIM_CHECK(w->s, n >= needed && n <= t->settings.max_entries);
    SIM_CHECK(w->s, n_sweeps < SWEEPS_OF_ALL || n == needed);
}

static void step(struct world *w)
{
    static const uint64_t spans_us[] = {1, 1000, 100000, 2000000, 90000000};
    const unsigned first = (unsigned) sim_draw(w->s, CLIENTS);

    switch (sim_draw(w->s, 40)) {
    case 0:
        publish(w);
        break;
    case 1:
        if (w->n_guards > 1)
            let_go(w, (unsigned) sim_draw(w->s, w->n_guards - 1));
        break;
    case 2:
        sweep(w, sim_one_in(w->s, 4) ? SWEEPS_OF_ALL : 1);
        break;
    case 3: /* one client floods, also on the policy of an open request */
        for (unsigned i = 0; i < 20; i++)
            ask(w, (unsigned) sim_draw(w->s, w->n_guards), first);
        break;
    case 4: /* many come once */
        for (unsigned i = 0; i < 100; i++)
            ask(w, w->n_guards - 1, (first + i) % CLIENTS);
        break;
    case 5:
        w->s->now_us += sim_draw(w->s, spans_us[sim_draw(w->s, 5)]);
        break;
    default:
        ask(w, w->n_guards - 1, first % 20);
        break;
    }
}

void sim_backstop(struct sim *s)
{
    static struct world w;

    w = (struct world){.s = s};
    s->now_us = sim_draw(s, 1000000000);
    publish(&w);
    while (sim_next(s))
        step(&w);
    while (w.n_guards > 0)
        let_go(&w, w.n_guards - 1);
}
