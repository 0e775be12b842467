/* Sockets and framing of the record intake. */
#include "spoa/record/intake.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/log.h"

enum { READS_MAX = 64 };

/* After records a peer rests this long: those that come meanwhile are taken together, and as long as some come its socket is not watched, so that
 * HAProxy's writes wake nobody. */
static const double rest_s = 0.005;

struct intake_peer {
    struct intake *intake;
    struct intake_peer *prev, *next;
    struct ev_io io; /* either this or rest is active */
    struct ev_timer rest;
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

/* Reads what is there, but lets other peers and the stop in between. */
static enum took peer_read(struct intake_peer *peer)
{
    struct intake *in = peer->intake;
    enum took took = TOOK_NOTHING;
    for (int i = 0; i < READS_MAX; i++) {
        size_t room;
        char *at = intake_stream_room(&peer->stream, &room);
        ssize_t n = recv(peer->io.fd, at, room, MSG_DONTWAIT);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            return took;
        if (n <= 0)
            return PEER_FINISHED;
        if (!intake_stream_filled(&peer->stream, (size_t) n, in->on_record, in->ctx)) {
            atomic_fetch_add(&in->n_malformed, 1);
            log_event(LOG_LEVEL_ERROR, "records_malformed",
                      "a peer of the record socket does not send octet-counted records of at most %d bytes; closed it", INTAKE_RECORD_MAX);
            return PEER_FINISHED;
        }
        took = TOOK_SOME;
        if ((size_t) n < room)
            return took;
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

static void on_connection(void *ctx, int fd)
{
    struct intake *in = ctx;
    struct intake_peer *peer = in->n_peers < INTAKE_PEERS_MAX ? calloc(1, sizeof *peer) : NULL;
    if (peer == NULL) {
        close(fd);
        return;
    }
    peer->intake = in;
    peer->next = in->peers;
    if (in->peers != NULL)
        in->peers->prev = peer;
    in->peers = peer;
    in->n_peers++;
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

static void *intake_run(void *arg)
{
    struct intake *in = arg;
    ev_run(in->loop, 0);
    while (in->peers != NULL) {
        peer_read(in->peers);
        peer_close(in->peers);
    }
    return NULL;
}

bool intake_start(struct intake *in, int listener, void (*on_record)(void *ctx, struct str record), void *ctx, struct err *e)
{
    memset(in, 0, sizeof *in);
    in->listener = listener;
    in->on_record = on_record;
    in->ctx = ctx;
    in->loop = ev_loop_new(EVFLAG_NOENV | EVFLAG_NOSIGMASK);
    if (in->loop == NULL)
        return err_set(e, ERR_IO, "", "cannot create an event loop");
    acceptor_start(&in->acceptor, in->loop, listener, on_connection, in);
    ev_async_init(&in->stop, on_stop);
    ev_async_start(in->loop, &in->stop);
    int rc = pthread_create(&in->thread, NULL, intake_run, in);
    if (rc != 0) {
        ev_loop_destroy(in->loop);
        return err_set(e, ERR_IO, "", "cannot start the record intake: %s", strerror(rc));
    }
    pthread_setname_np(in->thread, "edge-records");
    in->started = true;
    return true;
}

void intake_stop(struct intake *in)
{
    if (!in->started)
        return;
    ev_async_send(in->loop, &in->stop);
    pthread_join(in->thread, NULL);
    ev_loop_destroy(in->loop);
    close(in->listener);
    in->started = false;
}
