/* SPOE's variable-length integers: four bits in the first byte, seven in each further one, least significant first. */
#include "common/base/varint.h"

bool varint_get(struct str *in, uint64_t *out)
{
    uint64_t value;
    unsigned shift = 4;

    if (in->len == 0)
        return false;
    value = (unsigned char)in->p[0];
    if (value < 240) {
        *in = str_sub(*in, 1, in->len);
        *out = value;
        return true;
    }
    /* Every further byte is added whole, its top bit included: that is what makes each value's encoding unique. */
    for (size_t at = 1; at < in->len && at < VARINT_MAX_LEN; at++, shift += 7) {
        uint64_t byte = (unsigned char)in->p[at];

        if (byte > UINT64_MAX >> shift || __builtin_add_overflow(value, byte << shift, &value))
            return false;
        if (byte < 128) {
            *in = str_sub(*in, at + 1, in->len);
            *out = value;
            return true;
        }
    }
    return false;
}

size_t varint_len(uint64_t n)
{
    size_t len = 1;

    if (n < 240)
        return len;
    for (n = (n - 240) >> 4, len++; n >= 128; n = (n - 128) >> 7)
        len++;
    return len;
}

void varint_put(struct buf *b, uint64_t n)
{
    char bytes[VARINT_MAX_LEN];
    size_t len = 0;

    if (n < 240) {
        buf_put_byte(b, (char)n);
        return;
    }
    bytes[len++] = (char)(n | 240);
    for (n = (n - 240) >> 4; n >= 128; n = (n - 128) >> 7)
        bytes[len++] = (char)(n | 128);
    bytes[len++] = (char)n;
    buf_put(b, (struct str){bytes, len});
}
