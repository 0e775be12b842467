/* Child processes on the launcher's loop: started, watched, told to end, killed when they do not. */
#include "spoa/launcher/children.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include "common/base/clock.h"

enum { STEADY_MS = 10000, BACKOFF_MIN_MS = 100, BACKOFF_MAX_MS = 5000 };

bool child_ready_pipe(struct ready_pipe *out, struct err *e)
{
    int fds[2];

    if (pipe2(fds, O_CLOEXEC) != 0)
        return err_set(e, ERR_IO, "", "cannot make a pipe: %s", strerror(errno));
    if (fcntl(fds[0], F_SETFL, O_NONBLOCK) != 0) {
        (void)err_set(e, ERR_IO, "", "cannot make a pipe non-blocking: %s", strerror(errno));
        close(fds[0]);
        close(fds[1]);
        return false;
    }
    *out = (struct ready_pipe){fds[0], fds[1]};
    return true;
}

void child_drop_ready_pipe(const struct ready_pipe *p)
{
    if (p->read_fd < 0)
        return;
    close(p->read_fd);
    close(p->write_fd);
}

static void close_ready(struct child *c)
{
    if (c->ready_watch.fd < 0)
        return;
    ev_io_stop(c->loop, &c->ready_watch);
    close(c->ready_watch.fd);
    ev_io_set(&c->ready_watch, -1, EV_READ);
}

/* One line is all there is to come; it is far below PIPE_BUF, so it comes whole. */
static void on_ready_readable(struct ev_loop *loop, ev_io *w, int events)
{
    struct child *c = w->data;
    char line[16];
    ssize_t n = read(w->fd, line, sizeof(line));

    (void)loop;
    (void)events;
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    close_ready(c);
    c->is_ready = n > 0 && str_eq((struct str){line, (size_t)n}, STR("ready\n"));
    if (c->on_report != NULL)
        c->on_report(c);
}

static void on_child_exit(struct ev_loop *loop, ev_child *w, int events)
{
    struct child *c = w->data;

    (void)events;
    ev_child_stop(loop, &c->exit_watch);
    ev_timer_stop(loop, &c->patience);
    close_ready(c);
    sources_read(c->sources);
    c->pid = 0;
    c->on_exit(c, w->rstatus);
}

static void on_patience_over(struct ev_loop *loop, ev_timer *w, int events)
{
    struct child *c = w->data;

    (void)loop;
    (void)events;
    c->was_killed = true;
    (void)kill(-c->pid, SIGKILL);
}

static void watch(struct child *c, struct ev_loop *loop, struct sources *sources, pid_t pid, int ready_fd)
{
    c->pid = pid;
    c->started_us = clock_mono_us(&clock_system);
    c->is_ready = c->was_stopped = c->was_killed = false;
    c->loop = loop;
    c->sources = sources;
    ev_child_init(&c->exit_watch, on_child_exit, pid, 0);
    c->exit_watch.data = c;
    ev_child_start(loop, &c->exit_watch);
    ev_init(&c->patience, on_patience_over);
    c->patience.data = c;
    ev_io_init(&c->ready_watch, on_ready_readable, ready_fd, EV_READ);
    c->ready_watch.data = c;
    if (ready_fd >= 0)
        ev_io_start(loop, &c->ready_watch);
}

bool child_start(struct child *c, struct ev_loop *loop, struct sources *sources, const char *path, char *const argv[],
                 char *const envp[], struct ready_pipe ready, int death_signal, struct err *e)
{
    int output_fd;
    pid_t pid;
    bool ok;

    if (!sources_open(sources, &output_fd, e)) {
        child_drop_ready_pipe(&ready);
        return false;
    }
    ok = spawn(&(struct spawn){path, argv, envp, output_fd, ready.write_fd, death_signal}, &pid, e);
    close(output_fd);
    if (!ok) {
        child_drop_ready_pipe(&ready);
        return false;
    }
    if (ready.write_fd >= 0)
        close(ready.write_fd);
    watch(c, loop, sources, pid, ready.read_fd);
    return true;
}

void child_signal(const struct child *c, int signum)
{
    if (c->pid > 0)
        (void)kill(c->pid, signum);
}

void child_limit(struct child *c, double limit_s)
{
    ev_timer_stop(c->loop, &c->patience);
    ev_timer_set(&c->patience, limit_s, 0);
    ev_timer_start(c->loop, &c->patience);
}

void child_stop(struct child *c, int signum, double patience_s)
{
    if (c->pid == 0)
        return;
    c->was_stopped = true;
    (void)kill(c->pid, signum);
    child_limit(c, patience_s);
}

uint64_t child_age_ms(const struct child *c)
{
    return (clock_mono_us(&clock_system) - c->started_us) / 1000;
}

uint64_t backoff_take(struct backoff *b, uint64_t age_ms)
{
    uint64_t wait_ms;

    if (age_ms >= STEADY_MS)
        b->next_ms = 0;
    wait_ms = b->next_ms;
    b->next_ms = wait_ms == 0 ? BACKOFF_MIN_MS : wait_ms * 2 < BACKOFF_MAX_MS ? wait_ms * 2 : BACKOFF_MAX_MS;
    return wait_ms;
}
