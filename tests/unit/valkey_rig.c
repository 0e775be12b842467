/* The Valkey client's surroundings in tests. */
#include "tests/unit/valkey_rig.h"

#include <CUnit/CUnit.h>
#include <signal.h>
#include <stdio.h>

#include "common/base/log.h"
#include "tests/unit/fake_valkey.h"

enum { GIVE_UP_S = 30 };

struct valkey_rig rig;

static const struct rate_params params = {.limit = 5, .burst = 5, .period_ms = 60000};
static const struct rate_name name = {.prefix = {"rl:tb:60000:test:", 17}};

static uint64_t rig_mono_us(void *ctx)
{
    (void)ctx;
    return rig.now_us;
}

static uint64_t rig_real_ms(void *ctx)
{
    (void)ctx;
    return rig.real_ms;
}

static void (*old_sigpipe)(int);

int rig_set_up(void)
{
    old_sigpipe = signal(SIGPIPE, SIG_IGN);
    log_init("", LOG_LEVEL_ERROR);
    return 0;
}

int rig_tear_down(void)
{
    (void)signal(SIGPIPE, old_sigpipe);
    log_init("", LOG_LEVEL_INFO);
    return 0;
}

static void begin_loop(void)
{
    memset(&rig, 0, sizeof(rig));
    rig.loop = ev_loop_new(EVFLAG_AUTO);
    CU_ASSERT_PTR_NOT_NULL_FATAL(rig.loop);
    rig.clock = (struct clock){.mono_us = rig_mono_us, .real_ms = rig_real_ms};
    rig.now_us = 1000000;
    rig.real_ms = 1700000000000;
    breaker_init(&rig.node.breaker);
    rig.node.timeout_ms = 100;
}

static void begin_target(const char *url)
{
    struct err e = {0};

    CU_ASSERT_TRUE_FATAL(valkey_target_parse(url, &rig.node.target, &e));
    if (!rig.node.target.is_unix)
        CU_ASSERT_TRUE_FATAL(resolver_init(&rig.node.resolver, rig.node.target.host, &e));
}

void rig_begin(const char *url)
{
    begin_loop();
    begin_target(url);
}

void rig_begin_at(struct fake_valkey *fake, bool tcp, const char *login, const char *rest)
{
    char url[512];

    begin_loop();
    rig.fake = fake;
    fake_valkey_start(fake, rig.loop, tcp);
    fake->now_ms = rig.real_ms + 250;
    if (tcp)
        snprintf(url, sizeof(url), "redis://%s127.0.0.1:%u%s", login, (unsigned)fake->port, rest);
    else
        snprintf(url, sizeof(url), "unix://%s%s%s", login, fake->path, rest);
    begin_target(url);
}

void rig_connect(void)
{
    struct err e = {0};

    CU_ASSERT_TRUE_FATAL(valkey_new(&rig.v, rig.loop, &rig.node, &rig.clock, &rig.counters, &e));
}

void rig_end(void)
{
    valkey_free(&rig.v);
    valkey_target_release(&rig.node.target);
    if (rig.fake != NULL)
        fake_valkey_stop(rig.fake);
    ev_loop_destroy(rig.loop);
}

static void on_ring(struct ev_loop *loop, ev_timer *w, int events)
{
    (void)loop;
    (void)events;
    *(bool *)w->data = true;
}

void rig_run_until(rig_condition *so, void *ctx)
{
    ev_timer timer;
    bool given_up = false;

    ev_now_update(rig.loop);
    ev_timer_init(&timer, on_ring, GIVE_UP_S, 0.);
    timer.data = &given_up;
    ev_timer_start(rig.loop, &timer);
    while (!given_up && !so(ctx))
        ev_run(rig.loop, EVRUN_ONCE);
    ev_timer_stop(rig.loop, &timer);
    CU_ASSERT_FALSE_FATAL(given_up);
}

static bool is_ready(void *ctx)
{
    (void)ctx;
    return atomic_load(&rig.counters.connected) == 1;
}

void rig_run_until_ready(void)
{
    rig_run_until(is_ready, NULL);
}

static bool is_over(void *ctx)
{
    return *(bool *)ctx;
}

void rig_run_for_ms(uint64_t ms)
{
    ev_timer timer;
    bool over = false;

    ev_now_update(rig.loop);
    ev_timer_init(&timer, on_ring, (double)ms / 1e3, 0.);
    timer.data = &over;
    ev_timer_start(rig.loop, &timer);
    rig_run_until(is_over, &over);
}

void rig_pass_ms(uint64_t ms)
{
    rig.now_us += ms * 1000;
}

static void on_done(struct valkey_waiter *w, enum store_outcome outcome)
{
    struct rig_call *c = (struct rig_call *)(void *)w;

    c->n_done++;
    c->outcome = outcome;
    rig.n_done++;
    if (c->again) {
        c->again = false;
        CU_ASSERT_FALSE(valkey_charge(rig.v, c->calls, 1, &c->waiter, &c->again_outcome));
    }
}

bool rig_charge(struct rig_call *c, size_t n, uint8_t subject)
{
    const bool again = c->again;

    *c = (struct rig_call){.waiter.done = on_done, .again = again, .outcome = STORE_OUTCOME_N};
    for (size_t i = 0; i < n; i++)
        c->calls[i] =
            (struct rate_call){.params = &params, .name = &name, .subject.b = {subject, (uint8_t)i}, .enforce = true};
    return valkey_charge(rig.v, c->calls, n, &c->waiter, &c->outcome);
}

bool rig_is_done(void *ctx)
{
    return ((struct rig_call *)ctx)->n_done > 0;
}

enum store_outcome rig_charge_and_wait(struct rig_call *c, size_t n, uint8_t subject)
{
    CU_ASSERT_TRUE_FATAL(rig_charge(c, n, subject));
    rig_run_until(rig_is_done, c);
    CU_ASSERT_EQUAL(c->n_done, 1);
    return c->outcome;
}

uint64_t rig_count(enum store_outcome o)
{
    return atomic_load(&rig.counters.calls[o]);
}

bool rig_trouble_has(const char *text)
{
    char trouble[512];

    valkey_trouble(rig.v, trouble, sizeof(trouble));
    if (strstr(trouble, text) != NULL)
        return true;
    fprintf(stderr, "\n    trouble is \"%s\"\n", trouble);
    return false;
}

bool rig_trouble_lacks(const char *text)
{
    char trouble[512];

    valkey_trouble(rig.v, trouble, sizeof(trouble));
    return strstr(trouble, text) == NULL;
}

bool rig_trouble_is_none(void)
{
    char trouble[512];

    valkey_trouble(rig.v, trouble, sizeof(trouble));
    return trouble[0] == '\0';
}
