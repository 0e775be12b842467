/* Values written by people: each parser says what is wrong with the text and what would be right. */
#include "common/base/parse.h"

#include <arpa/inet.h>

/* How much of a refused text an error quotes. */
static struct str shown(struct str s)
{
    return str_cut_utf8(s, 64);
}

struct unit {
    const char *name;
    uint64_t factor;
};

static const struct unit duration_units_ns[] = {
    {"ns", 1}, {"us", 1000}, {"ms", 1000000}, {"s", 1000000000}, {"m", 60000000000}, {"h", 3600000000000}, {NULL, 0},
};

static const struct unit *unit_find(const struct unit *units, struct str name)
{
    for (; units->name != NULL; units++)
        if (str_eq(str_of(units->name), name))
            return units;
    return NULL;
}

static size_t count_digits(struct str s)
{
    size_t n = 0;

    while (n < s.len && ascii_is_digit(s.p[n]))
        n++;
    return n;
}

/* Digits only; false when they do not fit into 64 bits. */
static bool digits_value(struct str digits, uint64_t *out)
{
    uint64_t value = 0;

    for (size_t i = 0; i < digits.len; i++)
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, (uint64_t)(digits.p[i] - '0'), &value))
            return false;
    *out = value;
    return true;
}

/* digits / 10^digits.len of unit_ns, exact. False when that is no whole number of nanoseconds. */
static bool fraction_ns(struct str digits, uint64_t unit_ns, uint64_t *out)
{
    unsigned __int128 product, power = 1;
    uint64_t value = 0;

    while (digits.len > 0 && digits.p[digits.len - 1] == '0')
        digits.len--;
    /* No unit has enough factors of 2 or 5 to make a longer fraction whole. */
    if (digits.len > 18 || !digits_value(digits, &value))
        return false;
    for (size_t i = 0; i < digits.len; i++)
        power *= 10;
    product = (unsigned __int128)value * unit_ns;
    if (product % power != 0)
        return false;
    *out = (uint64_t)(product / power);
    return true;
}

static bool unknown_duration_unit(struct str whole, struct str number, struct str unit, const char *path, struct err *e)
{
    uint64_t days;

    if (unit.len == 0)
        return err_set(e, ERR_BAD_VALUE, path,
                       "duration \"%.*s\" has no unit: write \"%.*ss\" for seconds, or ms, m, h", STR_ARG(shown(whole)),
                       STR_ARG(shown(number)));
    if (str_eq(unit, STR("d")) && count_digits(number) == number.len && digits_value(number, &days) && days < 100000)
        return err_set(e, ERR_BAD_VALUE, path,
                       "duration \"%.*s\" uses days, which are not a unit here: write \"%uh\" for %u days",
                       STR_ARG(shown(whole)), (unsigned)days * 24, (unsigned)days);
    return err_set(e, ERR_BAD_VALUE, path,
                   "duration \"%.*s\" has the unknown unit \"%.*s\": units are ms, s, m, h, as in \"1m30s\"",
                   STR_ARG(shown(whole)), STR_ARG(shown(unit)));
}

/* Cuts "<number><unit>" from the front of *rest and adds it to *total_ns. */
static bool duration_part(struct str whole, struct str *rest, uint64_t *total_ns, const char *path, struct err *e)
{
    struct str digits = str_sub(*rest, 0, count_digits(*rest)), fraction = STR_NONE, number, name;
    const struct unit *unit;
    uint64_t value, part_ns = 0;
    size_t at = digits.len, unit_end;

    if (at < rest->len && rest->p[at] == '.') {
        fraction = str_sub(*rest, at + 1, rest->len);
        fraction.len = count_digits(fraction);
        at += 1 + fraction.len;
    }
    if (digits.len + fraction.len == 0)
        return err_set(e, ERR_BAD_VALUE, path,
                       "\"%.*s\" is not a duration: write numbers with units, as in \"30s\" or \"1m30s\"",
                       STR_ARG(shown(whole)));
    number = str_sub(*rest, 0, at);
    for (unit_end = at; unit_end < rest->len && rest->p[unit_end] != '.' && !ascii_is_digit(rest->p[unit_end]);)
        unit_end++;
    name = str_sub(*rest, at, unit_end);
    unit = unit_find(duration_units_ns, name);
    if (unit == NULL)
        return unknown_duration_unit(whole, number, name, path, e);
    if (!fraction_ns(fraction, unit->factor, &part_ns))
        return err_set(e, ERR_BAD_VALUE, path, "duration \"%.*s\" is not a whole number of milliseconds",
                       STR_ARG(shown(whole)));
    if (!digits_value(digits, &value) || __builtin_mul_overflow(value, unit->factor, &value) ||
        __builtin_add_overflow(part_ns, value, &part_ns) || __builtin_add_overflow(*total_ns, part_ns, total_ns) ||
        *total_ns > INT64_MAX)
        return err_set(e, ERR_BAD_VALUE, path, "duration \"%.*s\" is too long: at most 2562047h",
                       STR_ARG(shown(whole)));
    *rest = str_sub(*rest, unit_end, rest->len);
    return true;
}

