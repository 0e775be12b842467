/* A worker's SPOP connections: sockets on a libev loop around the state machine of conn.h. */
#include "spoa/wire/server.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/log.h"
#include "spoa/wire/unread.h"

static const ev_tstamp held_s = 0.0005;

struct spop_peer {
    struct spop_server *server;
    struct spop_conn *conn;
    int fd;
    bool greeted;
    bool leaving; /* nothing is read any more but to see the peer close */
    struct unread unread;
    ev_io read, write;
    ev_timer held;                              /* until the peer may have read */
    ev_timer deadline;                          /* for the HELLO, then for the goodbye */
    struct spop_peer *next, **link;             /* server's peers */
    struct spop_peer *ready_next, **ready_link; /* server's ready ones; ready_link NULL: not among them */
};

static void log_window_over(struct ev_loop *loop, ev_timer *w, int events)
{
    struct spop_server *s = w->data;

    (void)events;
    if (s->n_unlogged != 0)
        log_event(LOG_LEVEL_WARN, "spop_connections_failed", "%u more connections failed within a second",
                  s->n_unlogged);
    ev_timer_stop(loop, w);
    s->n_logged = s->n_unlogged = 0;
}

static void log_failure(struct spop_server *s, const struct err *why)
{
    if (!ev_is_active(&s->log_window)) {
        ev_timer_set(&s->log_window, 1., 0.);
        ev_timer_start(s->loop, &s->log_window);
    }
    if (s->n_logged < SPOP_LOG_PER_S_MAX) {
        s->n_logged++;
        log_err(LOG_LEVEL_WARN, "spop_connection_failed", why);
    } else {
        s->n_unlogged++;
    }
}

static void ready_remove(struct spop_peer *p)
{
    if (p->ready_link == NULL)
        return;
    *p->ready_link = p->ready_next;
    if (p->ready_next != NULL)
        p->ready_next->ready_link = p->ready_link;
    p->ready_link = NULL;
}

static void ready_add(void *ctx)
{
    struct spop_peer *p = ctx;
    struct spop_server *s = p->server;

    if (p->ready_link != NULL)
        return;
    p->ready_next = s->ready;
    if (p->ready_next != NULL)
        p->ready_next->ready_link = &p->ready_next;
    p->ready_link = &s->ready;
    s->ready = p;
}

static void peer_close(struct spop_peer *p)
{
    struct spop_server *s = p->server;
    const struct err *why = spop_conn_error(p->conn);

    if (why != NULL)
        log_failure(s, why);
    ev_io_stop(s->loop, &p->read);
    ev_io_stop(s->loop, &p->write);
    ev_timer_stop(s->loop, &p->held);
    ev_timer_stop(s->loop, &p->deadline);
    ready_remove(p);
    *p->link = p->next;
    if (p->next != NULL)
        p->next->link = p->link;
    s->n_peers--;
    spop_conn_free(&p->conn);
    close(p->fd);
    free(p);
}

/* Closing with unread bytes resets a TCP connection, and the reset may overtake our last frame: so what still comes
 * is read and thrown away until the peer has closed, for a bounded time. */
static void peer_leave(struct spop_peer *p)
{
    if (p->leaving)
        return;
    p->leaving = true;
    ev_timer_stop(p->server->loop, &p->deadline);
    ev_timer_set(&p->deadline, p->server->goodbye_timeout_s, 0.);
    ev_timer_start(p->server->loop, &p->deadline);
    ev_io_start(p->server->loop, &p->read);
    ready_add(p);
}

static void on_deadline(struct ev_loop *loop, ev_timer *w, int events)
{
    struct spop_peer *p = w->data;

    (void)loop;
    (void)events;
    if (p->leaving) {
        peer_close(p);
        return;
    }
    spop_conn_fail(p->conn, SPOP_STATUS_TIMEOUT, "no HELLO within %g seconds", p->server->hello_timeout_s);
    peer_leave(p);
}

static bool is_passing(int error)
{
    return error == EAGAIN || error == EWOULDBLOCK || error == EINTR;
}

enum written { WRITTEN_ALL, WRITTEN_FULL /* the socket is */, WRITTEN_HELD /* the peer has to read first */, WRITTEN_GONE /* so is p */ };

static enum written write_out(struct spop_peer *p)
{
    struct str out = spop_conn_output(p->conn);
    ssize_t n;

    if (out.len == 0)
        return WRITTEN_ALL;
    if (unread_is_much(&p->unread, out) && unread_look(&p->unread, p->fd, p->server->barrier_fd, out)) {
        spop_conn_written(p->conn, 1);
        out = spop_conn_output(p->conn);
    }
    size_t len = unread_room(&p->unread, out);
    if (len == 0)
        return WRITTEN_HELD;
    n = send(p->fd, out.p, len, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0 && !is_passing(errno)) {
        peer_close(p);
        return WRITTEN_GONE;
    }
    if (n > 0) {
        unread_add(&p->unread, out, (size_t)n);
        spop_conn_written(p->conn, (size_t)n);
    }
    if (n != (ssize_t)len)
        return WRITTEN_FULL;
    return len == out.len ? WRITTEN_ALL : WRITTEN_HELD;
}

/* Writes what waits, then goes on with input that rested for it: if that says more, the peer is among the ready
 * again. */
