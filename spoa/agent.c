/* The life of an agent: settings, policy, workers, listeners, signals, orderly end. */
#include "spoa/agent.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/base/log.h"
#include "spoa/agent_priv.h"
#include "spoa/signals.h"

/* HAProxy checks every 200 ms: after three intervals it has moved to another agent, if there is one. */
static const double drain_s = 0.6;
static const uint64_t end_wait_ms = 3000;

/* HAProxy has at most `maxconn` (haproxy.cfg) questions under way from each of its two backends, in the worst case each on a connection of its own,
 * and while it reloads there are two of it. The rest is for health checks. One worker may get them all. */
enum { HAPROXY_MAXCONN = 250, WORKER_PEERS_MAX = 2 * 2 * HAPROXY_MAXCONN + 256 };

static size_t cores(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) != 0)
        return 1;
    return (size_t) CPU_COUNT(&set);
}

static void on_connection(void *ctx, int fd)
{
    struct agent *a = ctx;
    worker_give(&a->workers[a->next_worker], fd);
    a->next_worker = (a->next_worker + 1) % a->n_workers;
}

static void on_drained(struct ev_loop *loop, struct ev_timer *watcher, int events)
{
    (void) watcher;
    (void) events;
    ev_break(loop, EVBREAK_ALL);
}

static void on_stop(struct ev_loop *loop, struct ev_signal *watcher, int events)
{
    (void) events;
    struct agent *a = watcher->data;
    if (atomic_exchange(&a->stopping, true))
        return;
    log_event(LOG_LEVEL_INFO, "stopping", "health checks are refused from now on; requests are answered until HAProxy has moved on");
    for (size_t i = 0; i < a->n_workers; i++)
        worker_drain(&a->workers[i]);
    ev_timer_start(loop, &a->drained);
}

static void on_hup(struct ev_loop *loop, struct ev_signal *watcher, int events)
{
    (void) loop;
    (void) events;
    struct agent *a = watcher->data;
    policy_file_reload(&a->policy_file);
}

static void signal_start(struct agent *a, struct ev_signal *watcher, void (*fn)(struct ev_loop *, struct ev_signal *, int), int signum)
{
    ev_signal_init(watcher, fn, signum);
    watcher->data = a;
    ev_signal_start(a->loop, watcher);
}

/* The descriptor of EDGE_READY_FD tells the launcher whether this agent can take over: "ready", or closed without a word while there is no
 * policy. */
static void announce_ready(const struct agent *a)
{
    int fd = (int) a->settings.ready_fd;
    if (fd == 0)
        return;
    static const char line[] = "ready\n";
    if (atomic_load(&a->policy_file.version) != 0 && write(fd, line, sizeof line - 1) < 0)
        log_event(LOG_LEVEL_WARN, "ready_unheard", "the launcher's pipe is closed: %s", strerror(errno));
    close(fd);
}

/* policy_file's `before`. Feed's thread, as `published`. */
static bool prepare(void *ctx, const struct policy *policy, struct guard **guard, struct err *e)
{
    struct agent *a = ctx;
    if (!guard_new(guard, policy, lease_newest_guard(&a->policy_file.source), e))
        return false;
    agent_store_prepare(a, policy);
    counts_prepare(a->counts, policy, COHORT_ACTIVE);
    return true;
}

static void published(void *ctx)
{
    struct agent *a = ctx;
    for (size_t i = 0; i < a->n_workers; i++)
        worker_wake(&a->workers[i]);
    agent_guard_published(a);
}

static bool counts_start(struct agent *a, struct err *e)
{
    char file[256];
    snprintf(file, sizeof file, "%s/counts-%u", a->settings.run_dir, (unsigned) a->settings.agent_index);
    return counts_open(&a->counts, file, &clock_system, e);
}