bool parse_duration_ms(struct str s, uint64_t *out_ms, const char *path, struct err *e)
{
    struct str rest = s;
    uint64_t total_ns = 0;

    if (s.len == 0)
        return err_set(e, ERR_BAD_VALUE, path,
                       "an empty text is not a duration: write numbers with units, as in \"30s\"");
    if (s.p[0] == '-')
        return err_set(e, ERR_BAD_VALUE, path, "duration \"%.*s\" is negative", STR_ARG(shown(s)));
    if (s.p[0] == '+')
        rest = str_sub(s, 1, s.len);
    if (str_eq(rest, STR("0"))) {
        *out_ms = 0;
        return true;
    }
    do {
        if (!duration_part(s, &rest, &total_ns, path, e))
            return false;
    } while (rest.len > 0);
    if (total_ns % 1000000 != 0)
        return err_set(e, ERR_BAD_VALUE, path, "duration \"%.*s\" is not a whole number of milliseconds",
                       STR_ARG(shown(s)));
    *out_ms = total_ns / 1000000;
    return true;
}

size_t parse_render_duration(uint64_t ms, char *out, size_t cap)
{
    const uint64_t minutes = ms / 60000, rest_ms = ms % 60000;
    struct buf b;

    buf_init(&b, out, cap);
    if (ms > 0 && ms < 1000) {
        buf_put_u64(&b, ms);
        buf_put_cstr(&b, "ms");
        return b.len;
    }
    if (minutes >= 60) {
        buf_put_u64(&b, minutes / 60);
        buf_put_byte(&b, 'h');
    }
    if (minutes > 0) {
        buf_put_u64(&b, minutes % 60);
        buf_put_byte(&b, 'm');
    }
    buf_put_u64(&b, rest_ms / 1000);
    if (rest_ms % 1000 != 0) {
        char digits[4] = {'.', (char)('0' + rest_ms % 1000 / 100), (char)('0' + rest_ms % 100 / 10),
                          (char)('0' + rest_ms % 10)};
        struct str fraction = {digits, 4};

        while (fraction.p[fraction.len - 1] == '0')
            fraction.len--;
        buf_put(&b, fraction);
    }
    buf_put_byte(&b, 's');
    return b.len;
}

/* Decimal digits and nothing else; "0" is the only number that may begin with 0. */
static bool is_whole_number(struct str s)
{
    return s.len > 0 && count_digits(s) == s.len && (s.len == 1 || s.p[0] != '0');
}

static const struct unit size_units[] = {{"", 1}, {"KiB", 1024}, {"MiB", 1048576}, {"GiB", 1073741824}, {NULL, 0}};

bool parse_size_bytes(struct str s, uint64_t *out, const char *path, struct err *e)
{
    struct str digits = str_sub(s, 0, count_digits(s));
    const struct unit *unit = unit_find(size_units, str_sub(s, digits.len, s.len));
    uint64_t value;

    if (!is_whole_number(digits) || unit == NULL)
        return err_set(e, ERR_BAD_VALUE, path,
                       "\"%.*s\" is not a size: write bytes as a whole number, or KiB, MiB, GiB, as in \"512KiB\"",
                       STR_ARG(shown(s)));
    if (!digits_value(digits, &value) || __builtin_mul_overflow(value, unit->factor, &value))
        return err_set(e, ERR_BAD_VALUE, path, "size \"%.*s\" does not fit into 64 bits", STR_ARG(shown(s)));
    *out = value;
    return true;
}

bool parse_u64(struct str s, uint64_t min, uint64_t max, uint64_t *out, const char *path, struct err *e)
{
    uint64_t value;

    if (!is_whole_number(s))
        return err_set(e, ERR_BAD_VALUE, path, "\"%.*s\" is not a whole number from %ju to %ju (digits only, no leading zeros)",
                       STR_ARG(shown(s)), (uintmax_t)min, (uintmax_t)max);
    if (!digits_value(s, &value) || value < min || value > max)
        return err_set(e, ERR_BAD_VALUE, path, "%.*s is out of range: must be between %ju and %ju", STR_ARG(shown(s)),
                       (uintmax_t)min, (uintmax_t)max);
    *out = value;
    return true;
}