static void peer_flush(struct spop_peer *p)
{
    struct ev_loop *loop = p->server->loop;
    enum written written = write_out(p);

    if (written == WRITTEN_GONE)
        return;
    if (!spop_conn_filled(p->conn, 0))
        peer_leave(p);
    if (p->leaving || spop_conn_wants_input(p->conn))
        ev_io_start(loop, &p->read);
    else
        ev_io_stop(loop, &p->read);
    if (written == WRITTEN_FULL)
        ev_io_start(loop, &p->write);
    else
        ev_io_stop(loop, &p->write);
    if (written == WRITTEN_HELD && !ev_is_active(&p->held)) {
        ev_timer_set(&p->held, held_s, 0.);
        ev_timer_start(loop, &p->held);
    }
    if (spop_conn_done(p->conn) && shutdown(p->fd, SHUT_WR) != 0)
        peer_close(p);
}

static void on_held(struct ev_loop *loop, ev_timer *w, int events)
{
    (void)loop;
    (void)events;
    ready_add(w->data);
}

static void on_prepare(struct ev_loop *loop, ev_prepare *w, int events)
{
    struct spop_server *s = w->data;

    (void)loop;
    (void)events;
    while (s->ready != NULL) {
        struct spop_peer *p = s->ready;

        ready_remove(p);
        peer_flush(p);
    }
}

static void on_writable(struct ev_loop *loop, ev_io *w, int events)
{
    (void)loop;
    (void)events;
    ready_add(w->data);
}

static void on_readable(struct ev_loop *loop, ev_io *w, int events)
{
    struct spop_peer *p = w->data;
    char unwanted[4096], *to = unwanted;
    size_t room = sizeof(unwanted);
    ssize_t n;

    (void)events;
    if (!p->leaving)
        to = spop_conn_input(p->conn, &room);
    n = recv(p->fd, to, room, MSG_DONTWAIT);
    if (n < 0 && is_passing(errno))
        return;
    if (n <= 0) { /* closed or reset: both are how connections end */
        spop_conn_eof(p->conn);
        peer_close(p);
        return;
    }
    if (p->leaving)
        return;
    if (!spop_conn_filled(p->conn, (size_t)n)) {
        peer_leave(p);
    } else if (!p->greeted && spop_conn_greeted(p->conn)) {
        p->greeted = true;
        ev_timer_stop(loop, &p->deadline);
    }
}

void spop_server_init(struct spop_server *s, struct ev_loop *loop, const struct spop_handler *handler,
                      struct spop_counters *counters, size_t peers_max)
{
    *s = (struct spop_server){
        .loop = loop,
        .handler = *handler,
        .counters = counters,
        .peers_max = peers_max,
        .barrier_fd = eventfd(0, EFD_CLOEXEC),
        .hello_timeout_s = SPOP_HELLO_TIMEOUT_S,
        .goodbye_timeout_s = SPOP_GOODBYE_TIMEOUT_S,
    };
    ev_prepare_init(&s->flush, on_prepare);
    ev_set_priority(&s->flush, EV_MINPRI);
    s->flush.data = s;
    ev_prepare_start(loop, &s->flush);
    ev_timer_init(&s->log_window, log_window_over, 1., 0.);
    s->log_window.data = s;
}

static void refuse(struct spop_server *s, int fd)
{
    atomic_fetch_add_explicit(&s->counters->n_refused, 1, memory_order_relaxed);
    close(fd);
}

static void peer_start(struct spop_peer *p)
{
    struct spop_server *s = p->server;

    ev_io_init(&p->read, on_readable, p->fd, EV_READ);
    ev_io_init(&p->write, on_writable, p->fd, EV_WRITE);
    ev_timer_init(&p->held, on_held, held_s, 0.);
    ev_timer_init(&p->deadline, on_deadline, s->hello_timeout_s, 0.);
    ev_set_priority(&p->deadline, -1); /* after a stall, what came in time is read first */
    p->read.data = p->write.data = p->held.data = p->deadline.data = p;
    ev_io_start(s->loop, &p->read);
    ev_timer_start(s->loop, &p->deadline);
    p->next = s->peers;
    if (p->next != NULL)
        p->next->link = &p->next;
    p->link = &s->peers;
    s->peers = p;
    s->n_peers++;
    spop_conn_on_output(p->conn, ready_add, p);
}

void spop_server_adopt(struct spop_server *s, int fd)
{
    const int on = 1;
    struct err e = {0};
    struct spop_peer *p = s->n_peers < s->peers_max ? calloc(1, sizeof(*p)) : NULL;

    if (p == NULL || !spop_conn_new(&p->conn, &s->handler, s->counters, &e)) {
        free(p);
        refuse(s, fd);
        return;
    }
    /* Fails on UNIX sockets, which do not need it. */
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    p->server = s;
    p->fd = fd;
    peer_start(p);
    if (s->stopping) {
        spop_conn_stop(p->conn);
        peer_leave(p);
    }
}

void spop_server_stop(struct spop_server *s)
{
    s->stopping = true;
    for (struct spop_peer *p = s->peers; p != NULL; p = p->next) {
        spop_conn_stop(p->conn);
        ready_add(p); /* a connection with nothing pending has said its last: the flush sees to the rest */
    }
}

bool spop_server_idle(const struct spop_server *s)
{
    return s->n_peers == 0;
}

void spop_server_release(struct spop_server *s)
{
    while (s->peers != NULL)
        peer_close(s->peers);
    if (ev_is_active(&s->log_window))
        log_window_over(s->loop, &s->log_window, 0);
    ev_prepare_stop(s->loop, &s->flush);
    if (s->barrier_fd >= 0)
        close(s->barrier_fd);
    s->barrier_fd = -1;
}
