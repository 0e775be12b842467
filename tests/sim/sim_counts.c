/* One file of counters, two agents that come and go, and the processes of a HAProxy whose records overtake each other or get lost.
 *
 * The model knows every record: what was numbered, what came, to which version. After each burst nothing is on its way any more; a quiet time later the
 * losses that are told must be those that there were. */
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "spoa/record/counts.h"
#include "tests/sim/sim.h"

enum { AGENTS = 2, PROCESSES = 6, BURST_MAX = 12, SECOND_US = 1000000 };

struct process {
    uint64_t pid, next;
};

struct agent {
    struct counts *c; /* NULL: it does not run */
    struct counts_reader reader;
    uint64_t n_read;  /* requests of version that the reader was handed */
    int64_t version;  /* of n_read */
};

struct world {
    struct sim *s;
    struct clock clock;
    char folder[64], stem[80];
    struct agent agents[AGENTS];
    size_t receiver;
    struct process processes[PROCESSES];
    uint64_t last_pid;
    int64_t version;
    uint64_t replaced_us; /* when version took the place of the one before */

    /* the model */
    uint64_t n_numbered, n_own, n_other, n_matched;
    uint64_t n_of_version;
    uint64_t lost_told;
};

static uint64_t world_now(void *ctx)
{
    return ((struct world *)ctx)->s->now_us;
}

static void agent_start(struct world *w, struct agent *a)
{
    struct err e;

    err_clear(&e);
    *a = (struct agent){.reader = {.attached = true}};
    SIM_CHECK(w->s, counts_open(&a->c, w->stem, &w->clock, &e));
}

static void agent_end(struct agent *a)
{
    if (a->c == NULL)
        return;
    counts_reader_release(a->c, &a->reader);
    counts_close(&a->c);
}

static struct counts *receiver(struct world *w)
{
    return w->agents[w->receiver].c;
}

static void prepare(struct world *w, struct counts *c)
{
    struct config_rule config[2] = {{.id = STR("always")}};
    char own[32];
    struct policy p = {.version = w->version, .config_rules = config, .n_config_rules = 2};

    (void)snprintf(own, sizeof(own), "own-%lld", (long long)w->version);
    config[1].id = str_of(own);
    counts_prepare(c, &p, COHORT_ACTIVE);
}

static void publish(struct world *w)
{
    w->version++;
    w->n_of_version = 0;
    w->replaced_us = w->s->now_us;
    for (size_t i = 0; i < AGENTS; i++)
        if (w->agents[i].c != NULL)
            prepare(w, w->agents[i].c);
}

static uint64_t total(const struct counts *c)
{
    struct counts_sums sums;
    uint64_t n = 0;

    counts_totals(c, &sums);
    for (size_t i = 0; i <= OUTCOME_STATUS_MAX; i++)
        n += sums.codes[ORIGIN_EDGE][i] + sums.codes[ORIGIN_UPSTREAM][i];
    return n;
}

static void take_always(void *ctx, const struct counts_rule *rule)
{
    if (str_eq(rule->id, STR("always")))
        *(uint64_t *)ctx += rule->counts[0];
}

static void check(struct world *w, const struct counts *c)
{
    const uint64_t lost = counts_lost(c);

    SIM_CHECK(w->s, total(c) == w->n_own);
    SIM_CHECK(w->s, lost >= w->lost_told);
    SIM_CHECK(w->s, w->n_own + w->n_other + lost <= w->n_numbered);
    w->lost_told = lost;
}

static void check_rules(struct world *w, struct counts *c)
{
    uint64_t n = 0;

    counts_each_rule(c, take_always, &n);
    SIM_CHECK(w->s, n == w->n_matched);
}

/* A record of the process came to the agent that receives. */
static void come(struct world *w, const struct process *p, uint64_t number)
{
    struct counts *c = receiver(w);

    counts_number(c, p->pid, number);
    if (sim_one_in(w->s, 3)) {
        counts_other(c);
        w->n_other++;
        return;
    }
    const bool is_late = w->version > 1 && sim_one_in(w->s, 4) && w->s->now_us < w->replaced_us + (COUNTS_RETIRE_MS - 1000) * UINT64_C(1000);
    const bool is_decided = !sim_one_in(w->s, 10);
    const struct rec rec = {.config_version = w->version - is_late, .config_rules = STR("always")};
    const struct outcome o = {.decision = DECISION_ALLOW, .origin = ORIGIN_UPSTREAM, .status = 200 + (unsigned)sim_draw(w->s, 500)};

    counts_add(c, is_decided ? &rec : NULL, &o);
    w->n_own++;
    w->n_matched += is_decided;
    w->n_of_version += is_decided && !is_late;
}

