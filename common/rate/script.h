/* The limiter as a Lua script that Valkey runs: the arithmetic of rate_step on the store's own clock, all keys of a request in one call.
 * Knows the script's arguments and its reply, not how they travel.
 *
 * A token bucket's state under its key: 13 bytes, big endian, 7 of rate_state.a and 6 of rate_state.b. It expires when the bucket is full again;
 * a refused request writes nothing. Another string counts as no state and is overwritten; a key of another type is left alone. What keeps the
 * store from reading or writing makes the whole call an error. */
#ifndef COMMON_RATE_SCRIPT_H
#define COMMON_RATE_SCRIPT_H

#include "common/rate/rate.h"

/* RATE_COMMAND_MAX: of RATE_CALLS_MAX calls without the source; with it, add rate_script_source().len. */
enum { RATE_CALLS_MAX = 7, RATE_COMMAND_MAX = 4096 };

/* limits.lua, and its SHA-1 as 40 hex digits (what SCRIPT LOAD answers). Any thread. sha1: false when the crypto library has none. */
struct str rate_script_source(void);
MUSTUSE bool rate_script_sha1(char out[static 41]);

/* Appends one RESP command for n calls (1..RATE_CALLS_MAX): EVALSHA sha1, or EVAL with the source where sha1 is NULL. */
void rate_script_command(struct buf *b, const char *sha1, const struct rate_call *calls, size_t n);

/* Reads the script's reply, a text of numbers "<now ms>" and for each call " <verdict> <remaining> <retry after ms> <reset ms>" with verdict 1
 * allowed, 0 refused, 2 no counter of ours. False for any other shape: then nothing was written. now_ms: the store's clock. */
MUSTUSE bool rate_script_reply(struct str reply, struct rate_call *calls, size_t n, uint64_t *now_ms);

#endif
