/* The shared store of rate limits: one pipelined connection to Valkey for each worker, on the worker's loop.
 *
 * The connection is kept up in the background: connect (dial_timeout), AUTH, SELECT, SCRIPT LOAD (VALKEY_HANDSHAKE_MS for all), then it is
 * usable; after a failure it is tried again, at once if it had been up for a second or there are addresses that were never tried, else at growing
 * distances of at most VALKEY_RETRY_MAX_MS. A call never waits for a connection: without a usable one it fails at once. So it does while
 * VALKEY_CALLS_MAX calls are unanswered, half of the requests that a worker can hold, so that a slow Valkey alone never makes it refuse one. A
 * call is sent once and never again, but for EVAL after NOSCRIPT, when it has not run. */
#ifndef SPOA_STORE_VALKEY_H
#define SPOA_STORE_VALKEY_H

#include <ev.h>

#include "common/base/clock.h"
#include "common/rate/script.h"
#include "spoa/store/breaker.h"
#include "spoa/store/resolver.h"
#include "spoa/store/target.h"

enum { VALKEY_HANDSHAKE_MS = 2000, VALKEY_RETRY_MAX_MS = 1000, VALKEY_CALLS_MAX = 2048 };

enum store_outcome {
#define STORE_OUTCOME(id, name, meaning) STORE_##id,
#include "spoa/store/outcomes.def"
#undef STORE_OUTCOME
    STORE_OUTCOME_N
};
const char *store_outcome_name(enum store_outcome o);

/* One node, shared by the workers of a process; all fields are set before the first worker uses it. */
struct valkey_node {
    struct valkey_target target;
    struct resolver resolver; /* unused for a UNIX socket */
    struct breaker breaker;
    uint64_t timeout_ms; /* VALKEY_TIMEOUT */
};

/* Counted by the worker's thread, read by any. */
struct valkey_counters {
    _Atomic uint64_t calls[STORE_OUTCOME_N];
    _Atomic uint64_t n_connects, n_connect_failures; /* handshakes finished; attempts that failed, whatever the cause */
    _Atomic uint64_t n_noscript;                     /* calls sent a second time, as EVAL */
    _Atomic uint64_t connected;                      /* 1: usable now */
    _Atomic uint64_t attempted;                      /* 1: connected once, or every address was tried once without success */
    _Atomic int64_t skew_ms;                         /* Valkey's clock minus ours, of the last answer */
};

struct valkey; /* one worker's; touched by its thread alone */

/* A call in flight, in the caller's memory until done. */
struct valkey_waiter {
    /* Called exactly once, from the worker's loop, never from within valkey_charge. calls then hold their verdicts if outcome is
     * STORE_ANSWERED, and are untouched otherwise. */
    void (*done)(struct valkey_waiter *w, enum store_outcome outcome);
};

/* Begins to connect as soon as the loop runs. node and counters must outlive it. */
MUSTUSE bool valkey_new(struct valkey **out, struct ev_loop *loop, struct valkey_node *node, const struct clock *clock,
                        struct valkey_counters *counters, struct err *e);
/* Ends the connection; calls in flight are done with STORE_LOST, and a charge from within done is refused. Worker's thread, outside of a callback;
 * the loop need not run any more. */
void valkey_free(struct valkey **v);

/* Charges n calls (1..RATE_CALLS_MAX) in one command. True: it is on its way, w->done follows within the time-out; w and calls stay where they
 * are until then. False: *outcome says why it was not sent; w->done is not called. Commands of one loop turn leave in one write. */
MUSTUSE bool valkey_charge(struct valkey *v, struct rate_call *calls, size_t n, struct valkey_waiter *w, enum store_outcome *outcome);
/* Why there is no usable connection, for /readyz, doctor and the log: "" while there is one. Any thread; a short lock. No secrets. */
void valkey_trouble(struct valkey *v, char *out, size_t size);

#endif
