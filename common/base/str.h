/* Borrowed byte strings and a bounded output buffer over the caller's storage. */
#ifndef COMMON_BASE_STR_H
#define COMMON_BASE_STR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define MUSTUSE __attribute__((warn_unused_result))
#define PRINTF_LIKE(fmt, first) __attribute__((format(printf, fmt, first)))

/* Bytes borrowed from an arena or frame; never NUL-terminated by contract. p may be NULL only when len is 0. */
struct str {
    const char *p;
    size_t len;
};

/* Borrowed as its items are. */
struct str_list {
    const struct str *items;
    size_t n;
};

#define STR(literal) ((struct str){(literal), sizeof(literal) - 1})
#define STR_NONE ((struct str){NULL, 0})
/* For printf: printf("%.*s", STR_ARG(s)); the value must be shorter than INT_MAX, which every bounded input here is. */
#define STR_ARG(s) (int) (s).len, (s).p

/* What a request passes through dozens of times stands here, to become part of its callers. */

/* cstr must outlive the result; for our own constants and environment values, never for network input. */
static inline struct str str_of(const char *cstr)
{
    return (struct str){cstr, strlen(cstr)};
}

/* Part [from, to) of s; bounds are clamped to s. */
static inline struct str str_sub(struct str s, size_t from, size_t to)
{
    if (to > s.len)
        to = s.len;
    if (from > to)
        from = to;
    return s.len == 0 ? s : (struct str){s.p + from, to - from};
}

/* Drops the first len bytes, which s has. */
static inline void str_skip(struct str *s, size_t len)
{
    if (len == 0)
        return; /* p may be NULL */
    s->p += len;
    s->len -= len;
}

static inline bool str_eq(struct str a, struct str b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.p, b.p, a.len) == 0);
}

static inline char ascii_lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c | 0x20) : c;
}

static inline bool ascii_is_alpha(char c)
{
    return ascii_lower(c) >= 'a' && ascii_lower(c) <= 'z';
}

static inline bool ascii_is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* ASCII case is ignored, other bytes compare as they are. */
static inline bool str_eq_nocase(struct str a, struct str b)
{
    if (a.len != b.len)
        return false;
    for (size_t i = 0; i < a.len; i++)
        if (a.p[i] != b.p[i] && ascii_lower(a.p[i]) != ascii_lower(b.p[i]))
            return false;
    return true;
}

/* Order of memcmp, shorter first when one is a prefix of the other. */
int str_cmp(struct str a, struct str b);
static inline bool str_starts(struct str s, struct str prefix)
{
    return s.len >= prefix.len && str_eq((struct str){s.p, prefix.len}, prefix);
}

bool str_ends(struct str s, struct str suffix);
/* Offset of the first occurrence, or SIZE_MAX. An empty needle is found at 0. */
size_t str_find(struct str s, struct str needle);

static inline size_t str_find_byte(struct str s, char byte)
{
    const char *at = s.len == 0 ? NULL : (const char *)memchr(s.p, byte, s.len);

    return at == NULL ? SIZE_MAX : (size_t)(at - s.p);
}

/* How many bytes s begins with that are all in set. */
size_t str_span(struct str s, const bool set[static 256]);
/* Without blanks (SP, HTAB, CR, LF) at either end. */
struct str str_trim(struct str s);

/* RFC 9110 5.6.2 token characters. */
bool ascii_is_tchar(char c);
bool str_is_token(struct str s);
/* RFC 3629: shortest forms only, no surrogates, at most U+10FFFF. */
bool str_is_utf8(struct str s);
/* Bytes of the UTF-8 sequence that s begins with; 0 when it begins with none. */
size_t str_utf8_len(struct str s);
/* The longest beginning of at most max bytes that does not end inside a UTF-8 sequence. */
struct str str_cut_utf8(struct str s, size_t max);

/* The one of names (NULL-terminated) that a mistyped word most likely meant: at most two letters inserted, left out or
 * replaced. NULL: none is near. */
const char *str_nearest(struct str wrong, const char *const *names);

/* Appends to fixed storage. A write that does not fit sets full and leaves len as it was; later writes are refused too,
 * so a caller checks full once at the end. */
struct buf {
    char *p;
    size_t len;
    size_t cap;
    bool full;
};

static inline void buf_init(struct buf *b, char *storage, size_t cap)
{
    *b = (struct buf){.p = storage, .cap = cap};
}

static inline struct str buf_str(const struct buf *b)
{
    return (struct str){b->p, b->len};
}

static inline void buf_put(struct buf *b, struct str s)
{
    if (b->full || s.len > b->cap - b->len) {
        b->full = true;
        return;
    }
    if (s.len == 0)
        return;
    memcpy(b->p + b->len, s.p, s.len);
    b->len += s.len;
}

static inline void buf_put_byte(struct buf *b, char c)
{
    if (b->full || b->len == b->cap) {
        b->full = true;
        return;
    }
    b->p[b->len++] = c;
}

static inline void buf_put_cstr(struct buf *b, const char *cstr)
{
    buf_put(b, str_of(cstr));
}

void buf_put_u64(struct buf *b, uint64_t n);
void buf_put_i64(struct buf *b, int64_t n);
/* Needs one byte of room more than it appends. */
void buf_printf(struct buf *b, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* Bytes that are not UTF-8 become U+FFFD: at most three times as long. */
void buf_put_utf8(struct buf *b, struct str s);
/* As a JSON string with quotes (RFC 8259); bytes that are not UTF-8 become U+FFFD. */
void buf_put_json(struct buf *b, struct str s);

#endif