/* Some records of one process, in about their order; some are lost, some have the number of the one before. The last comes, and has a number of its own. */
static void burst(struct world *w)
{
    struct process *p = &w->processes[sim_draw(w->s, PROCESSES)];
    uint64_t numbers[BURST_MAX];
    const size_t n = 1 + (size_t)sim_draw(w->s, BURST_MAX);
    const size_t tick_after = (size_t)sim_draw(w->s, 3 * BURST_MAX); /* mostly none: what is overtaken is on its way for less than two seconds */

    for (size_t i = 0; i < n; i++) {
        numbers[i] = p->next++;
        if (i > 0 && i < n - 1 && sim_one_in(w->s, 20))
            numbers[i] = numbers[i - 1];
    }
    w->n_numbered += n;
    for (size_t i = 0; i + 1 < n; i++)
        if (sim_one_in(w->s, 5)) {
            const uint64_t first = numbers[i];

            numbers[i] = numbers[i + 1];
            numbers[i + 1] = first;
        }
    for (size_t i = 0; i < n; i++) {
        if (numbers[i] + 1 == p->next || !sim_one_in(w->s, 15))
            come(w, p, numbers[i]);
        if (i == tick_after) {
            w->s->now_us += sim_draw(w->s, 2 * SECOND_US);
            counts_tick(receiver(w));
        }
    }
    check(w, receiver(w));
}

static void tick_all(struct world *w)
{
    w->s->now_us += SECOND_US;
    for (size_t i = 0; i < AGENTS; i++)
        if (w->agents[i].c != NULL)
            counts_tick(w->agents[i].c);
}

static void quiet(struct world *w)
{
    for (int i = 0; i < 6; i++)
        tick_all(w);
    check(w, receiver(w));
    check_rules(w, receiver(w));
    SIM_CHECK(w->s, w->n_own + w->n_other + w->lost_told == w->n_numbered);
}

/* The next agent starts, or the one that ran before ends. */
static void exchange(struct world *w)
{
    const size_t other = 1 - w->receiver;

    if (w->agents[other].c != NULL) {
        agent_end(&w->agents[other]);
        return;
    }
    agent_start(w, &w->agents[other]);
    prepare(w, w->agents[other].c);
    w->receiver = other;
}

static void take_version(void *ctx, const struct counts_delta *delta)
{
    struct agent *a = ctx;

    if (delta->config_version != a->version)
        return;
    for (size_t i = 0; i <= OUTCOME_STATUS_MAX; i++)
        a->n_read += delta->sums->codes[ORIGIN_EDGE][i] + delta->sums->codes[ORIGIN_UPSTREAM][i];
}

static void read_news(struct world *w)
{
    struct agent *a = &w->agents[w->receiver];

    if (a->version != w->version) {
        /* What it read before does not count; the version is new, or the reader is: it gets all. */
        a->n_read = 0;
        counts_reader_release(a->c, &a->reader);
        a->reader.attached = true;
        a->version = w->version;
    }
    SIM_CHECK(w->s, counts_read(a->c, &a->reader, false, take_version, a));
    SIM_CHECK(w->s, a->n_read == w->n_of_version);
}

/* A reload: a process ends after its last record, another begins. */
static void reload(struct world *w)
{
    w->processes[sim_draw(w->s, PROCESSES)] = (struct process){.pid = ++w->last_pid};
}

static void step(struct world *w)
{
    switch (sim_draw(w->s, 400)) {
    case 0:
        publish(w);
        break;
    case 1:
        exchange(w);
        break;
    case 2:
        quiet(w);
        break;
    case 3:
        reload(w);
        break;
    case 4:
    case 5:
        read_news(w);
        break;
    case 6:
        check_rules(w, receiver(w));
        break;
    case 7:
        w->s->now_us += sim_draw(w->s, 30 * SECOND_US);
        break;
    default:
        if (sim_one_in(w->s, 10))
            tick_all(w);
        else
            burst(w);
    }
}

static void begin(struct world *w)
{
    (void)snprintf(w->folder, sizeof(w->folder), "/tmp/edge-sim-counts-XXXXXX");
    SIM_CHECK(w->s, mkdtemp(w->folder) != NULL);
    (void)snprintf(w->stem, sizeof(w->stem), "%s/counts-0", w->folder);
    w->clock = (struct clock){.mono_us = world_now, .real_ms = world_now, .ctx = w};
    w->s->now_us = SECOND_US;
    w->version = 1;
    w->last_pid = UINT64_C(1) << 32; /* none of this machine's */
    for (size_t i = 0; i < PROCESSES; i++)
        w->processes[i].pid = ++w->last_pid;
    agent_start(w, &w->agents[0]);
    prepare(w, w->agents[0].c);
    /* The first number of all comes: a new file begins with it. */
    w->processes[0].next = 1;
    w->n_numbered = 1;
    come(w, &w->processes[0], 0);
}

static void end(struct world *w)
{
    char pattern[96];
    glob_t found;

    for (size_t i = 0; i < AGENTS; i++)
        agent_end(&w->agents[i]);
    (void)snprintf(pattern, sizeof(pattern), "%s.*", w->stem);
    if (glob(pattern, 0, NULL, &found) == 0)
        for (size_t i = 0; i < found.gl_pathc; i++)
            (void)unlink(found.gl_pathv[i]);
    globfree(&found);
    SIM_CHECK(w->s, rmdir(w->folder) == 0);
}

void sim_counts(struct sim *s)
{
    struct world w = {.s = s};

    begin(&w);
    while (sim_next(s))
        step(&w);
    quiet(&w);
    end(&w);
}