bool parse_rate(struct str s, uint64_t *out, const char *path, struct err *e)
{
    const size_t dot = str_find_byte(s, '.');
    const struct str decimals = str_sub(s, dot == SIZE_MAX ? s.len : dot + 1, s.len);
    uint64_t whole, part = 0;
    bool ok = parse_digits(str_sub(s, 0, dot), 1, &whole) && (dot == SIZE_MAX || decimals.len > 0) && decimals.len <= 4;

    for (size_t i = 0; ok && i < 4; i++) {
        ok = i >= decimals.len || ascii_is_digit(decimals.p[i]);
        part = part * 10 + (ok && i < decimals.len ? (uint64_t)(decimals.p[i] - '0') : 0);
    }
    if (!ok || whole * RATE_WHOLE + part > RATE_WHOLE)
        return err_set(e, ERR_BAD_VALUE, path, "\"%.*s\" is not a rate: must be between 0 and 1 with at most four decimals, as in 0.25",
                       STR_ARG(shown(s)));
    *out = whole * RATE_WHOLE + part;
    return true;
}

size_t parse_render_rate(uint64_t rate, char out[static RATE_TEXT_MAX])
{
    size_t len = 0;

    out[len++] = rate >= RATE_WHOLE ? '1' : '0';
    if (rate == 0 || rate >= RATE_WHOLE)
        return len;
    out[len++] = '.';
    for (uint64_t unit = RATE_WHOLE / 10; rate > 0; unit /= 10) {
        out[len++] = (char)('0' + rate / unit);
        rate %= unit;
    }
    return len;
}

bool parse_digits(struct str s, uint64_t max, uint64_t *out)
{
    uint64_t value;

    if (!is_whole_number(s) || !digits_value(s, &value) || value > max)
        return false;
    *out = value;
    return true;
}

bool parse_bool(struct str s, bool *out, const char *path, struct err *e)
{
    bool value = str_eq(s, STR("true"));

    if (!value && !str_eq(s, STR("false")))
        return err_set(e, ERR_BAD_VALUE, path, "\"%.*s\" must be true or false", STR_ARG(shown(s)));
    *out = value;
    return true;
}

static bool is_ipv6(struct str s)
{
    char text[INET6_ADDRSTRLEN];
    struct in6_addr addr;

    /* inet_pton reads up to a NUL: one inside would hide the rest. */
    if (s.len >= sizeof(text) || str_find_byte(s, '\0') != SIZE_MAX)
        return false;
    memcpy(text, s.p, s.len);
    text[s.len] = '\0';
    return inet_pton(AF_INET6, text, &addr) == 1;
}

static bool is_host_name(struct str s)
{
    for (size_t i = 0; i < s.len; i++)
        if (!ascii_is_alpha(s.p[i]) && !ascii_is_digit(s.p[i]) && memchr("-._", s.p[i], 3) == NULL)
            return false;
    return s.len <= 253;
}

bool parse_listen(struct str s, struct listen_addr *out, const char *path, struct err *e)
{
    struct str host, port;
    uint64_t number;
    size_t colon;

    if (s.len > 0 && s.p[0] == '[') {
        size_t close = str_find_byte(s, ']');

        host = str_sub(s, 1, close);
        if (close == SIZE_MAX || !is_ipv6(host))
            return err_set(e, ERR_BAD_VALUE, path,
                           "listen address \"%.*s\": between [ and ] stands an IPv6 address, as in \"[::1]:8080\"",
                           STR_ARG(shown(s)));
        colon = close + 1;
    } else {
        colon = str_find_byte(s, ':');
        host = str_sub(s, 0, colon);
    }
    if (colon >= s.len || s.p[colon] != ':')
        return err_set(e, ERR_BAD_VALUE, path,
                       "listen address \"%.*s\" has no port: write \"host:port\", or \":port\" for all addresses",
                       STR_ARG(shown(s)));
    port = str_sub(s, colon + 1, s.len);
    if (str_find_byte(port, ':') != SIZE_MAX)
        return err_set(e, ERR_BAD_VALUE, path,
                       "listen address \"%.*s\": put an IPv6 address into brackets, as in \"[::1]:8080\"",
                       STR_ARG(shown(s)));
    if (s.p[0] != '[' && !is_host_name(host))
        return err_set(e, ERR_BAD_VALUE, path,
                       "listen address \"%.*s\": the part before the port is not a host name or address",
                       STR_ARG(shown(s)));
    if (!is_whole_number(port) || !digits_value(port, &number) || number > UINT16_MAX)
        return err_set(e, ERR_BAD_VALUE, path, "listen address \"%.*s\": the port must be a number from 0 to 65535",
                       STR_ARG(shown(s)));
    *out = (struct listen_addr){host, (uint16_t)number};
    return true;
}
