/* Times as text (RFC 3339). */
#include "common/base/parse.h"

enum { MINUTE_S = 60, HOUR_S = 60 * MINUTE_S, DAY_S = 24 * HOUR_S };

/* A time's parts as written. */
struct time_parts {
    int64_t year, month, day, hour, minute, second, ms;
    int64_t offset_s; /* what local time is ahead of UTC */
};

/* Takes n digits off s. */
static bool take_digits(struct str *s, size_t n, int64_t min, int64_t max, int64_t *out)
{
    int64_t value = 0;

    if (s->len < n)
        return false;
    for (size_t i = 0; i < n; i++) {
        if (!ascii_is_digit(s->p[i]))
            return false;
        value = value * 10 + (s->p[i] - '0');
    }
    if (value < min || value > max)
        return false;
    str_skip(s, n);
    *out = value;
    return true;
}

static bool take_byte(struct str *s, char c)
{
    if (s->len == 0 || s->p[0] != c)
        return false;
    str_skip(s, 1);
    return true;
}

/* Digits after the point: at least one, of any number. */
static bool take_fraction(struct str *s, int64_t *ms)
{
    int64_t weight = 100;
    size_t n = 0;

    for (; n < s->len && ascii_is_digit(s->p[n]); n++, weight /= 10)
        *ms += weight * (s->p[n] - '0');
    str_skip(s, n);
    return n > 0;
}

/* What is left of the text: "Z", "+hh:mm" or "-hh:mm". */
static bool take_offset(struct str *s, int64_t *offset_s)
{
    int64_t hours, minutes;

    if (take_byte(s, 'Z'))
        return s->len == 0;
    bool behind = s->len > 0 && s->p[0] == '-';
    if (!take_byte(s, behind ? '-' : '+') || !take_digits(s, 2, 0, 23, &hours) || !take_byte(s, ':') || !take_digits(s, 2, 0, 59, &minutes))
        return false;
    *offset_s = (hours * HOUR_S + minutes * MINUTE_S) * (behind ? -1 : 1);
    return s->len == 0;
}

static bool is_leap(int64_t year)
{
    return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
}

static int64_t days_in_month(int64_t year, int64_t month)
{
    static const int64_t days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};

    return days[month - 1] + (month == 2 && is_leap(year) ? 1 : 0);
}

/* Days from 1970-01-01 to the date, before it negative. */
static int64_t days_since_1970(const struct time_parts *t)
{
    /* Leap days before the year, counted from year 0, which is one itself. */
    int64_t years = t->year, leap_days = years == 0 ? 0 : (years - 1) / 4 - (years - 1) / 100 + (years - 1) / 400 + 1;
    int64_t days = years * 365 + leap_days + t->day - 1;

    for (int64_t month = 1; month < t->month; month++)
        days += days_in_month(t->year, month);
    return days - 719528; /* 1970-01-01 by the same count */
}

static bool take_parts(struct str s, struct time_parts *t)
{
    if (!take_digits(&s, 4, 0, 9999, &t->year) || !take_byte(&s, '-') || !take_digits(&s, 2, 1, 12, &t->month) || !take_byte(&s, '-') ||
        !take_digits(&s, 2, 1, days_in_month(t->year, t->month), &t->day))
        return false;
    if (!take_byte(&s, 'T') || !take_digits(&s, 2, 0, 23, &t->hour) || !take_byte(&s, ':') || !take_digits(&s, 2, 0, 59, &t->minute) ||
        !take_byte(&s, ':') || !take_digits(&s, 2, 0, 60, &t->second))
        return false;
    if (take_byte(&s, '.') && !take_fraction(&s, &t->ms))
        return false;
    return take_offset(&s, &t->offset_s);
}

bool parse_time_ms(struct str s, int64_t *out_ms)
{
    struct time_parts t = {0};

    if (!take_parts(s, &t))
        return false;
    int64_t seconds = days_since_1970(&t) * DAY_S + t.hour * HOUR_S + t.minute * MINUTE_S + t.second - t.offset_s;
    if (t.second == 60 && seconds % DAY_S != 0)
        return false;
    *out_ms = seconds * 1000 + t.ms;
    return true;
}
