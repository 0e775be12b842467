/* A worker's Valkey client on a loop and a clock of the test's own, and calls that say how they ended. */
#ifndef TESTS_UNIT_VALKEY_RIG_H
#define TESTS_UNIT_VALKEY_RIG_H

#include "spoa/store/valkey.h"

struct fake_valkey;

struct rig_call {
    struct valkey_waiter waiter; /* first: done gets a pointer to it */
    struct rate_call calls[RATE_CALLS_MAX];
    unsigned n_done;
    enum store_outcome outcome;
    enum store_outcome again_outcome;
    bool again; /* charges once more from within done; the outcome of the refusal is in again_outcome */
};

struct valkey_rig {
    struct ev_loop *loop;
    struct clock clock;
    uint64_t now_us, real_ms; /* stand still until a test moves them */
    struct valkey_node node;
    struct valkey_counters counters;
    struct valkey *v;
    struct fake_valkey *fake; /* NULL: none */
    size_t n_done;            /* calls that have ended */
};
extern struct valkey_rig rig;

/* Of the suite: a worker's process ignores SIGPIPE, and state changes are not printed. */
int rig_set_up(void);
int rig_tear_down(void);

/* Loop, clock and node for url; no connection yet. The time-out of a call is 100 ms of the rig's clock. */
void rig_begin(const char *url);
/* The same with fake started as its server, its clock 250 ms ahead. login: "" or "user:password@"; rest: what follows the path or port. */
void rig_begin_at(struct fake_valkey *fake, bool tcp, const char *login, const char *rest);
void rig_connect(void); /* valkey_new; nothing runs yet */
void rig_end(void);     /* valkey_free, if it is still there, and the loop's watchers; stops the fake, too */

/* Turns the loop until it is so; gives up, and fails the test for good, after half a minute. */
typedef bool rig_condition(void *ctx);
void rig_run_until(rig_condition *so, void *ctx);
void rig_run_until_ready(void);
/* Until ms of real time have passed on the loop. */
void rig_run_for_ms(uint64_t ms);
/* So much later on the rig's clock. */
void rig_pass_ms(uint64_t ms);

/* n counters of subject; true: it is on its way. */
bool rig_charge(struct rig_call *c, size_t n, uint8_t subject);
/* rig_charge that must succeed, until it is done. */
enum store_outcome rig_charge_and_wait(struct rig_call *c, size_t n, uint8_t subject);
rig_condition rig_is_done; /* ctx: a rig_call */
uint64_t rig_count(enum store_outcome o);
bool rig_trouble_has(const char *text);
bool rig_trouble_lacks(const char *text);
bool rig_trouble_is_none(void);

#endif
