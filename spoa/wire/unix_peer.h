/* The connecting end of a UNIX stream socket whose other end may not be there, or not read. */
#ifndef SPOA_WIRE_UNIX_PEER_H
#define SPOA_WIRE_UNIX_PEER_H

#include "common/base/str.h"

/* A connected non-blocking socket, the caller's, or -1 and errno. Connecting to a UNIX socket succeeds or fails at once. */
int unix_connect(const char *path);
/* Waits for poll's events; false at end_us of the monotonic clock. */
bool unix_wait(int fd, short events, uint64_t end_us);
/* Sends all of bytes. False, with errno, when the peer has gone, or (EAGAIN) did not read in time: then a part may have been sent. */
MUSTUSE bool unix_send(int fd, struct str bytes, uint64_t end_us);

#endif
