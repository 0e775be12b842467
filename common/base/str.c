/* Byte strings: comparison, search, character classes, UTF-8, and appends to bounded storage. */
#include "common/base/str.h"

#include <stdarg.h>
#include <stdio.h>

int str_cmp(struct str a, struct str b)
{
    size_t n = a.len < b.len ? a.len : b.len;
    int order = n == 0 ? 0 : memcmp(a.p, b.p, n);

    if (order != 0)
        return order;
    return (a.len > b.len) - (a.len < b.len);
}

bool str_ends(struct str s, struct str suffix)
{
    return s.len >= suffix.len && str_eq(str_sub(s, s.len - suffix.len, s.len), suffix);
}

size_t str_find(struct str s, struct str needle)
{
    const char *at;

    if (needle.len == 0)
        return 0;
    if (s.len < needle.len)
        return SIZE_MAX;
    at = memmem(s.p, s.len, needle.p, needle.len);
    return at == NULL ? SIZE_MAX : (size_t)(at - s.p);
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

struct str str_trim(struct str s)
{
    size_t from = 0, to = s.len;

    while (from < to && is_blank(s.p[from]))
        from++;
    while (to > from && is_blank(s.p[to - 1]))
        to--;
    return str_sub(s, from, to);
}

size_t str_span(struct str s, const bool set[static 256])
{
    const unsigned char *p = (const unsigned char *)s.p;
    size_t n = 0;

    while (s.len - n >= 4 && (set[p[n]] & set[p[n + 1]] & set[p[n + 2]] & set[p[n + 3]]) != 0)
        n += 4;
    while (n < s.len && set[p[n]])
        n++;
    return n;
}

static const bool tchars[256] = {
    ['!'] = true, ['#' ... '\''] = true, ['*'] = true, ['+'] = true, ['-'] = true, ['.'] = true,
    ['0' ... '9'] = true, ['A' ... 'Z'] = true, ['^' ... 'z'] = true, ['|'] = true, ['~'] = true,
};

bool ascii_is_tchar(char c)
{
    return tchars[(unsigned char)c];
}

bool str_is_token(struct str s)
{
    return s.len > 0 && str_span(s, tchars) == s.len;
}

/* The ranges of the second byte (RFC 3629 4) are what excludes long forms, surrogates and what lies above U+10FFFF. */
size_t str_utf8_len(struct str text)
{
    const unsigned char *s = (const unsigned char *)text.p;
    unsigned char low = 0x80, high = 0xbf;
    size_t n;

    if (text.len == 0)
        return 0;
    if (s[0] < 0x80)
        return 1;
    if (s[0] < 0xc2 || s[0] > 0xf4)
        return 0;
    n = s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;
    if (s[0] == 0xe0)
        low = 0xa0;
    else if (s[0] == 0xed)
        high = 0x9f;
    else if (s[0] == 0xf0)
        low = 0x90;
    else if (s[0] == 0xf4)
        high = 0x8f;
    if (text.len < n || s[1] < low || s[1] > high)
        return 0;
    for (size_t i = 2; i < n; i++)
        if (s[i] < 0x80 || s[i] > 0xbf)
            return 0;
    return n;
}

bool str_is_utf8(struct str s)
{
    size_t at = 0;

    while (at < s.len) {
        size_t n = str_utf8_len(str_sub(s, at, s.len));

        if (n == 0)
            return false;
        at += n;
    }
    return true;
}

struct str str_cut_utf8(struct str s, size_t max)
{
    if (s.len <= max)
        return s;
    /* At most three continuation bytes stand between the cut and the start of the sequence it would split. */
    for (size_t back = 0; back < 4 && back <= max; back++)
        if (((unsigned char)s.p[max - back] & 0xc0) != 0x80)
            return str_sub(s, 0, max - back);
    return str_sub(s, 0, max);
}

enum { NEAR_MAX = 2, NAME_COMPARE_MAX = 48 };

/* Edit distance (insert, delete, replace), NEAR_MAX + 1 when one of the names is longer than is worth comparing. */
static size_t distance(struct str a, struct str b)
{
    size_t row[NAME_COMPARE_MAX + 1];

    if (a.len > NAME_COMPARE_MAX || b.len > NAME_COMPARE_MAX)
        return NEAR_MAX + 1;
    for (size_t x = 0; x <= b.len; x++)
        row[x] = x;
    for (size_t y = 1; y <= a.len; y++) {
        size_t diagonal = row[0];

        row[0] = y;
        for (size_t x = 1; x <= b.len; x++) {
            size_t best = diagonal + (a.p[y - 1] != b.p[x - 1]);

            diagonal = row[x];
            if (row[x] + 1 < best)
                best = row[x] + 1;
            if (row[x - 1] + 1 < best)
                best = row[x - 1] + 1;
            row[x] = best;
        }
    }
    return row[b.len];
}

const char *str_nearest(struct str wrong, const char *const *names)
{
    const char *best = NULL;
    size_t best_distance = NEAR_MAX + 1;

    for (; *names != NULL; names++) {
        size_t d = distance(wrong, str_of(*names));

        /* A name that shares no character is no suggestion. */
        if (d < best_distance && d < wrong.len) {
            best = *names;
            best_distance = d;
        }
    }
    return best;
}

void buf_put_u64(struct buf *b, uint64_t n)
{
    char digits[20];
    size_t at = sizeof(digits);

    if (n < 10) {
        buf_put_byte(b, (char)('0' + n));
        return;
    }
    do {
        digits[--at] = (char)('0' + n % 10);
        n /= 10;
    } while (n > 0);
    buf_put(b, (struct str){digits + at, sizeof(digits) - at});
}

void buf_put_i64(struct buf *b, int64_t n)
{
    size_t before = b->len;

    if (n < 0)
        buf_put_byte(b, '-');
    /* Negated as unsigned: INT64_MIN has no positive counterpart. */
    buf_put_u64(b, n < 0 ? 0 - (uint64_t)n : (uint64_t)n);
    if (b->full)
        b->len = before;
}

void buf_printf(struct buf *b, const char *fmt, ...)
{
    va_list args;
    size_t room = b->cap - b->len;
    int n;

    if (b->full)
        return;
    va_start(args, fmt);
    n = vsnprintf(room == 0 ? NULL : b->p + b->len, room, fmt, args);
    va_end(args);
    if (n < 0 || (size_t)n >= room)
        b->full = true;
    else
        b->len += (size_t)n;
}

static const struct str replacement = {"\xef\xbf\xbd", 3};

void buf_put_utf8(struct buf *b, struct str s)
{
    const size_t before = b->len;

    while (s.len > 0 && !b->full) {
        const size_t n = str_utf8_len(s);

        buf_put(b, n == 0 ? replacement : str_sub(s, 0, n));
        str_skip(&s, n == 0 ? 1 : n);
    }
    if (b->full)
        b->len = before;
}

/* c: one that can't stand in a string as it is. */
static void put_json_escape(struct buf *b, unsigned char c)
{
    static const char from[] = "\"\\\b\f\n\r\t", to[] = "\"\\bfnrt", hex[] = "0123456789abcdef";
    const char *at = memchr(from, c, sizeof(from) - 1);

    if (at != NULL) {
        char pair[2] = {'\\', to[at - from]};

        buf_put(b, (struct str){pair, 2});
    } else {
        char escape[6] = {'\\', 'u', '0', '0', hex[c >> 4], hex[c & 15]};

        buf_put(b, (struct str){escape, 6});
    }
}

/* Takes what s begins with, which is not plain: one byte, or one UTF-8 sequence. */
static void put_json_other(struct buf *b, struct str *s)
{
    size_t n = str_utf8_len(*s);

    if (n == 1)
        put_json_escape(b, (unsigned char)s->p[0]);
    else if (n == 0)
        buf_put(b, replacement);
    else
        buf_put(b, str_sub(*s, 0, n));
    str_skip(s, n == 0 ? 1 : n);
}

void buf_put_json(struct buf *b, struct str s)
{
    static const bool plain[256] = {[' '] = true, ['!'] = true, ['#' ... '['] = true, [']' ... 0x7f] = true};
    size_t before = b->len;

    buf_put_byte(b, '"');
    while (s.len > 0 && !b->full) {
        size_t n = str_span(s, plain);

        if (n > 0) {
            buf_put(b, str_sub(s, 0, n));
            str_skip(&s, n);
        } else {
            put_json_other(b, &s);
        }
    }
    buf_put_byte(b, '"');
    if (b->full)
        b->len = before;
}
