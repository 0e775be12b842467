/* An agent's worker without sockets: NOTIFYs made from rows of data, the ACK that answers them as JSON. */
#ifndef TESTS_UNIT_NOTIFY_H
#define TESTS_UNIT_NOTIFY_H

#include <jansson.h>

#include "spoa/request/request.h"

enum { NOTIFY_STREAM = 7, NOTIFY_FRAME = 3 };

/* A connection past its HELLO in front of a request context, with a store and a clock that only the test moves. */
struct notify_bench {
    struct request_context context;
    struct rate_store *store;
    struct spop_conn *conn;
    struct spop_counters counters;
    struct lease_source source;
    struct clock clock;
    uint64_t now_us;
    struct arena arena; /* of ingress */
    struct ingress ingress;
    bool refuses, refused; /* refuses: the next NOTIFY's refuse_n-th request for memory is refused; refused: it came to that */
    size_t refuse_n;
};

/* policy_file NULL: no policy is in force. False: a part of it could not be made. */
bool notify_bench_init(struct notify_bench *b, const char *policy_file);
void notify_bench_release(struct notify_bench *b);
/* Publishes another policy, as a reload does. */
bool notify_bench_publish(struct notify_bench *b, const char *policy_file);
bool notify_bench_publish_policy(struct notify_bench *b, struct policy *policy);
/* How requests reach it, by the names of struct ingress_text: {"client_ip_source": text, ..., "tls_here": bool}. NULL, and at first: the peer is the
 * client, TLS ends here. Faults are said on standard error. */
bool notify_bench_reach(struct notify_bench *b, const json_t *texts);
/* In place of the connection that is there: another, whose frames are at most frame_max bytes. */
bool notify_bench_connect(struct notify_bench *b, uint32_t frame_max);

/* Sends one NOTIFY: the arguments of schemas/wire.def for "GET / HTTP/1.1", Host a.example, from 192.0.2.1, changed by row's members
 *   "args": {name: value}   string, number, true/false, null, {"bin": hex}, {"length": n} (a string of n 'a'), {"ip": text},
 *                           {"headers": [[name, value], ...]}
 *   "drop": [names]  "twice": name  "extra": {name: value}  "messages": 0  "cut": bytes off the end
 * The answer: {"variables": {name: value}, "order": [names]}, each name once, those of HAProxy's process as "proc.<name>"; binary values are
 * arrays of strings (their lists' entries). NULL when
 * there was not exactly one well-formed ACK. The caller owns it. */
json_t *notify_send(struct notify_bench *b, const json_t *row);
/* The same of what the connection has to say now: the ACK of stream NOTIFY_STREAM, frame NOTIFY_FRAME. */
json_t *notify_read(struct notify_bench *b);

#endif
