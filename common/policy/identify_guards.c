/* What identification refuses of headers: values that a line of HTTP/1 can't carry everywhere, a length that HTTP/1.0 can't tell, and a Host that is
 * no host[:port]. */
#include "common/policy/identify_guards_priv.h"

#include "common/net/addr.h"

enum { PORT_DIGITS_MAX = 5, PORT_MAX = 65535, WORD = 8 };

/* --- Values --- */

static bool is_control(char c)
{
    const unsigned char u = (unsigned char)c;

    return (u < 0x20 && c != '\t') || u == 0x7f;
}

/* Whether any of the eight bytes is below 0x20 or 0x7f: the tab too, which is rare enough to be looked at apart. */
static bool word_is_doubtful(const char *p)
{
    const uint64_t ones = UINT64_MAX / 0xff, high = ones * 0x80;
    uint64_t w;

    memcpy(&w, p, WORD);
    const uint64_t below = (w - ones * 0x20) & ~w, as_del = w ^ (ones * 0x7f);
    return ((below | ((as_del - ones) & ~as_del)) & high) != 0;
}

static bool has_control(struct str s)
{
    size_t i = 0;

    for (; i + WORD <= s.len; i += WORD)
        if (word_is_doubtful(s.p + i))
            for (size_t k = i; k < i + WORD; k++)
                if (is_control(s.p[k]))
                    return true;
    for (; i < s.len; i++)
        if (is_control(s.p[i]))
            return true;
    return false;
}

bool identify_values_ok(const struct headers *h)
{
    for (size_t i = 0; i < h->n; i++)
        if (has_control(h->items[i].value))
            return false;
    return true;
}

bool identify_framing_ok(const struct headers *h, struct str version)
{
    return !str_eq(version, STR("1.0")) || headers_count(h, STR("transfer-encoding")) == 0;
}

/* --- Host --- */

/* Behind the ':': *DIGIT, so that none is right, too. */
static bool port_ok(struct str port)
{
    unsigned value = 0;

    if (port.len > PORT_DIGITS_MAX)
        return false;
    for (size_t i = 0; i < port.len; i++) {
        if (!ascii_is_digit(port.p[i]))
            return false;
        value = value * 10 + (unsigned)(port.p[i] - '0');
    }
    return value <= PORT_MAX;
}

/* RFC 3986 3.2.2, IP-literal: an IPv6 address. No zone (RFC 6874), which says nothing to anybody else; none of the future. */
static bool literal_ok(struct str s, struct str *rest)
{
    const size_t close = str_find_byte(s, ']');
    struct addr address;
    struct str inside;

    if (close == SIZE_MAX)
        return false;
    inside = str_sub(s, 1, close);
    *rest = str_sub(s, close + 1, s.len);
    return str_find_byte(inside, ':') != SIZE_MAX && addr_parse(inside, &address);
}

/* RFC 3986 3.2.2, reg-name, less what is read in more than one way: escapes, which some decode; the comma, which joins two headers; empty labels,
 * but for the one behind the last dot, which some drop. */
static bool name_ok(struct str s, struct str *rest)
{
    static const bool in_label[256] = {['a' ... 'z'] = true, ['A' ... 'Z'] = true, ['0' ... '9'] = true, ['-'] = true, ['_'] = true,
                                       ['~'] = true,         ['!'] = true,         ['$'] = true,         ['&'] = true, ['\''] = true,
                                       ['('] = true,         [')'] = true,         ['*'] = true,         ['+'] = true, [';'] = true,
                                       ['='] = true};
    *rest = s;
    for (;;) {
        const size_t n = str_span(*rest, in_label);

        if (n == 0)
            return rest->p != s.p && (rest->len == 0 || rest->p[0] == ':');
        str_skip(rest, n);
        if (rest->len == 0 || rest->p[0] != '.')
            return rest->len == 0 || rest->p[0] == ':';
        str_skip(rest, 1);
    }
}

/* RFC 1035 2.3.4: a name of at most 253 characters and the dot behind it; ":65535". The edge sends what passes twice, so a longer one would find no
 * room in HAProxy's buffer. */
enum { HOST_MAX = 253 + 1 + 1 + PORT_DIGITS_MAX };

/* RFC 9112 3.2: from HTTP/1.1 on there must be one. An empty one names nobody either. */
static bool may_lack_host(struct str version)
{
    return version.len == 0 || str_eq(version, STR("1.0"));
}

bool identify_host_ok(struct str host, struct str version)
{
    struct str rest;

    if (host.len == 0)
        return may_lack_host(version);
    if (host.len > HOST_MAX)
        return false;
    if (!(host.p[0] == '[' ? literal_ok(host, &rest) : name_ok(host, &rest)))
        return false;
    return rest.len == 0 || (rest.p[0] == ':' && port_ok(str_sub(rest, 1, rest.len)));
}
