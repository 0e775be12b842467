/* The inside of one SPOP connection, shared by conn.c (life, output, end) and conn_input.c (frames that come in). */
#ifndef SPOA_WIRE_CONN_PRIV_H
#define SPOA_WIRE_CONN_PRIV_H

#include "common/base/counter.h"
#include "spoa/wire/conn.h"

enum {
    SPOP_IN_FIRST = SPOP_LENGTH_BYTES + SPOP_HELLO_MAX,
    SPOP_OUT_FIRST = 256,      /* holds an AGENT-HELLO or a DISCONNECT, all that is said before a HELLO is accepted */
    SPOP_OUT_RESERVE = 128,    /* kept free behind the ACKs so that a DISCONNECT always fits */
    SPOP_OUT_BEGIN_FRAMES = 4, /* untouched pages cost nothing */
};

enum spop_conn_state { SPOP_CONN_HELLO, SPOP_CONN_OPEN, SPOP_CONN_CLOSING };

struct spop_conn {
    struct spop_handler handler;
    struct spop_counters *counters;
    void (*on_output)(void *ctx);
    void *on_output_ctx;
    enum spop_conn_state state;
    bool stopping;
    size_t frame_max;
    char *in; /* [in_start, in_end): received, not handled */
    size_t in_cap, in_start, in_end;
    char *out; /* [out_start, out_end): whole frames to write; the first may be partly written */
    size_t out_cap, out_start, out_end;
    struct buf ack; /* the ACK being built at out_end */
    struct spop_pending *pending;
    size_t n_pending;
    struct spop_note note;
    struct err error;
    char in_first[SPOP_IN_FIRST];
    char out_first[SPOP_OUT_FIRST];
};

/* Takes p off the connection: its answer, if one comes, goes nowhere. */
void spop_conn_detach(struct spop_conn *c, struct spop_pending *p);

/* Buffers for frames of the negotiated size; what came behind the HELLO moves along. False when memory is refused. */
MUSTUSE bool spop_conn_grow(struct spop_conn *c, size_t frame_max);
/* len bytes were put at out_end. */
void spop_conn_added(struct spop_conn *c, size_t len);

/* Says DISCONNECT and drops what is unanswered; nothing is read from now on. */
void spop_conn_end(struct spop_conn *c, enum spop_status status);
/* The same for the fault in c->error. */
void spop_conn_end_failed(struct spop_conn *c, enum spop_status status);
/* Ends a connection that was told to stop, once nothing is pending. */
void spop_conn_end_if_stopped(struct spop_conn *c);

#endif
