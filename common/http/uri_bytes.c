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

static const bool legal[][256] = {
    [URI_PATH] = {
        ['A' ... 'Z'] = true, ['a' ... 'z'] = true, ['0' ... '9'] = true, ['-'] = true, ['.'] = true,  ['_'] = true,
        ['~'] = true,         ['!'] = true,         ['$'] = true,         ['&'] = true, ['\''] = true, ['('] = true,
        [')'] = true,         ['*'] = true,         ['+'] = true,         [','] = true, [';'] = true,  ['='] = true,
        [':'] = true,         ['@'] = true,         ['/'] = true,         ['%'] = true,
    },
    [URI_QUERY] = {['!'] = true, ['"'] = true, ['$' ... '~'] = true},
};

bool uri_bytes_ok(struct str s, enum uri_part part)
{
    return str_span(s, legal[part]) == s.len;
}

bool uri_escape(struct str s, enum uri_part part, struct arena *a, struct str *out)
{
    static const char digits[] = "0123456789ABCDEF";
    size_t n_illegal = 0;
    if (uri_bytes_ok(s, part)) {
        *out = s;
        return true;
    }
    for (size_t i = 0; i < s.len; i++)
        n_illegal += !legal[part][(unsigned char)s.p[i]];
    char *p = arena_take_bytes(a, s.len + 2 * n_illegal);
    if (p == NULL)
        return false;
    size_t len = 0;
    for (size_t i = 0; i < s.len; i++) {
        unsigned char c = (unsigned char)s.p[i];
        if (legal[part][c]) {
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
