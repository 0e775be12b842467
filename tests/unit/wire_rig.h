/* An spop_server on a loop of its own, with clients on real sockets: for the tests of spoa/wire/server.h. */
#ifndef TESTS_UNIT_WIRE_RIG_H
#define TESTS_UNIT_WIRE_RIG_H

#include "spoa/wire/server.h"

enum { WIRE_RIG_HELD_MAX = 64, WIRE_CLIENT_READ_MAX = 2 << 20 };

struct wire_rig {
    struct ev_loop *loop;
    struct spop_server server;
    struct spop_counters counters;
    char dir[64], path[96], at[112]; /* empty over TCP */
    int listener;
    ev_io accepting;
    bool holding; /* NOTIFYs are kept in held instead of being answered */
    struct spop_pending held[WIRE_RIG_HELD_MAX];
    size_t n_held;
    size_t answer_len; /* bytes of each answer's one variable */
    int send_bytes;    /* the server's part of a connection accepted from now on; 0: the system's own */
    bool gave_up;
};

/* The one that the running test began. */
extern struct wire_rig wire_rig;

/* A server with a listener in a new folder, or on a free port; ends the test when that fails. */
void wire_rig_begin(size_t peers_max);
void wire_rig_begin_tcp(void);
void wire_rig_end(void);
bool wire_rig_answer(struct spop_pending *p);

struct wire_client {
    int fd;
    char bytes[WIRE_CLIENT_READ_MAX]; /* read so far */
    size_t len;
    bool closed;    /* by the server */
    bool was_reset; /* and not in order */
};

struct wire_client *wire_client_new(void);
void wire_client_free(struct wire_client *c);
void wire_client_send(struct wire_client *c, struct str s);
void wire_client_greet(struct wire_client *c, uint32_t frame_max);
void wire_client_notify(struct wire_client *c, uint64_t stream_id);
/* Whole frames among the bytes read, and the one at a place (ends the test when there is none). */
size_t wire_client_n_frames(const struct wire_client *c);
struct spop_frame wire_client_frame(const struct wire_client *c, size_t at);

/* Turns the loop until the condition holds. A watchdog of half a minute ends a test that would hang. */
typedef bool wire_condition(struct wire_client *c);
void wire_rig_run_until(wire_condition *is_met, struct wire_client *c);

/* Conditions; those about a client read what is there first, those about the server ignore c. */
wire_condition wire_has_one_frame, wire_has_two_frames, wire_has_21_frames, wire_is_closed, wire_is_idle,
    wire_has_peers, wire_holds_two;

#endif
