/* `edge-spoa run`: the loop that holds an edge together, its signals, and what stands before and after it. */
#include "spoa/launcher/launcher.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/log.h"
#include "spoa/launcher/haproxy_version.h"
#include "spoa/launcher/launcher_priv.h"
#include "spoa/launcher/peer_file.h"
#include "spoa/launcher/server_state.h"
#include "spoa/signals.h"

enum { OUTPUT_PATIENCE_MS = 1000 };

static void on_signal(struct ev_loop *loop, ev_signal *w, int events)
{
    struct launcher *l = w->data;

    (void)loop;
    (void)events;
    switch (w->signum) {
    case SIGHUP:
        agents_hangup(l);
        break;
    case SIGUSR1:
        exchange_start(l);
        break;
    case SIGUSR2:
        haproxy_check(l);
        break;
    default:
        drain_signal(l);
        break;
    }
}

static void listen_to_signals(struct launcher *l)
{
    static const int signums[] = {SIGHUP, SIGUSR1, SIGUSR2, SIGTERM, SIGINT};

    for (size_t i = 0; i < sizeof(signums) / sizeof(signums[0]); i++) {
        ev_signal_init(&l->signals[i], on_signal, signums[i]);
        l->signals[i].data = l;
        ev_signal_start(l->loop, &l->signals[i]);
        signals_let_in(signums[i]);
    }
    /* A reader of our output may go; the edge stays. */
    (void)signal(SIGPIPE, SIG_IGN);
}

/* Standard streams that the caller closed would else be the first sockets that are opened. */
static bool open_standard_streams(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", fd == STDIN_FILENO ? O_RDONLY : O_WRONLY) != fd)
            return false;
    return true;
}

/* The launcher's own lines pass the same thread as all others: only so they are never written into the middle of one, and a
 * slow reader never holds up the loop. The socket is private, so it can be non-blocking. */
static bool take_stderr(struct launcher *l, int *saved_fd, struct err *e)
{
    int fd;

    *saved_fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    if (*saved_fd < 0)
        return err_set(e, ERR_IO, "", "cannot keep standard error: %s", strerror(errno));
    if (!sources_open(&l->sources, &fd, e))
        return false;
    if (fcntl(fd, F_SETFL, O_NONBLOCK) != 0 || dup2(fd, STDERR_FILENO) < 0)
        (void)err_set(e, ERR_IO, "", "cannot redirect standard error: %s", strerror(errno));
    close(fd);
    return e->code == ERR_NONE;
}

static void give_stderr_back(int *saved_fd)
{
    if (*saved_fd < 0)
        return;
    (void)dup2(*saved_fd, STDERR_FILENO);
    close(*saved_fd);
    *saved_fd = -1;
}

/* Before HAProxy looks at its configuration, which reads them. */
static bool write_peers(const struct deployment *d, struct err *e)
{
    return (d->balancers.n == 0 || peer_file_write(d->run_dir, ENVIRONMENT_PROXY_PROTOCOL, &d->balancers, e)) &&
           (d->ingress->trusted.n == 0 || peer_file_write(d->run_dir, ENVIRONMENT_TRUSTED_PROXIES, &d->ingress->trusted, e));
}

static bool prepare(struct launcher *l, int *saved_stderr, struct err *e)
{
    if (!run_dir_open(&l->run_dir, l->d.settings.run_dir, settings_env(l->d.envp, "TMPDIR"), e))
        return false;
    l->d.run_dir = l->run_dir.path;
    if (!write_peers(&l->d, e))
        return false;
    if (!environment_haproxy(&l->d, &l->arena, &l->haproxy_env))
        return err_set(e, ERR_NO_MEMORY, "", "no memory for HAProxy's environment");
    if (!haproxy_version_check(l->d.haproxy, l->haproxy_env, e))
        return false;
    if (!output_start(&l->output, STDOUT_FILENO, OUTPUT_BUFFER_BYTES, e))
        return false;
    late_records_init(&l->late_records, l->d.run_dir, (unsigned)l->d.settings.agents, l->output);
    sources_init(&l->sources, l->loop, late_records_line, &l->late_records);
    agents_init(l);
    exchange_init(l);
    haproxy_init(l);
    drain_init(l);
    return server_state_begin(l->server_state, e) && take_stderr(l, saved_stderr, e);
}

/* A check of the configuration may be under way when the rest has ended. */
static void end_check(const struct launcher *l)
{
    if (l->check.pid == 0)
        return;
    (void)kill(-l->check.pid, SIGKILL);
    while (waitpid(l->check.pid, NULL, 0) < 0 && errno == EINTR) {
    }
}

static int run(struct launcher *l)
{
    int saved_stderr = -1;
    struct err e;

    err_clear(&e);
    l->loop = ev_default_loop(EVFLAG_AUTO);
    if (l->loop == NULL) {
        fprintf(stderr, "edge-spoa run: no event loop\n");
        return 1;
    }
    listen_to_signals(l);
    if (prepare(l, &saved_stderr, &e)) {
        haproxy_check(l);
        if (!l->has_ended)
            ev_run(l->loop, 0);
        log_event(LOG_LEVEL_INFO, "edge_ended", "the edge has ended with status %d", l->exit_code);
    }
    give_stderr_back(&saved_stderr);
    if (e.code != ERR_NONE) {
        fprintf(stderr, "edge-spoa run: %s\n", e.text);
        l->exit_code = 1;
    }
    if (l->output != NULL) {
        end_check(l);
        sources_release(&l->sources);
        late_records_release(&l->late_records);
        output_stop(&l->output, OUTPUT_PATIENCE_MS);
    }
    run_dir_close(&l->run_dir);
    ev_loop_destroy(l->loop);
    return l->exit_code;
}

int launcher_main(char *const envp[])
{
    struct launcher l = {.phase = PHASE_CHECK, .run_dir.lock_fd = -1};
    int status;

    if (!open_standard_streams())
        return 1;
    log_init("launcher", LOG_LEVEL_INFO);
    arena_init(&l.arena, 16384, 0);
    status = setup_deployment(&l.d, envp, &l.arena);
    if (status == 0)
        status = run(&l);
    arena_release(&l.arena);
    return status;
}
