/* Which bytes a path and a query may hold raw, and percent-encoding of the others (RFC 3986 2.1, 3.3). */
#include "common/http/uri_bytes_priv.h"

#include "common/base/codec.h"

int uri_escape_at(struct str s, size_t at)
{
    if (s.len - at < 3)
        return -1;
    int high = codec_hex_digit(s.p[at + 1]);
    int low = codec_hex_digit(s.p[at + 2]);
    return high < 0 || low < 0 ? -1 : high * 16 + low;
}

bool uri_byte_ok(char c, enum uri_part part)
{
    static const bool legal[256] = {
        ['A' ... 'Z'] = true, ['a' ... 'z'] = true, ['0' ... '9'] = true, ['-'] = true, ['.'] = true,  ['_'] = true,
        ['~'] = true,         ['!'] = true,         ['$'] = true,         ['&'] = true, ['\''] = true, ['('] = true,
        [')'] = true,         ['*'] = true,         ['+'] = true,         [','] = true, [';'] = true,  ['='] = true,
        [':'] = true,         ['@'] = true,         ['/'] = true,         ['%'] = true,
    };
    return part == URI_PATH ? legal[(unsigned char)c] : c > ' ' && c < 0x7f && c != '#';
}

bool uri_escape(struct str s, enum uri_part part, struct arena *a, struct str *out)
{
    static const char digits[] = "0123456789ABCDEF";
    size_t n_illegal = 0;
    for (size_t i = 0; i < s.len; i++)
        n_illegal += !uri_byte_ok(s.p[i], part);
    if (n_illegal == 0) {
        *out = s;
        return true;
    }
    char *p = arena_take_bytes(a, s.len + 2 * n_illegal);
    if (p == NULL)
        return false;
    size_t len = 0;
    for (size_t i = 0; i < s.len; i++) {
        unsigned char c = (unsigned char)s.p[i];
        if (uri_byte_ok(s.p[i], part)) {
            p[len++] = s.p[i];
            continue;
        }
        p[len++] = '%';
        p[len++] = digits[c >> 4];
        p[len++] = digits[c & 15];
    }
    *out = (struct str){p, len};
    return true;
}
