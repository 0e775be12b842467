/* The record intake: takes HAProxy's access records off its ring (octet-counted over a UNIX stream, RFC 6587 3.4.1) on a thread of its own, and hands
 * connections that are still open to the process that takes this one's place. */
#ifndef SPOA_RECORD_INTAKE_H
#define SPOA_RECORD_INTAKE_H

#include <ev.h>
#include <pthread.h>
#include <stdatomic.h>

#include "common/base/err.h"
#include "spoa/record/handover.h"
#include "spoa/wire/acceptor.h"

enum {
    INTAKE_RECORD_MAX = 16384,
    INTAKE_PEERS_MAX = 16, /* HAProxy has one, for a moment of a reload two; an agent that leaves adds as many */
    INTAKE_STOP_MS = 1000, /* for handing over and for the last records */
};

/* Cuts a byte stream into records. Pure: no socket. */
struct intake_stream {
    char buf[INTAKE_RECORD_MAX + HANDOVER_HEAD_MAX];
    size_t len;
};
/* The space that the next read may fill; never empty. */
char *intake_stream_room(struct intake_stream *s, size_t *room);
/* Calls fn for each record that is whole now, without its trailing newline. False: the peer does not speak octet counting, or a
 * record is longer than INTAKE_RECORD_MAX; the stream is useless from here on. */
MUSTUSE bool intake_stream_filled(struct intake_stream *s, size_t len, void (*fn)(void *ctx, struct str record), void *ctx);

struct intake_peer;

struct intake {
    int listener;
    void (*on_record)(void *ctx, struct str record); /* intake's thread, as on_tick */
    void (*on_tick)(void *ctx);
    void *ctx;
    struct ev_loop *loop;
    struct acceptor acceptor;
    struct ev_timer tick;
    struct ev_async stop;
    struct intake_peer *peers;
    size_t n_peers;
    bool is_full; /* since a connection was refused last */
    const char *_Atomic successor;
    pthread_t thread;
    bool started;
    _Atomic uint64_t n_malformed;   /* connections ended for what they sent */
    _Atomic uint64_t n_refused;     /* connections closed unheard: INTAKE_PEERS_MAX, or no memory */
    _Atomic uint64_t n_handed_over; /* connections given to another process */
    _Atomic uint64_t n_taken_over;  /* connections got from another process */
};

/* Takes the listening descriptor over. A connection is a record stream, or a hand-over (handover.h) of one. on_tick is called about once a second,
 * records or none; NULL: nobody asks for it. */
MUSTUSE bool intake_start(struct intake *in, int listener, void (*on_record)(void *ctx, struct str record), void (*on_tick)(void *ctx), void *ctx,
                          struct err *e);
/* Ends the thread. Where another process of this user has taken over the socket named successor (NULL: nobody can have), it gets every connection as
 * it stands. Else the peers learn that nobody listens any more, and what they have sent by then is read. Ticks once more. Takes at most
 * INTAKE_STOP_MS. */
void intake_stop(struct intake *in, const char *successor);

#endif
