/* Hex, base64url and percent-decoding; every function writes into the caller's storage. */
#include "common/base/codec.h"

void codec_hex(const uint8_t *in, size_t len, char *out)
{
    static const char digits[] = "0123456789abcdef";

    for (size_t i = 0; i < len; i++) {
        out[2 * i] = digits[in[i] >> 4];
        out[2 * i + 1] = digits[in[i] & 15];
    }
}

int codec_hex_digit(char c)
{
    char lower = ascii_lower(c);

    if (ascii_is_digit(c))
        return c - '0';
    return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

static const char base64url[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

void codec_base64url(const uint8_t *in, size_t len, char *out)
{
    uint32_t bits = 0;
    unsigned n_bits = 0;

    for (size_t i = 0; i < len; i++) {
        bits = bits << 8 | in[i];
        for (n_bits += 8; n_bits >= 6; n_bits -= 6)
            *out++ = base64url[bits >> (n_bits - 6) & 63];
    }
    if (n_bits > 0)
        *out = base64url[bits << (6 - n_bits) & 63];
}

static int base64url_digit(char c)
{
    const char *at = memchr(base64url, c, sizeof(base64url) - 1);

    return at == NULL ? -1 : (int)(at - base64url);
}

bool codec_base64url_decode(struct str in, uint8_t *out, size_t *out_len)
{
    uint32_t bits = 0;
    unsigned n_bits = 0;
    size_t n = 0;

    /* Checked before anything is written: on failure *out is untouched. */
    for (size_t i = 0; i < in.len; i++)
        if (base64url_digit(in.p[i]) < 0)
            return false;
    if (in.len % 4 == 1)
        return false;
    if (in.len % 4 != 0) {
        unsigned stray = in.len % 4 == 2 ? 15 : 3;

        if (((unsigned)base64url_digit(in.p[in.len - 1]) & stray) != 0)
            return false;
    }
    for (size_t i = 0; i < in.len; i++) {
        bits = bits << 6 | (uint32_t)base64url_digit(in.p[i]);
        n_bits += 6;
        if (n_bits >= 8) {
            n_bits -= 8;
            out[n++] = (uint8_t)(bits >> n_bits);
        }
    }
    *out_len = n;
    return true;
}

bool codec_percent_decode(struct str in, bool plus, char *out, size_t *out_len)
{
    size_t n = 0;

    for (size_t i = 0; i < in.len; i++) {
        char c = in.p[i];

        if (c == '%') {
            int high = in.len - i > 2 ? codec_hex_digit(in.p[i + 1]) : -1;
            int low = high < 0 ? -1 : codec_hex_digit(in.p[i + 2]);

            if (low < 0)
                return false;
            c = (char)(high << 4 | low);
            i += 2;
        } else if (c == '+' && plus) {
            c = ' ';
        }
        out[n++] = c;
    }
    *out_len = n;
    return true;
}
