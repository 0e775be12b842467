/* The record intake: takes HAProxy's access records off its ring (octet-counted over a UNIX stream, RFC 6587 3.4.1) on a thread of its own. */
#ifndef SPOA_RECORD_INTAKE_H
#define SPOA_RECORD_INTAKE_H

#include <ev.h>
#include <pthread.h>
#include <stdatomic.h>

#include "common/base/err.h"
#include "spoa/wire/acceptor.h"

enum { INTAKE_RECORD_MAX = 16384, INTAKE_PEERS_MAX = 16 };

/* Cuts a byte stream into records. Pure: no socket. */
struct intake_stream {
    char buf[INTAKE_RECORD_MAX + 8];
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
    void (*on_record)(void *ctx, struct str record); /* intake's thread */
    void *ctx;
    struct ev_loop *loop;
    struct acceptor acceptor;
    struct ev_async stop;
    struct intake_peer *peers;
    size_t n_peers;
    pthread_t thread;
    bool started;
    _Atomic uint64_t n_malformed; /* connections ended for what they sent */
};

/* Takes the listening descriptor over. */
MUSTUSE bool intake_start(struct intake *in, int listener, void (*on_record)(void *ctx, struct str record), void *ctx, struct err *e);
/* Reads what has arrived already, then ends the thread. */
void intake_stop(struct intake *in);

#endif