static bool workers_start(struct agent *a, struct err *e)
{
    a->n_workers = a->settings.workers != 0 ? (size_t) a->settings.workers : cores();
    if (a->n_workers > AGENT_WORKERS_MAX)
        a->n_workers = AGENT_WORKERS_MAX;
    a->workers = calloc(a->n_workers, sizeof *a->workers);
    if (a->workers == NULL)
        return err_set(e, ERR_NO_MEMORY, "", "no memory for %zu workers", a->n_workers);
    const struct request_settings settings = {
        .ingress = a->ingress,
        .store = a->store,
        .shares = a->shares,
        .fleet_size = a->settings.expected_replicas,
        .cap_ordinary = a->settings.max_inflight,
        .cap_streams = a->settings.max_streams,
        .clock = &clock_system,
        .challenges = &a->challenges,
        .agent_index = (unsigned) a->settings.agent_index,
    };
    for (size_t i = 0; i < a->n_workers; i++) {
        if (!worker_init(&a->workers[i], &settings, a->is_shared ? &a->node : NULL, WORKER_PEERS_MAX, e))
            return false;
        a->slots[i] = &a->workers[i].requests.lease_slot;
    }
    for (size_t i = 0; i < a->n_workers; i++)
        if (!worker_start(&a->workers[i], e))
            return false;
    return true;
}

enum { SOCKET_NAME_MAX = 256 };

static void records_name(const struct agent *a, const char *prefix, char out[static SOCKET_NAME_MAX])
{
    snprintf(out, SOCKET_NAME_MAX, "%s%s/records-%u.sock", prefix, a->settings.run_dir, (unsigned) a->settings.agent_index);
}

static bool records_start(struct agent *a, struct err *e)
{
    char at[SOCKET_NAME_MAX];
    int fd;
    records_name(a, "unix@", at);
    const struct records_options options = {
        .agent_index = (unsigned) a->settings.agent_index,
        .log_sample_rate = a->settings.log_sample_rate,
        .counts = a->counts,
        .writer = &a->writer,
        .clock = &clock_system,
    };
    records_init(&a->records, &options);
    return writer_start(&a->writer, STDOUT_FILENO, e) && spop_listen(str_of(at), &fd, e) &&
           intake_start(&a->intake, fd, records_take, records_tick, &a->records, e);
}

/* The lines come last: records are read until then. */
static void records_end(struct agent *a)
{
    char successor[SOCKET_NAME_MAX];
    records_name(a, "", successor);
    intake_stop(&a->intake, successor);
    writer_stop(&a->writer);
}

static bool httpd_start(struct agent *a, struct err *e)
{
    static const struct httpd_route routes[] = {
        {"/livez", agent_livez},
        {"/readyz", agent_readyz},
        {"/metrics", agent_metrics},
        {"/stats", agent_stats},
        {"/doctor", agent_doctor},
        {NULL, NULL},
    };
    struct listen_addr at;
    if (!parse_listen(str_of(a->settings.internal_listen), &at, "EDGE_INTERNAL_LISTEN", e))
        return false;
    if (at.port != 0)
        at.port = (uint16_t) (at.port + a->settings.agent_index);
    return httpd_new(&a->httpd, at, routes, a, e);
}

static bool spop_start(struct agent *a, struct err *e)
{
    char at[256];
    int fd;
    if (a->settings.spop_listen[0] != '\0')
        snprintf(at, sizeof at, "%s", a->settings.spop_listen);
    else
        snprintf(at, sizeof at, "unix@%s/agent-%u.sock", a->settings.run_dir, (unsigned) a->settings.agent_index);
    if (!spop_listen(str_of(at), &fd, e))
        return false;
    a->listener = fd;
    acceptor_start(&a->acceptor, a->loop, fd, on_connection, a);
    log_event(LOG_LEVEL_INFO, "listening", "SPOP on %s with %zu workers", at, a->n_workers);
    return true;
}

/* Whoever takes over takes the sockets, and without a policy could only refuse what the other process decides. */
static bool may_listen(const struct agent *a, struct err *e)
{
    if (a->settings.takes_over == 0 || atomic_load(&a->policy_file.version) != 0)
        return true;
    return err_set(e, ERR_MISSING, "", "without a policy this process does not take over from the one that serves");
}

