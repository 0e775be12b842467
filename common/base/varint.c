/* SPOE's variable-length integers: four bits in the first byte, seven in each further one, least significant first. */
#include "common/base/varint.h"

bool varint_get_long(struct str *in, uint64_t *out)
{
    uint64_t value;
    unsigned shift = 4;

    if (in->len == 0)
        return false;
    value = (unsigned char)in->p[0];
    /* Every further byte is added whole, its top bit included: that is what makes each value's encoding unique. */
    for (size_t at = 1; at < in->len && at < VARINT_MAX_LEN; at++, shift += 7) {
        uint64_t byte = (unsigned char)in->p[at];

        if (byte > UINT64_MAX >> shift || __builtin_add_overflow(value, byte << shift, &value))
            return false;
        if (byte < 128) {
            str_skip(in, at + 1);
            *out = value;
            return true;
        }
    }
    return false;
}

size_t varint_len_long(uint64_t n)
{
    size_t len = 2;

    for (n = (n - VARINT_LONG) >> 4; n >= 128; n = (n - 128) >> 7)
        len++;
    return len;
}

void varint_put_long(struct buf *b, uint64_t n)
{
    char bytes[VARINT_MAX_LEN];
    size_t len = 0;

    bytes[len++] = (char)(n | VARINT_LONG);
    for (n = (n - VARINT_LONG) >> 4; n >= 128; n = (n - 128) >> 7)
        bytes[len++] = (char)(n | 128);
    bytes[len++] = (char)n;
    buf_put(b, (struct str){bytes, len});
}
