/* SPOE's variable-length integers (HAProxy doc/SPOE.txt 3.1): 1 to 10 bytes, up to 2^64 - 1. */
#ifndef COMMON_BASE_VARINT_H
#define COMMON_BASE_VARINT_H

#include "common/base/str.h"

enum { VARINT_MAX_LEN = 10 };

/* Consumes from the front of *in. False when cut or wider than 64 bits; *in and *out are untouched then. */
MUSTUSE bool varint_get(struct str *in, uint64_t *out);
size_t varint_len(uint64_t n);
void varint_put(struct buf *b, uint64_t n);

#endif
