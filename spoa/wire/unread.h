/* How much lies before a peer unread. HAProxy (3.2 and 3.4) never looks again at a connection that has filled its buffer (tune.bufsize) in one go: it
 * takes the full buffer for something that keeps it from reading in it, and every request on the connection is lost. So no more than fits may be
 * written ahead of it. */
#ifndef SPOA_WIRE_UNREAD_H
#define SPOA_WIRE_UNREAD_H

#include "common/base/str.h"

/* Zeroes when the connection begins. `out` below: what is to be written, whole frames behind the rest of one that was written in part. */
struct unread {
    size_t bytes;      /* written since the peer was last seen to have read all: at most so many lie before it */
    size_t part, rest; /* of a frame that was written in part: the bytes written, which lie in the peer's buffer until it is whole, and those to come */
};

/* Worth a look at what the peer has read. */
bool unread_is_much(const struct unread *u, struct str out);
/* True: the peer has read what was written, and the first byte of out is written now, as a barrier: a receive that was still under way ends with
 * it. For over a UNIX socket a receive goes on while it finds more, the kernel tells that all is read before it is over, and what is written then would
 * come on top. barrier_fd: any descriptor; a copy of it goes along, which makes the byte a barrier (unix(7), SCM_RIGHTS). HAProxy does not ask for it,
 * so the kernel throws it away. Negative: the byte is no barrier.
 *
 * Over TCP only the peer's kernel tells that it has all, and there is no barrier: a HAProxy that is slow to read can be lost there. */
bool unread_look(struct unread *u, int fd, int barrier_fd, struct str out);
/* How many bytes of out may be written. 0: the peer has to read first. A frame that alone is more than fits goes out when nothing is unread. */
size_t unread_room(const struct unread *u, struct str out);
/* The first n bytes of out were written. */
void unread_add(struct unread *u, struct str out, size_t n);

#endif
