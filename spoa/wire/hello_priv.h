/* The HELLO handshake's contents: what HAProxy offers, what we answer (HAProxy doc/SPOE.txt 3.2.4, 3.2.5). */
#ifndef SPOA_WIRE_HELLO_PRIV_H
#define SPOA_WIRE_HELLO_PRIV_H

#include "spoa/wire/frame.h"

struct spop_hello {
    size_t frame_max; /* the smaller of what HAProxy and we can hold */
    bool pipelining;
    bool healthcheck;
};

/* NORMAL: *out is complete. Else the status that tells HAProxy what is wrong with its HELLO, *out untouched. Names that
 * we do not know (and engine-id, which nobody here needs) are skipped. */
MUSTUSE enum spop_status spop_hello_read(const struct spop_frame *frame, struct spop_hello *out, struct err *e);

/* Puts the AGENT-HELLO, under 128 bytes. */
void spop_hello_answer(struct buf *b, const struct spop_hello *hello);

#endif
