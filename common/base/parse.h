/* Values as text: durations, sizes, whole numbers, times, booleans, listen addresses; written by people, so that errors say what
 * would be right, but for parse_digits and parse_time_ms. */
#ifndef COMMON_BASE_PARSE_H
#define COMMON_BASE_PARSE_H

#include "common/base/err.h"
#include "common/base/str.h"

/* Go's duration text: "1h30m", "1.5s", "250ms", "0"; units ns us ms s m h, no d. Sub-millisecond parts are refused with
 * ERR_BAD_VALUE, as are negatives. path goes into the error. */
MUSTUSE bool parse_duration_ms(struct str s, uint64_t *out_ms, const char *path, struct err *e);
/* The canonical text of Go's Duration.String() for whole milliseconds: "1m30s", "250ms", "0s". Returns its length. */
size_t parse_render_duration(uint64_t ms, char *out, size_t cap);
/* "1048576", "512KiB", "1MiB", "1GiB". */
MUSTUSE bool parse_size_bytes(struct str s, uint64_t *out, const char *path, struct err *e);
MUSTUSE bool parse_u64(struct str s, uint64_t min, uint64_t max, uint64_t *out, const char *path, struct err *e);
/* A part of the whole between 0 and 1, at most four decimals, as "0.25": in parts of RATE_WHOLE. */
enum { RATE_WHOLE = 10000 };
MUSTUSE bool parse_rate(struct str s, uint64_t *out, const char *path, struct err *e);
/* "0.25" of 2500: without needless zeros. Returns its length. */
enum { RATE_TEXT_MAX = 6 };
size_t parse_render_rate(uint64_t rate, char out[static RATE_TEXT_MAX]);
/* A number that a program wrote: digits without leading zeros, at most max. False without a word. */
MUSTUSE bool parse_digits(struct str s, uint64_t max, uint64_t *out);
/* RFC 3339 5.6 in upper case, as "2026-01-31T12:00:00Z": milliseconds since 1970 UTC, what is finer is cut off. Days that their month does not have
 * are refused, and a second 60 but at the end of a day in UTC. False without a word. */
MUSTUSE bool parse_time_ms(struct str s, int64_t *out_ms);
MUSTUSE bool parse_bool(struct str s, bool *out, const char *path, struct err *e);

/* "host:port", ":port", "[v6]:port". host is borrowed from s, without brackets, empty for all addresses. */
struct listen_addr {
    struct str host;
    uint16_t port;
};
MUSTUSE bool parse_listen(struct str s, struct listen_addr *out, const char *path, struct err *e);

#endif
