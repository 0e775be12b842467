/* SPOE's variable-length integers (HAProxy doc/SPOE.txt 3.1): 1 to 10 bytes, up to 2^64 - 1. */
#ifndef COMMON_BASE_VARINT_H
#define COMMON_BASE_VARINT_H

#include "common/base/str.h"

enum { VARINT_MAX_LEN = 10 };

/* Below it a number is its own one byte, as nearly all on the wire are. */
enum { VARINT_LONG = 240 };

/* For the functions below: the numbers of more bytes. */
MUSTUSE bool varint_get_long(struct str *in, uint64_t *out);
size_t varint_len_long(uint64_t n);
void varint_put_long(struct buf *b, uint64_t n);

/* Consumes from the front of *in. False when cut or wider than 64 bits; *in and *out are untouched then. */
MUSTUSE static inline bool varint_get(struct str *in, uint64_t *out)
{
    if (in->len == 0 || (unsigned char)in->p[0] >= VARINT_LONG)
        return varint_get_long(in, out);
    *out = (unsigned char)in->p[0];
    str_skip(in, 1);
    return true;
}

static inline size_t varint_len(uint64_t n)
{
    return n < VARINT_LONG ? 1 : varint_len_long(n);
}

static inline void varint_put(struct buf *b, uint64_t n)
{
    if (n < VARINT_LONG)
        buf_put_byte(b, (char)n);
    else
        varint_put_long(b, n);
}

#endif
