/* One SPOP connection as a state machine over bytes: bytes in, NOTIFYs out, frames out. No socket and no clock, so
 * that a replay or a fuzzer drives the same code as a worker. Memory is taken when the connection begins, when its
 * HELLO is accepted (buffers of the negotiated size), and when more answers wait for the peer than ever before;
 * never per frame. */
#ifndef SPOA_WIRE_CONN_H
#define SPOA_WIRE_CONN_H

#include "spoa/wire/frame.h"

struct spop_conn;

enum {
    SPOP_HELLO_MAX = 1024,   /* a first frame longer than this is refused before its body is read */
    SPOP_PENDING_MAX = 1024, /* unanswered NOTIFYs of a connection; one more ends it with status 13 */
    /* Output is counted in frames of the negotiated size. While more than REST of it waits, input rests. At MAX the
     * peer is given up, with status 13: HAProxy keeps 20 streams on a connection, so one that reads at all never
     * gets there. */
    SPOP_OUT_REST_FRAMES = 3,
    SPOP_OUT_MAX_FRAMES = 32,
};

/* An unanswered NOTIFY: embedded in the request that answers it. conn turns NULL when the connection has gone. */
struct spop_pending {
    struct spop_conn *conn;
    uint64_t stream_id, frame_id;
    struct spop_pending *prev, *next;
};

/* What the handler keeps with a connection: zeroes when it begins, never read by conn. */
struct spop_note {
    uint64_t about, n;
};

struct spop_handler {
    /* A whole, single-frame NOTIFY. payload is borrowed until return. The handler adopts it with spop_conn_adopt
     * before it returns and answers exactly once, then or later; a handler that cannot even do that returns false:
     * the connection ends with status 13. */
    bool (*notify)(void *ctx, struct spop_conn *conn, const struct spop_frame *frame);
    /* Health checks and new HELLOs are answered by DISCONNECT with this status while it is not NORMAL (no policy). */
    enum spop_status (*availability)(void *ctx);
    /* May be NULL. While it is true, health checks hear DISCONNECT 13, so that HAProxy turns to another agent. Until it
     * has, it still opens connections here: they are taken, for what would be refused now might be decided nowhere. */
    bool (*leaving)(void *ctx);
    void *ctx;
};

/* Counted by one thread; read by others as relaxed atomics. n_too_big: connections ended for a frame's size;
 * n_protocol_errors: for any other fault. n_disconnects: AGENT-DISCONNECTs said, whatever the status. n_lost_acks:
 * NOTIFYs that will never be answered because the connection went, or began to stop, first. n_refused: connections
 * closed unheard (too many, or no memory); the accepting thread adds to it, too. */
struct spop_counters {
    _Atomic uint64_t n_hellos, n_healthchecks, n_notifies, n_acks, n_protocol_errors, n_too_big, n_disconnects;
    _Atomic uint64_t n_lost_acks, n_refused;
};

/* handler is copied; counters must outlive the connection. */
MUSTUSE bool spop_conn_new(struct spop_conn **out, const struct spop_handler *handler, struct spop_counters *counters,
                           struct err *e);
/* Pending requests lose their conn; their answers are dropped. */
void spop_conn_free(struct spop_conn **conn);
/* fn(ctx) is called whenever output was added, so that the owner writes it before its loop sleeps. fn must not call
 * back into c. */
void spop_conn_on_output(struct spop_conn *c, void (*fn)(void *ctx), void *ctx);

/* The space that the next read may fill (never empty while the connection wants input), and how much of it was
 * filled (at most that). Handles every frame that is complete, until input rests; once output has been written,
 * filled(c, 0) goes on with the frames that rested. False: nothing more is read; what spop_conn_output holds is
 * still to be written, then close. */
char *spop_conn_input(struct spop_conn *c, size_t *room);
MUSTUSE bool spop_conn_filled(struct spop_conn *c, size_t len);
/* The peer closed its side: normal in every state. Unanswered and unwritten things are dropped. */
void spop_conn_eof(struct spop_conn *c);

/* Bytes to write, whole frames back to back (empty: none), and how many of them were written. */
struct str spop_conn_output(const struct spop_conn *c);
void spop_conn_written(struct spop_conn *c, size_t len);
/* False while so much output waits that input must rest (a peer that does not read its ACKs), and once nothing more
 * is read. */
bool spop_conn_wants_input(const struct spop_conn *c);
/* A HELLO was accepted: the connection may stay, however idle. */
bool spop_conn_greeted(const struct spop_conn *c);
/* Everything said and written: close now. */
bool spop_conn_done(const struct spop_conn *c);
/* Why the connection ended, for one log line by its owner; NULL when it ended in order. */
const struct err *spop_conn_error(const struct spop_conn *c);

void spop_conn_adopt(struct spop_conn *c, struct spop_pending *p, const struct spop_frame *frame);
/* Answers p: opens an ACK in the connection's output. NULL when the connection has gone (p is finished then).
 * Between ack_open and ack_close the buffer holds this ACK only: put set-var actions, at least one (HAProxy ignores
 * an ACK without). ack_close finishes p; when the ACK is larger than the frame size or buf.full is set it takes the
 * bytes back, leaves p unanswered and returns false, so the caller opens a smaller one. */
struct buf *spop_ack_open(struct spop_pending *p);
MUSTUSE bool spop_ack_close(struct spop_pending *p);
/* Lives as long as the connection. */
struct spop_note *spop_conn_note(struct spop_conn *c);
size_t spop_conn_n_pending(const struct spop_conn *c);
size_t spop_conn_frame_max(const struct spop_conn *c); /* negotiated; SPOP_HELLO_MAX before */

/* Graceful end: no NOTIFY is accepted from now on; DISCONNECT 0 goes out once nothing is pending. */
void spop_conn_stop(struct spop_conn *c);
/* Ends the connection at once for a fault that its owner found (no HELLO in time, a payload that does not decode):
 * DISCONNECT with status, unanswered NOTIFYs are dropped. why goes into spop_conn_error, not to the peer. */
void spop_conn_fail(struct spop_conn *c, enum spop_status status, const char *why, ...) PRINTF_LIKE(3, 4);

#endif
