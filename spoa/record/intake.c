/* The peers of the record intake: framing, reading, and what becomes of them at the end. */
#include "spoa/record/intake.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/log.h"

enum { READS_MAX = 64 };

/* After records a peer rests this long: those that come meanwhile are taken together, and as long as some come its socket is not watched, so that
 * HAProxy's writes wake nobody. */
static const double rest_s = 0.005;
static const double tick_s = 1.;

/* What a peer turned out to be by its first byte. */
enum peer_kind { PEER_NEW, PEER_RECORDS, PEER_HANDOVER };

struct intake_peer {
    struct intake *intake;
    struct intake_peer *prev, *next;
    struct ev_io io; /* either this or rest is active */
    struct ev_timer rest;
    enum peer_kind kind;
    int passed; /* with the first byte of a hand-over; else -1 */
    struct intake_stream stream;
};

char *intake_stream_room(struct intake_stream *s, size_t *room)
{
    *room = sizeof s->buf - s->len;
    return s->buf + s->len;
}

enum frame { FRAME_CUT, FRAME_WHOLE, FRAME_BAD };

/* "<length> <message>" at the front of in. */
static enum frame frame_take(struct str *in, struct str *message)
{
    size_t len = 0, i = 0;
    for (; i < in->len && ascii_is_digit(in->p[i]); i++) {
        len = len * 10 + (size_t) (in->p[i] - '0');
        if (len > INTAKE_RECORD_MAX)
            return FRAME_BAD;
    }
    if (i == in->len)
        return FRAME_CUT;
    if (in->p[i] != ' ' || i == 0)
        return FRAME_BAD;
    if (in->len - i - 1 < len)
        return FRAME_CUT;
    *message = str_sub(*in, i + 1, i + 1 + len);
    *in = str_sub(*in, i + 1 + len, in->len);
    return FRAME_WHOLE;
}

bool intake_stream_filled(struct intake_stream *s, size_t len, void (*fn)(void *ctx, struct str record), void *ctx)
{
    s->len += len;
    struct str in = {s->buf, s->len}, message;
    enum frame found;
    while ((found = frame_take(&in, &message)) == FRAME_WHOLE) {
        if (message.len > 0 && message.p[message.len - 1] == '\n')
            message.len--;
        fn(ctx, message);
    }
    memmove(s->buf, in.p, in.len);
    s->len = in.len;
    return found == FRAME_CUT;
}

static void peer_close(struct intake_peer *peer)
{
    struct intake *in = peer->intake;
    ev_io_stop(in->loop, &peer->io);
    ev_timer_stop(in->loop, &peer->rest);
    close(peer->io.fd);
    if (peer->passed >= 0)
        close(peer->passed);
    if (peer->prev != NULL)
        peer->prev->next = peer->next;
    else
        in->peers = peer->next;
    if (peer->next != NULL)
        peer->next->prev = peer->prev;
    in->n_peers--;
    free(peer);
}

enum took { TOOK_NOTHING, TOOK_SOME, PEER_FINISHED };

static const char not_records[] = "octet-counted records of at most 16384 bytes", not_handover[] = "one whole hand-over";

static enum took malformed(struct intake_peer *peer, const char *what)
{
    atomic_fetch_add(&peer->intake->n_malformed, 1);
    log_event(LOG_LEVEL_ERROR, "records_malformed", "a peer of the record socket does not send %s; closed it", what);
    return PEER_FINISHED;
}

/* The connection that was handed over takes the place of the one that it came on. Its watcher is not active: the caller starts it again. */
static void peer_become(struct intake_peer *peer, struct str rest)
{
    struct intake *in = peer->intake;
    ev_io_stop(in->loop, &peer->io);
    close(peer->io.fd);
    ev_io_set(&peer->io, peer->passed, EV_READ);
    peer->passed = -1;
    peer->kind = PEER_RECORDS;
    memmove(peer->stream.buf, rest.p, rest.len);
    peer->stream.len = rest.len;
    atomic_fetch_add(&in->n_taken_over, 1);
    log_event(LOG_LEVEL_INFO, "records_taken_over", "a record connection of the process that leaves goes on here");
}

static enum took take_records(struct intake_peer *peer, size_t len)
{
    struct intake *in = peer->intake;
    return intake_stream_filled(&peer->stream, len, in->on_record, in->ctx) ? TOOK_SOME : malformed(peer, not_records);
}

