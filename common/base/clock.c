/* The system's clocks, and times as RFC 3339 text. */
#include "common/base/clock.h"

#include <stdio.h>
#include <time.h>

static uint64_t now_ns(clockid_t id)
{
    struct timespec t;

    clock_gettime(id, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static uint64_t system_mono_us(void *ctx)
{
    (void)ctx;
    return now_ns(CLOCK_MONOTONIC) / 1000;
}

static uint64_t system_real_ms(void *ctx)
{
    (void)ctx;
    return now_ns(CLOCK_REALTIME) / 1000000;
}

const struct clock clock_system = {system_mono_us, system_real_ms, NULL};

void clock_deadline_in_ms(uint64_t in_ms, struct timespec *out)
{
    const uint64_t at_ms = system_real_ms(NULL) + in_ms;

    out->tv_sec = (time_t)(at_ms / 1000);
    out->tv_nsec = (long)(at_ms % 1000) * 1000000;
}

void clock_format_utc(uint64_t real_ms, char out[static 25])
{
    const uint64_t last_ms = 253402300799999; /* 9999-12-31T23:59:59.999Z: RFC 3339 has four digits for the year */
    struct tm tm;
    time_t s;
    size_t len;

    if (real_ms > last_ms)
        real_ms = last_ms;
    s = (time_t)(real_ms / 1000);
    gmtime_r(&s, &tm);
    len = strftime(out, 25, "%Y-%m-%dT%H:%M:%S", &tm);
    snprintf(out + len, 25 - len, ".%03uZ", (unsigned)(real_ms % 1000));
}
