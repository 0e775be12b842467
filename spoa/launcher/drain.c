/* The end of an edge, in order: said on /readyz, no new connections, open requests, the agents last. */
#include <signal.h>

#include "common/base/log.h"
#include "spoa/launcher/haproxy_ctl.h"
#include "spoa/launcher/launcher_priv.h"
#include "spoa/launcher/open_requests.h"

static const double flag_step_s = 0.25, open_step_s = 0.25, term_patience_s = 2;

/* Again and again during the delay: a HAProxy that was reloaded or restarted meanwhile has a new flag. */
static void on_flag(struct ev_loop *loop, ev_timer *w, int events)
{
    struct launcher *l = w->data;
    struct err e;

    (void)loop;
    (void)events;
    err_clear(&e);
    if (haproxy_ctl_set_ready(l->haproxy_sock, false, &e) || l->flag_warned)
        return;
    l->flag_warned = true;
    log_err(LOG_LEVEL_WARN, "drain_flag", &e);
}

static void hard_stop(struct launcher *l)
{
    child_stop(&l->haproxy, SIGTERM, term_patience_s);
}

/* HAProxy waits for connections that are idle as if they were requests, and a balancer keeps some open as long as it can. Twice
 * without a request: one may be on its way when the first answer comes. */
static void on_open(struct ev_loop *loop, ev_timer *w, int events)
{
    struct launcher *l = w->data;
    const bool was_idle = l->was_idle;
    uint64_t n;
    struct err e;

    (void)events;
    err_clear(&e);
    /* No answer: HAProxy ends just now, or the limit ends it. */
    l->was_idle = open_requests_ask(l->master_sock, &n, &e) && n == 0;
    if (!was_idle || !l->was_idle)
        return;
    log_event(LOG_LEVEL_INFO, "drain_done", "no request is open any more; connections that are idle are closed");
    ev_timer_stop(loop, &l->drain_limit);
    ev_timer_stop(loop, w);
    hard_stop(l);
}

static void on_limit(struct ev_loop *loop, ev_timer *w, int events)
{
    struct launcher *l = w->data;

    (void)events;
    log_event(LOG_LEVEL_WARN, "drain_limit", "requests are still open after SHUTDOWN_TIMEOUT and are cut");
    ev_timer_stop(loop, &l->drain_open);
    hard_stop(l);
}

/* Leaves every phase before for the one in which HAProxy ends. False when it does not run. */
static bool enter_stop(struct launcher *l)
{
    ev_timer_stop(l->loop, &l->agents_wait);
    ev_timer_stop(l->loop, &l->haproxy_wait);
    ev_timer_stop(l->loop, &l->haproxy_restart);
    ev_timer_stop(l->loop, &l->drain_delay);
    ev_timer_stop(l->loop, &l->drain_flag);
    l->phase = PHASE_STOP_HAPROXY;
    if (l->haproxy.pid != 0)
        return true;
    agents_stop(l);
    return false;
}

static void soft_stop(struct launcher *l)
{
    const uint64_t limit_ms = l->d.settings.shutdown_timeout_ms;

    if (!enter_stop(l))
        return;
    if (limit_ms == 0) {
        hard_stop(l);
        return;
    }
    log_event(LOG_LEVEL_INFO, "drain_soft_stop", "no new connections; open requests have %ju ms", (uintmax_t)limit_ms);
    /* SIGTERM comes at the limit; its own patience ends before this one. */
    child_stop(&l->haproxy, SIGUSR1, (double)limit_ms / 1000 + 2 * term_patience_s);
    ev_timer_set(&l->drain_limit, (double)limit_ms / 1000, 0);
    ev_timer_start(l->loop, &l->drain_limit);
    ev_timer_start(l->loop, &l->drain_open);
}

static void on_delay_over(struct ev_loop *loop, ev_timer *w, int events)
{
    (void)loop;
    (void)events;
    soft_stop(w->data);
}

static void begin(struct launcher *l)
{
    const uint64_t delay_ms = l->d.settings.drain_delay_ms;

    l->phase = PHASE_DRAIN;
    log_event(LOG_LEVEL_INFO, "drain", "/readyz answers 503 now; new connections are taken for another %ju ms",
              (uintmax_t)delay_ms);
    on_flag(l->loop, &l->drain_flag, 0);
    ev_timer_start(l->loop, &l->drain_flag);
    ev_timer_set(&l->drain_delay, (double)delay_ms / 1000, 0);
    ev_timer_start(l->loop, &l->drain_delay);
}

void drain_init(struct launcher *l)
{
    ev_timer_init(&l->drain_flag, on_flag, flag_step_s, flag_step_s);
    ev_init(&l->drain_delay, on_delay_over);
    ev_init(&l->drain_limit, on_limit);
    ev_timer_init(&l->drain_open, on_open, open_step_s, open_step_s);
    l->drain_flag.data = l->drain_delay.data = l->drain_limit.data = l->drain_open.data = l;
}

void drain_signal(struct launcher *l)
{
    switch (l->phase) {
    case PHASE_CHECK:
    case PHASE_AGENTS:
    case PHASE_HAPROXY:
        log_event(LOG_LEVEL_INFO, "drain", "told to end during start-up");
        if (enter_stop(l))
            hard_stop(l);
        break;
    case PHASE_UP:
        begin(l);
        break;
    case PHASE_DRAIN:
        log_event(LOG_LEVEL_INFO, "drain", "told again to end: no more delay");
        soft_stop(l);
        break;
    case PHASE_STOP_HAPROXY:
    case PHASE_STOP_AGENTS:
        break;
    }
}

void drain_fail(struct launcher *l)
{
    l->exit_code = 1;
    if (enter_stop(l))
        hard_stop(l);
}

void drain_haproxy_ended(struct launcher *l)
{
    ev_timer_stop(l->loop, &l->drain_limit);
    ev_timer_stop(l->loop, &l->drain_open);
    if (enter_stop(l))
        hard_stop(l);
}
