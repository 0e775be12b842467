/* The other side of one spop_conn: feeds it bytes in chosen chunks, keeps what it writes, and answers its NOTIFYs. */
#ifndef TESTS_REPLAY_PEER_H
#define TESTS_REPLAY_PEER_H

#include "spoa/wire/conn.h"

enum { HELD_MAX = 64 };

struct held {
    struct spop_pending pending;
    bool used;
    char *payload; /* a copy */
    size_t payload_len;
};

struct peer {
    struct spop_conn *conn;
    struct spop_counters counters;
    bool holding, refusing, leaving, paused, ended;
    enum spop_status available;
    struct held held[HELD_MAX];
    char *in; /* sent, not taken by the connection yet */
    size_t in_len, in_cap;
    char *out; /* written by the connection */
    size_t out_len, out_cap;
};

/* NOTIFYs are answered as they come, with one text variable for each argument ("int64:-1") and `ok` at last, unless
 * holding; one whose payload does not decode ends the connection with status 4. False when memory is refused. */
MUSTUSE bool peer_init(struct peer *p);
void peer_release(struct peer *p);

MUSTUSE bool peer_send(struct peer *p, struct str chunk);
/* Answers a held NOTIFY, first with its arguments, and if that is larger than a frame with `too_large`. False: it
 * is not held. */
MUSTUSE bool peer_answer(struct peer *p, uint64_t stream_id, uint64_t frame_id);
/* Reads what was written and lets input that rested go on. */
MUSTUSE bool peer_read(struct peer *p);

#endif
