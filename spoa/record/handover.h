/* Giving a record connection to the process that takes this one's place, so that its other end notices nothing and no record is lost or read twice.
 *
 * The one that leaves connects to the socket that its successor listens on and sends "handover 1 <n> " and the n bytes that it has read of the
 * connection and not yet used, the connection's descriptor with the first byte (SCM_RIGHTS, unix(7)), nothing else, and closes. What has come whole is the
 * receiver's from then on; what has not, it closes untouched, and the sender still owns it. */
#ifndef SPOA_RECORD_HANDOVER_H
#define SPOA_RECORD_HANDOVER_H

#include <sys/types.h>

#include "common/base/str.h"

enum { HANDOVER_HEAD_MAX = 32, HANDOVER_REST_MAX = 16384 + 8 };

/* --- The one that leaves --- */

/* A connection to the process that listens at path; -1 where nobody does, or this process itself, or one of another user. */
int handover_connect(const char *path);
/* Sends fd and rest (at most HANDOVER_REST_MAX bytes) over to, a connection of handover_connect; both stay the caller's. Waits for a reader that is
 * slow until end_us of clock_system. False: it has not gone out whole, and the receiver does not use fd once to is closed. */
MUSTUSE bool handover_send(int to, int fd, struct str rest, uint64_t end_us);

/* --- The successor --- */

/* Whether what a connection begins with is a hand-over. in is not empty. */
bool handover_begins(struct str in);
/* Pure. HANDOVER_WHOLE: rest is what the process that left had read. HANDOVER_BAD: it can't become one, or more came than one. */
enum handover { HANDOVER_PART, HANDOVER_WHOLE, HANDOVER_BAD };
enum handover handover_parse(struct str in, struct str *rest);
/* recv() that takes a descriptor, too: into *passed, which is the caller's to close, else -1. More than one is refused: -1, EPROTO. */
ssize_t handover_recv(int from, char *at, size_t room, int *passed);
/* Whether the peer of from may hand over (it runs as this user), and passed is a connected UNIX stream. */
bool handover_is_fit(int from, int passed);

#endif