static enum took take_handover(struct intake_peer *peer, size_t len)
{
    struct str rest;
    peer->stream.len += len;
    switch (handover_parse((struct str){peer->stream.buf, peer->stream.len}, &rest)) {
    case HANDOVER_PART:
        return TOOK_SOME;
    case HANDOVER_BAD:
        return malformed(peer, not_handover);
    case HANDOVER_WHOLE:
        break;
    }
    if (!handover_is_fit(peer->io.fd, peer->passed))
        return malformed(peer, "its hand-over as this user, with a connection");
    peer_become(peer, rest);
    return take_records(peer, 0);
}

/* len bytes were read to the end of the stream. */
static enum took peer_took(struct intake_peer *peer, size_t len)
{
    if (peer->kind == PEER_NEW)
        peer->kind = handover_begins((struct str){peer->stream.buf, len}) ? PEER_HANDOVER : PEER_RECORDS;
    if (peer->kind == PEER_HANDOVER)
        return take_handover(peer, len);
    return peer->passed < 0 ? take_records(peer, len) : malformed(peer, not_records);
}

/* One read. *more: it may not have been all that is there. */
static enum took peer_take(struct intake_peer *peer, bool *more)
{
    size_t room;
    char *at = intake_stream_room(&peer->stream, &room);
    ssize_t n;
    do
        n = peer->kind == PEER_NEW ? handover_recv(peer->io.fd, at, room, &peer->passed) : recv(peer->io.fd, at, room, MSG_DONTWAIT);
    while (n < 0 && errno == EINTR);
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
        return TOOK_NOTHING;
    if (n <= 0 && (peer->kind == PEER_HANDOVER || (n < 0 && errno == EPROTO)))
        return malformed(peer, not_handover);
    if (n <= 0)
        return PEER_FINISHED;
    /* Of a hand-over a read may get less than there is, and behind it another connection waits. */
    *more = (size_t) n == room || peer->kind != PEER_RECORDS;
    return peer_took(peer, (size_t) n);
}

/* Reads what is there, but lets other peers and the stop in between. */
static enum took peer_read(struct intake_peer *peer)
{
    enum took took = TOOK_NOTHING;
    bool more = true;
    for (int i = 0; more && i < READS_MAX; i++) {
        enum took now = peer_take(peer, &more);
        if (now != TOOK_SOME)
            return now == TOOK_NOTHING ? took : now;
        took = TOOK_SOME;
    }
    return took;
}

static void peer_serve(struct intake_peer *peer)
{
    struct intake *in = peer->intake;
    switch (peer_read(peer)) {
    case TOOK_NOTHING:
        ev_io_start(in->loop, &peer->io);
        return;
    case TOOK_SOME:
        ev_io_stop(in->loop, &peer->io);
        ev_timer_set(&peer->rest, rest_s, 0.);
        ev_timer_start(in->loop, &peer->rest);
        return;
    case PEER_FINISHED:
        peer_close(peer);
        return;
    }
}

static void on_readable(struct ev_loop *loop, struct ev_io *watcher, int events)
{
    (void) loop;
    (void) events;
    peer_serve(watcher->data);
}

static void on_rested(struct ev_loop *loop, struct ev_timer *watcher, int events)
{
    (void) loop;
    (void) events;
    peer_serve(watcher->data);
}

/* One line until there was room again: HAProxy comes back every second. */
static void refuse(struct intake *in, int fd)
{
    atomic_fetch_add(&in->n_refused, 1);
    if (!in->is_full)
        log_event(LOG_LEVEL_ERROR, "records_refused", "the record socket has %zu connections, or memory is short: another one was closed", in->n_peers);
    in->is_full = true;
    close(fd);
}

static void on_connection(void *ctx, int fd)
{
    struct intake *in = ctx;
    struct intake_peer *peer = in->n_peers < INTAKE_PEERS_MAX ? calloc(1, sizeof *peer) : NULL;
    if (peer == NULL) {
        refuse(in, fd);
        return;
    }
    peer->intake = in;
    peer->passed = -1;
    peer->next = in->peers;
    if (in->peers != NULL)
        in->peers->prev = peer;
    in->peers = peer;
    in->n_peers++;
    in->is_full = false;
    ev_io_init(&peer->io, on_readable, fd, EV_READ);
    peer->io.data = peer;
    ev_timer_init(&peer->rest, on_rested, rest_s, 0.);
    peer->rest.data = peer;
    ev_io_start(in->loop, &peer->io);
}

