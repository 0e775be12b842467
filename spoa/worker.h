/* A worker: one thread with one libev loop, its SPOP connections, its requests and its counters. */
#ifndef SPOA_WORKER_H
#define SPOA_WORKER_H

#include <ev.h>
#include <pthread.h>

#include "spoa/request/request.h"
#include "spoa/wire/server.h"

enum { WORKER_FDS_MAX = 256 };

struct worker {
    struct request_context requests; /* first: the SPOP handler's context */
    struct spop_counters spop_counters;
    struct valkey_counters valkey_counters;
    struct spop_server server;
    struct ev_loop *loop;
    struct ev_async wake;
    pthread_t thread;
    bool started;

    /* Mailbox. The policy's slot is in requests.lease_slot. */
    pthread_mutex_t fds_lock;
    int fds[WORKER_FDS_MAX]; /* accepted, not yet adopted */
    size_t n_fds;
    _Atomic bool draining; /* health checks are told to go elsewhere */
    _Atomic bool stopping; /* finish what is pending, then end */
};

/* Main thread. peers_max: SPOP connections of this worker. node: where limits are counted; NULL: in settings->store. */
MUSTUSE bool worker_init(struct worker *w, const struct request_settings *settings, struct valkey_node *node, size_t peers_max, struct err *e);
MUSTUSE bool worker_start(struct worker *w, struct err *e);
/* Hands a connection over; closes it when the worker has WORKER_FDS_MAX waiting (counted as refused). Any thread. */
void worker_give(struct worker *w, int fd);
/* After lease_publish. Any thread. */
void worker_wake(struct worker *w);
void worker_drain(struct worker *w);
void worker_stop(struct worker *w);
/* After worker_stop: waits at most wait_ms for the thread to end; false when it has not (a peer that does not read its answers). */
bool worker_join(struct worker *w, uint64_t wait_ms);
/* After worker_join: lets go of everything. */
void worker_release(struct worker *w);

#endif
