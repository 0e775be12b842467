/* A scripted Valkey on the test's own loop: it reads commands and says what the test has told it to say. */
#ifndef TESTS_UNIT_FAKE_VALKEY_H
#define TESTS_UNIT_FAKE_VALKEY_H

#include <ev.h>

#include "common/base/str.h"

enum { FAKE_CONNS_MAX = 4, FAKE_BUFFER_MAX = 1 << 20 };

struct fake_conn {
    struct fake_valkey *server;
    int fd;    /* -1: free */
    bool ends; /* closes when everything is said */
    ev_io read;
    ev_idle talk; /* active while something waits to be said */
    size_t in_len, out_len, out_at;
    char in[FAKE_BUFFER_MAX], out[FAKE_BUFFER_MAX];
};

struct fake_valkey {
    struct ev_loop *loop;
    int listener;
    char dir[64], path[96];
    uint16_t port; /* of TCP */
    ev_io accepting;
    struct fake_conn *conns;

    /* What it says: RESP, or NULL for what a Valkey says. "" = nothing. */
    const char *auth, *select, *load, *charge, *eval;
    unsigned n_noscript;    /* so many EVALSHA are answered with NOSCRIPT first */
    unsigned n_charges_max; /* this many commands are answered, then it closes; 0: no maximum */
    size_t piece;           /* bytes said in one turn of the loop; 0: all */
    bool closes_at_once;    /* each connection, before a word */
    uint64_t now_ms;        /* its clock */

    /* What it saw. */
    unsigned n_accepted, n_auth, n_select, n_load, n_charge, n_eval;
    char last_auth[256], last_select[16]; /* arguments, with a blank between */
};

/* On a UNIX socket in a private folder, or on any port of 127.0.0.1. */
void fake_valkey_start(struct fake_valkey *f, struct ev_loop *loop, bool tcp);
/* Refuses connections from now on, and ends those that are there. The same place can be opened again with fake_valkey_return. */
void fake_valkey_leave(struct fake_valkey *f);
void fake_valkey_return(struct fake_valkey *f);
void fake_valkey_stop(struct fake_valkey *f);
/* Says text to every connection, asked or not. */
void fake_valkey_say(struct fake_valkey *f, struct str text);
/* Segments with data that the only connection has received (TCP). */
unsigned fake_valkey_segments(const struct fake_valkey *f);

#endif
