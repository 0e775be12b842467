/* The system's clocks, and times as RFC 3339 text. */
#include "common/base/clock.h"

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

/* n as `width` decimal digits at out; returns what is behind them. */
static char *put_digits(char *out, unsigned n, int width)
{
    for (int i = width; i-- > 0; n /= 10)
        out[i] = (char)('0' + n % 10);
    return out + width;
}

/* The civil date of a day since 1970 (H. Hinnant, chrono-compatible low-level date algorithms): years are counted from
 * March, so that the leap day is a year's last, and in eras of 400, which all have the same days. */
static char *put_date(char *out, uint64_t days_since_1970)
{
    const unsigned era_days = 146097, from_march_0000 = 719468;
    const uint64_t days = days_since_1970 + from_march_0000;
    const unsigned era = (unsigned)(days / era_days), day_of_era = (unsigned)(days % era_days);
    const unsigned year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
    const unsigned day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    const unsigned from_march = (5 * day_of_year + 2) / 153;
    const unsigned month = from_march < 10 ? from_march + 3 : from_march - 9;

    out = put_digits(out, era * 400 + year_of_era + (month <= 2), 4);
    *out++ = '-';
    out = put_digits(out, month, 2);
    *out++ = '-';
    return put_digits(out, day_of_year - (153 * from_march + 2) / 5 + 1, 2);
}

void clock_format_utc(uint64_t real_ms, char out[static 25])
{
    const uint64_t last_ms = 253402300799999; /* 9999-12-31T23:59:59.999Z: RFC 3339 has four digits for the year */
    const uint64_t day_ms = 24 * 60 * 60 * 1000;
    unsigned of_day_ms;

    if (real_ms > last_ms)
        real_ms = last_ms;
    of_day_ms = (unsigned)(real_ms % day_ms);
    out = put_date(out, real_ms / day_ms);
    *out++ = 'T';
    out = put_digits(out, of_day_ms / 3600000, 2);
    *out++ = ':';
    out = put_digits(out, of_day_ms / 60000 % 60, 2);
    *out++ = ':';
    out = put_digits(out, of_day_ms / 1000 % 60, 2);
    *out++ = '.';
    out = put_digits(out, of_day_ms % 1000, 3);
    *out++ = 'Z';
    *out = '\0';
}
