/* Takes connections off a listening socket on a loop, and rests while there is no descriptor or memory for one. */
#ifndef SPOA_WIRE_ACCEPTOR_H
#define SPOA_WIRE_ACCEPTOR_H

#include <ev.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* The loop's thread alone, but for n_failures. Not to be moved once it is started. */
struct acceptor {
    struct ev_loop *loop;
    struct ev_io io; /* stopped while it rests */
    struct ev_timer rest;
    void (*on_connection)(void *ctx, int fd);
    void *ctx;
    bool is_failing;             /* since the last time that the queue was emptied */
    _Atomic uint64_t n_failures; /* accepts refused for want of descriptors or memory; any thread reads */
};

/* listener is non-blocking and stays the caller's. on_connection takes over fd, which is non-blocking and close-on-exec. A socket
 * whose connection can't be taken stays readable: after such a failure nothing is tried for 100 ms, and one line is logged until
 * the queue has been emptied again. The connections wait meanwhile. */
void acceptor_start(struct acceptor *a, struct ev_loop *loop, int listener, void (*on_connection)(void *ctx, int fd), void *ctx);
void acceptor_stop(struct acceptor *a);

#endif
