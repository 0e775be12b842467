/* What HAProxy's process is told beside a request's own decision: the caps, how long a
 * client may pause in a body, and the pages for errors that it answers itself. */
#ifndef SPOA_REQUEST_PROCESS_VARS_H
#define SPOA_REQUEST_PROCESS_VARS_H

#include "spoa/request/request.h"

enum {
    PROCESS_VARS_ROUNDS = 2,
    PROCESS_VARS_REPEAT_US = 5 * 1000 * 1000,
    PROCESS_VARS_ACK_MAX = 24 * 1024, /* bytes of an ACK up to which a page may come along */
};

/* Adds to r's ACK, which has ack_len bytes, what the policy now in force sets: the caps, the pause, and the next of its default pages while the ACK is small.
 *
 * HAProxy keeps a process's variables for good, but an ACK can be lost, a reloaded HAProxy begins without them, over connections that are new,
 * and workers and agents take a new policy one after the other. So each connection is told all of them PROCESS_VARS_ROUNDS times, and goes on
 * until PROCESS_VARS_REPEAT_US after the worker first told the policy's; from then on nothing is added.
 *
 * The caller takes back what does not fit. That is never so within a frame of the size that haproxy.cfg asks for, and is not tried again. */
void process_vars_put(struct buf *b, struct request *r, size_t ack_len);

#endif