static void on_stop(struct ev_loop *loop, struct ev_async *watcher, int events)
{
    (void) watcher;
    (void) events;
    ev_break(loop, EVBREAK_ALL);
}

/* Whether the successor has it now. */
static bool peer_hand_over(struct intake_peer *peer, const char *successor, uint64_t end_us)
{
    int to = successor != NULL ? handover_connect(successor) : -1;
    if (to < 0)
        return false;
    bool is_given = handover_send(to, peer->io.fd, (struct str){peer->stream.buf, peer->stream.len}, end_us);
    close(to);
    if (is_given)
        atomic_fetch_add(&peer->intake->n_handed_over, 1);
    else
        log_event(LOG_LEVEL_WARN, "records_not_handed_over", "the process that takes over does not read its record socket; what has come is read here");
    return is_given;
}

/* Reads all that the peer has sent; ends by itself where it can send no more. */
static enum took peer_drain(struct intake_peer *peer, uint64_t end_us)
{
    enum took took;
    bool more;
    do
        took = peer_take(peer, &more);
    while (took == TOOK_SOME && clock_mono_us(&clock_system) < end_us);
    return took;
}

static void peer_end(struct intake_peer *peer, const char *successor, uint64_t end_us)
{
    /* A hand-over to this process that was not read yet: what it brings goes on to the next one. */
    bool has_ended = peer->kind != PEER_RECORDS && peer_drain(peer, end_us) == PEER_FINISHED;
    if (!has_ended && (peer->kind == PEER_HANDOVER || !peer_hand_over(peer, successor, end_us))) {
        /* The peer's writes fail from now on, so that it keeps what it has for whoever listens next. */
        shutdown(peer->io.fd, SHUT_RD);
        (void) peer_drain(peer, end_us);
    }
    peer_close(peer);
}

static void on_second(struct ev_loop *loop, struct ev_timer *watcher, int events)
{
    (void) loop;
    (void) events;
    struct intake *in = watcher->data;
    in->on_tick(in->ctx);
}

static void *intake_run(void *arg)
{
    struct intake *in = arg;
    ev_run(in->loop, 0);
    const uint64_t end_us = clock_mono_us(&clock_system) + INTAKE_STOP_MS * UINT64_C(1000);
    int fd;
    acceptor_stop(&in->acceptor);
    while ((fd = accept4(in->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0)
        on_connection(in, fd);
    while (in->peers != NULL)
        peer_end(in->peers, in->successor, end_us);
    if (in->on_tick != NULL)
        in->on_tick(in->ctx);
    return NULL;
}

bool intake_start(struct intake *in, int listener, void (*on_record)(void *ctx, struct str record), void (*on_tick)(void *ctx), void *ctx,
                  struct err *e)
{
    memset(in, 0, sizeof *in);
    in->listener = listener;
    in->on_record = on_record;
    in->on_tick = on_tick;
    in->ctx = ctx;
    in->loop = ev_loop_new(EVFLAG_NOENV | EVFLAG_NOSIGMASK);
    if (in->loop == NULL)
        return err_set(e, ERR_IO, "", "cannot create an event loop");
    acceptor_start(&in->acceptor, in->loop, listener, on_connection, in);
    ev_async_init(&in->stop, on_stop);
    ev_async_start(in->loop, &in->stop);
    ev_timer_init(&in->tick, on_second, tick_s, tick_s);
    in->tick.data = in;
    if (on_tick != NULL)
        ev_timer_start(in->loop, &in->tick);
    int rc = pthread_create(&in->thread, NULL, intake_run, in);
    if (rc != 0) {
        ev_loop_destroy(in->loop);
        return err_set(e, ERR_IO, "", "cannot start the record intake: %s", strerror(rc));
    }
    pthread_setname_np(in->thread, "edge-records");
    in->started = true;
    return true;
}

void intake_stop(struct intake *in, const char *successor)
{
    if (!in->started)
        return;
    in->successor = successor;
    ev_async_send(in->loop, &in->stop);
    pthread_join(in->thread, NULL);
    ev_loop_destroy(in->loop);
    close(in->listener);
    in->started = false;
}
