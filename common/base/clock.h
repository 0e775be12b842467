/* Time as an argument: the only place that asks the system for it is clock.c. */
#ifndef COMMON_BASE_CLOCK_H
#define COMMON_BASE_CLOCK_H

#include <stdint.h>

struct clock {
    uint64_t (*mono_us)(void *ctx); /* never runs backwards */
    uint64_t (*real_ms)(void *ctx); /* since 1970 */
    void *ctx;
};

/* The system's clocks; any thread. */
extern const struct clock clock_system;

static inline uint64_t clock_mono_us(const struct clock *c)
{
    return c->mono_us(c->ctx);
}

static inline uint64_t clock_real_ms(const struct clock *c)
{
    return c->real_ms(c->ctx);
}

struct timespec;
/* The time in_ms from now as pthread's timed waits take it (CLOCK_REALTIME). */
void clock_deadline_in_ms(uint64_t in_ms, struct timespec *out);

/* "2026-01-31T12:00:00.123Z" (RFC 3339, UTC); out holds at least 25 bytes. */
void clock_format_utc(uint64_t real_ms, char out[static 25]);

#endif