/* Everything but the loop; the SPOP socket comes last, so that whoever can connect is served. */
static bool agent_start(struct agent *a, struct err *e)
{
    a->loop = ev_default_loop(EVFLAG_NOENV);
    if (a->loop == NULL)
        return err_set(e, ERR_IO, "", "cannot create an event loop");
    signal_start(a, &a->on_term, on_stop, SIGTERM);
    signal_start(a, &a->on_int, on_stop, SIGINT);
    signal_start(a, &a->on_hup, on_hup, SIGHUP);
    ev_timer_init(&a->drained, on_drained, drain_s, 0.);

    challenges_init(&a->challenges);
    /* What people should know of their settings, `run` has said already. */
    a->ingress = a->settings.ready_fd != 0 ? settings_ingress(&a->settings, SETTINGS_SERVE, NULL) : settings_ingress_logged(&a->settings, SETTINGS_SERVE);
    if (a->ingress == NULL)
        return err_set(e, ERR_NO_MEMORY, "", "no memory to read how requests reach this deployment");
    if (!agent_store_init(a, e) || !counts_start(a, e) || !workers_start(a, e))
        return false;
    const struct policy_options options = {
        .deployment = &a->ingress->deployment, .to_serve = true, .connect_timeout_ms = a->settings.connect_timeout_ms};
    if (!policy_file_init(&a->policy_file, a->settings.policy_file, &options, a->slots, a->n_workers, prepare, published, a, e))
        return false;
    agent_guard_init(a);
    policy_file_load(&a->policy_file);
    if (!may_listen(a, e) || !policy_file_start(&a->policy_file, e) || !records_start(a, e) || !httpd_start(a, e))
        return false;
    agent_store_wait(a);
    return spop_start(a, e);
}

/* False: a worker still had something to say after end_wait_ms. */
static bool workers_end(struct agent *a)
{
    bool ended = true;
    for (size_t i = 0; i < a->n_workers; i++)
        worker_stop(&a->workers[i]);
    for (size_t i = 0; i < a->n_workers; i++)
        ended &= worker_join(&a->workers[i], end_wait_ms);
    for (size_t i = 0; ended && i < a->n_workers; i++)
        worker_release(&a->workers[i]);
    return ended;
}

static void agent_end(struct agent *a)
{
    if (!workers_end(a)) {
        log_event(LOG_LEVEL_WARN, "stopped", "a peer did not read its answers; ended without it");
        records_end(a);
        exit(0);
    }
    policy_file_stop(&a->policy_file);
    policy_file_release(&a->policy_file);
    records_end(a);
    httpd_free(&a->httpd);
    counts_close(&a->counts);
    challenges_release(&a->challenges);
    agent_store_release(a);
    free(a->workers);
    acceptor_stop(&a->acceptor);
    close(a->listener);
    log_event(LOG_LEVEL_INFO, "stopped", "every pending request was answered");
}

int agent_main(char *const envp[])
{
    static struct agent a;
    struct errlist errors;
    if (!errlist_init(&errors, 0))
        return 1;
    bool ok = settings_load(&a.settings, SETTINGS_SERVE, envp, &errors);
    char component[16];
    snprintf(component, sizeof component, "agent-%u", ok ? (unsigned) a.settings.agent_index : 0);
    log_init(component, LOG_LEVEL_INFO);
    for (size_t i = 0; i < errors.n; i++)
        log_err(LOG_LEVEL_ERROR, "setting", &errors.items[i]);
    errlist_release(&errors);
    if (!ok)
        return 2;

    signal(SIGPIPE, SIG_IGN);
    struct err e;
    err_clear(&e);
    if (!agent_start(&a, &e)) {
        log_err(LOG_LEVEL_ERROR, "start_failed", &e);
        return 1;
    }
    announce_ready(&a);
    signals_let_in(SIGTERM);
    signals_let_in(SIGINT);
    signals_let_in(SIGHUP);
    ev_run(a.loop, 0);
    agent_end(&a);
    return 0;
}
