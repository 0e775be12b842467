/* SPOP sockets: listeners (main thread) and a worker's set of connections on its libev loop. */
#ifndef SPOA_WIRE_SERVER_H
#define SPOA_WIRE_SERVER_H

#include <ev.h>

#include "spoa/wire/conn.h"

enum {
    SPOP_HELLO_TIMEOUT_S = 5,   /* a connection that has said no HELLO by then is ended with status 2 */
    SPOP_GOODBYE_TIMEOUT_S = 1, /* after our last word: for the peer to read it and close */
    SPOP_LOG_PER_S_MAX = 10,    /* lines about failed connections a second; the rest is counted in one line */
};

/* "unix@/path" (mode 0660, bound under a temporary name and renamed over what is there, so an exchange never has a
 * gap; nobody unlinks it later, it may be the next agent's by then), or "tcp@127.0.0.1:9000", "tcp@[::1]:9000"
 * (port 0: any). Non-blocking, close-on-exec, backlog 1024. */
MUSTUSE bool spop_listen(struct str at, int *out_fd, struct err *e);

/* One worker's connections. Only the worker's thread calls these. Not to be moved once it is initialised. */
struct spop_server {
    struct ev_loop *loop;
    struct spop_handler handler;
    struct spop_counters *counters;
    struct spop_peer *peers; /* list */
    struct spop_peer *ready; /* list of those with output that was not offered to the socket yet */
    size_t n_peers, peers_max;
    int barrier_fd; /* of unread.h */
    double hello_timeout_s, goodbye_timeout_s; /* set by init; may be changed before the first adopt */
    bool stopping;
    ev_prepare flush;
    ev_timer log_window; /* active for a second after the first line */
    unsigned n_logged, n_unlogged;
};

/* ACKs, whether written within a notify callback or after it (a request that waited), leave in one send a
 * connection and loop turn, from a prepare watcher of the lowest priority. The server's watchers keep the loop
 * alive until release. */
void spop_server_init(struct spop_server *s, struct ev_loop *loop, const struct spop_handler *handler,
                      struct spop_counters *counters, size_t peers_max);
/* Takes fd over; closes it when peers_max is reached or memory is refused (counted). */
void spop_server_adopt(struct spop_server *s, int fd);
void spop_server_stop(struct spop_server *s);       /* spop_conn_stop on every connection, and on those still to come */
bool spop_server_idle(const struct spop_server *s); /* no connections left */
void spop_server_release(struct spop_server *s);    /* closes everything at once */

#endif
