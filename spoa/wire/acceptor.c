/* Accepting on a loop, with a rest after a failure that would else come again at once. */
#include "spoa/wire/acceptor.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "common/base/log.h"

enum { ACCEPTS_MAX = 256 }; /* a turn of the loop: signals and timers come in between */

static const double rest_s = 0.1;

static bool is_shortage(int error)
{
    return error == EMFILE || error == ENFILE || error == ENOMEM || error == ENOBUFS;
}

static void take_rest(struct acceptor *a, int error)
{
    atomic_fetch_add_explicit(&a->n_failures, 1, memory_order_relaxed);
    if (!a->is_failing)
        log_event(LOG_LEVEL_ERROR, "accept_failed", "a connection cannot be taken: %s; tried again every 100 ms", strerror(error));
    a->is_failing = true;
    ev_io_stop(a->loop, &a->io);
    ev_timer_set(&a->rest, rest_s, 0.);
    ev_timer_start(a->loop, &a->rest);
}

static void on_readable(struct ev_loop *loop, struct ev_io *watcher, int events)
{
    (void) loop;
    (void) events;
    struct acceptor *a = watcher->data;
    for (int i = 0; i < ACCEPTS_MAX; i++) {
        int fd = accept4(watcher->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd >= 0) {
            a->on_connection(a->ctx, fd);
        } else if (is_shortage(errno)) {
            take_rest(a, errno);
            return;
        } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
            a->is_failing = false;
            return;
        }
        /* Any other error is of a connection that has gone meanwhile. */
    }
}

static void on_rested(struct ev_loop *loop, struct ev_timer *watcher, int events)
{
    (void) events;
    struct acceptor *a = watcher->data;
    ev_io_start(loop, &a->io);
}

void acceptor_start(struct acceptor *a, struct ev_loop *loop, int listener, void (*on_connection)(void *ctx, int fd), void *ctx)
{
    *a = (struct acceptor){.loop = loop, .on_connection = on_connection, .ctx = ctx};
    ev_io_init(&a->io, on_readable, listener, EV_READ);
    ev_timer_init(&a->rest, on_rested, rest_s, 0.);
    a->io.data = a->rest.data = a;
    ev_io_start(loop, &a->io);
}

void acceptor_stop(struct acceptor *a)
{
    ev_io_stop(a->loop, &a->io);
    ev_timer_stop(a->loop, &a->rest);
}
