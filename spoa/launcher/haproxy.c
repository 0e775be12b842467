/* HAProxy's process: its configuration checked, started, reloaded, restarted when it dies. */
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>

#include "common/base/log.h"
#include "spoa/launcher/haproxy_ctl.h"
#include "spoa/launcher/launcher_priv.h"
#include "spoa/launcher/server_state.h"

static const double wait_step_s = 0.02, check_limit_s = 30;
enum { START_LIMIT_MS = 30000 };

static const struct ready_pipe no_ready_pipe = {-1, -1};

static void reload(struct launcher *l)
{
    struct err e;

    if (l->haproxy.pid == 0) {
        log_event(LOG_LEVEL_INFO, "haproxy_reload", "HAProxy is being restarted and will read its configuration then");
        return;
    }
    log_event(LOG_LEVEL_INFO, "haproxy_reload", "HAProxy reads its configuration again");
    /* Without it the new process has no address where the name does not resolve just now. */
    err_clear(&e);
    if (!server_state_save(l->haproxy_sock, l->server_state, &e))
        log_err(LOG_LEVEL_WARN, "server_state_not_saved", &e);
    child_signal(&l->haproxy, SIGUSR2);
}

static void on_check_exit(struct child *c, int status)
{
    struct launcher *l = c->owner;
    const bool is_fine = WIFEXITED(status) && WEXITSTATUS(status) == 0;

    if (l->phase == PHASE_CHECK) {
        if (is_fine) {
            agents_start(l);
            return;
        }
        log_event(LOG_LEVEL_ERROR, "start_failed", "HAProxy refuses its configuration; what it said stands above");
        drain_fail(l);
        return;
    }
    if (l->phase != PHASE_UP)
        return;
    if (is_fine)
        reload(l);
    else
        log_event(LOG_LEVEL_ERROR, "haproxy_reload_refused",
                  "HAProxy refuses the new configuration and goes on with the old one; what it said stands above");
    if (l->check_again)
        haproxy_check(l);
}

void haproxy_check(struct launcher *l)
{
    char check[] = "-c", file[] = "-f";
    char *const argv[] = {l->haproxy_path, check, file, l->haproxy_cfg, NULL};
    struct err e;

    if (l->phase != PHASE_CHECK && l->phase != PHASE_UP) {
        log_event(LOG_LEVEL_WARN, "haproxy_reload_ignored", "the edge is not up: HAProxy is not reloaded");
        return;
    }
    l->check_again = l->check.pid != 0;
    if (l->check_again)
        return;
    err_clear(&e);
    if (child_start(&l->check, l->loop, &l->sources, l->d.haproxy, argv, l->haproxy_env, no_ready_pipe, SIGKILL, &e)) {
        child_limit(&l->check, check_limit_s);
        return;
    }
    log_err(LOG_LEVEL_ERROR, "haproxy_check_failed", &e);
    if (l->phase == PHASE_CHECK)
        drain_fail(l);
}

/* Its own words are in the output already. */
static void on_haproxy_exit(struct child *c, int status)
{
    struct launcher *l = c->owner;
    char how[SPAWN_STATUS_MAX];

    spawn_describe(status, how);
    log_event(c->was_stopped ? LOG_LEVEL_INFO : LOG_LEVEL_ERROR, "haproxy_ended", "HAProxy %s%s", how,
              c->was_killed ? ", for it did not end in time" : "");
    if (l->phase == PHASE_UP) {
        const uint64_t wait_ms = backoff_take(&l->haproxy_backoff, child_age_ms(c));

        ev_timer_set(&l->haproxy_restart, (double)wait_ms / 1000, 0);
        ev_timer_start(l->loop, &l->haproxy_restart);
    } else if (l->phase == PHASE_HAPROXY) {
        log_event(LOG_LEVEL_ERROR, "start_failed", "HAProxy did not start; what it said stands above");
        drain_fail(l);
    } else {
        drain_haproxy_ended(l);
    }
}

static bool run(struct launcher *l)
{
    char workers[] = "-W", file[] = "-f", socket[] = "-S";
    char *const argv[] = {l->haproxy_path, workers, file, l->haproxy_cfg, socket, l->master_bind, NULL};
    struct err e;

    err_clear(&e);
    if (child_start(&l->haproxy, l->loop, &l->sources, l->d.haproxy, argv, l->haproxy_env, no_ready_pipe, SIGTERM, &e))
        return true;
    log_err(LOG_LEVEL_ERROR, "haproxy_not_started", &e);
    return false;
}

static void on_restart(struct ev_loop *loop, ev_timer *w, int events)
{
    struct launcher *l = w->data;
    struct err e;

    (void)events;
    /* What the last reload saved may be old. */
    err_clear(&e);
    if (!server_state_begin(l->server_state, &e))
        log_err(LOG_LEVEL_WARN, "server_state_not_saved", &e);
    if (run(l))
        return;
    ev_timer_set(w, (double)backoff_take(&l->haproxy_backoff, 0) / 1000, 0);
    ev_timer_start(loop, w);
}

static void is_up(struct launcher *l)
{
    ev_timer_stop(l->loop, &l->haproxy_wait);
    l->phase = PHASE_UP;
    log_event(LOG_LEVEL_INFO, "edge_up",
              "the edge serves on %s, towards %s, at most %ju requests and %ju streams at once", l->d.settings.listen,
              l->d.settings.upstream_url, (uintmax_t)l->d.max_inflight, (uintmax_t)l->d.settings.max_streams);
}

/* Every 20 ms while HAProxy starts. A connection is not enough: its sockets take some before all of them are bound. */
static void on_wait(struct ev_loop *loop, ev_timer *w, int events)
{
    struct launcher *l = w->data;
    struct err e;

    (void)loop;
    (void)events;
    err_clear(&e);
    if (haproxy_ctl_set_ready(l->haproxy_sock, true, &e)) {
        is_up(l);
    } else if (e.code != ERR_IO || child_age_ms(&l->haproxy) >= START_LIMIT_MS) {
        log_err(LOG_LEVEL_ERROR, "start_failed", &e);
        drain_fail(l);
    }
}

void haproxy_start(struct launcher *l)
{
    l->phase = PHASE_HAPROXY;
    if (run(l))
        ev_timer_start(l->loop, &l->haproxy_wait);
    else
        drain_fail(l);
}

void haproxy_init(struct launcher *l)
{
    /* The whole path is its argv[0], too: that is what a reload executes. */
    snprintf(l->haproxy_path, sizeof(l->haproxy_path), "%s", l->d.haproxy);
    snprintf(l->haproxy_cfg, sizeof(l->haproxy_cfg), "%s/haproxy.cfg", l->d.haproxy_dir);
    snprintf(l->haproxy_sock, sizeof(l->haproxy_sock), "%s/haproxy.sock", l->run_dir.path);
    snprintf(l->server_state, sizeof(l->server_state), "%s/servers.state", l->run_dir.path);
    snprintf(l->master_sock, sizeof(l->master_sock), "%s/master.sock", l->run_dir.path);
    snprintf(l->master_bind, sizeof(l->master_bind), "%s/master.sock,mode,600", l->run_dir.path);
    l->haproxy = (struct child){.owner = l, .on_exit = on_haproxy_exit};
    l->check = (struct child){.owner = l, .on_exit = on_check_exit};
    ev_timer_init(&l->haproxy_wait, on_wait, wait_step_s, wait_step_s);
    l->haproxy_wait.data = l;
    ev_init(&l->haproxy_restart, on_restart);
    l->haproxy_restart.data = l;
}
