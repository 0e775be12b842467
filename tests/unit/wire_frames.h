/* Frames as HAProxy sends them, and what came back, for the tests of spoa/wire. */
#ifndef TESTS_UNIT_WIRE_FRAMES_H
#define TESTS_UNIT_WIRE_FRAMES_H

#include "spoa/wire/frame.h"

void wire_put_hello(struct buf *b, uint32_t frame_max);
void wire_put_health_check(struct buf *b);
/* One message "m" with one text argument of fill_len bytes. */
void wire_put_notify(struct buf *b, uint64_t stream_id, uint64_t frame_id, size_t fill_len);

/* The next whole frame of *in. False: there is none. */
MUSTUSE bool wire_next(struct str *in, struct spop_frame *out);
/* True when the frame is an AGENT-DISCONNECT with that status. */
bool wire_is_disconnect(const struct spop_frame *frame, enum spop_status status);

#endif
