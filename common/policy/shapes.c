/* Origins and URLs: how they must look. */
#include "common/policy/shapes_priv.h"

#include "common/base/parse.h"
#include "common/net/addr.h"

static bool is_alnum(char c)
{
    return ascii_is_alpha(c) || ascii_is_digit(c);
}

/* Part of s up to the first byte c, and *s behind it; the whole of s when there is none. */
static struct str cut_at(struct str *s, char c)
{
    size_t at = str_find_byte(*s, c);
    struct str part = str_sub(*s, 0, at);

    *s = at == SIZE_MAX ? STR_NONE : str_sub(*s, at + 1, s->len);
    return part;
}

/* --- hosts --- */

static bool is_ipv6(struct str s)
{
    char text[ADDR_TEXT_MAX];
    struct addr a;

    return str_find_byte(s, ':') != SIZE_MAX && addr_parse(s, &a) && str_eq((struct str){text, addr_render(&a, text)}, s);
}

static bool is_label_byte(char c)
{
    return is_alnum(c) || c == '-' || c == '_';
}

/* A name of labels, an IPv4 address included. */
static bool is_host_name(struct str s)
{
    if (s.len == 0 || s.len > 253)
        return false;
    while (s.len > 0) {
        bool more = str_find_byte(s, '.') != SIZE_MAX;
        struct str label = cut_at(&s, '.');
        if (label.len == 0 || label.len > 63 || (more && s.len == 0))
            return false;
        for (size_t i = 0; i < label.len; i++)
            if (!is_label_byte(label.p[i]))
                return false;
    }
    return true;
}

/* Cuts host and port; the port is empty when none is written. NULL, or what is wrong. */
static const char *authority_fault(struct str authority, struct str *port)
{
    struct str host;
    bool has_colon;

    if (authority.len > 0 && authority.p[0] == '[') {
        size_t close = str_find_byte(authority, ']');
        host = str_sub(authority, 1, close);
        if (close == SIZE_MAX || !is_ipv6(host))
            return "what stands in brackets is no IPv6 address in its short lower-case form";
        authority = str_sub(authority, close + 1, authority.len);
        has_colon = authority.len > 0;
        if (has_colon && authority.p[0] != ':')
            return "behind the address only :port may stand";
        *port = str_sub(authority, 1, authority.len);
    } else {
        has_colon = str_find_byte(authority, ':') != SIZE_MAX;
        host = cut_at(&authority, ':');
        *port = authority;
        if (!is_host_name(host))
            return "the host is no name of letters, digits, '-', '_' and '.', nor an address";
    }
    uint64_t number;
    if (has_colon && (!parse_digits(*port, UINT16_MAX, &number) || number == 0))
        return "the port is no number from 1 to 65535";
    return NULL;
}

/* --- origins --- */

static bool is_scheme(struct str s)
{
    if (s.len == 0 || !ascii_is_alpha(s.p[0]))
        return false;
    for (size_t i = 0; i < s.len; i++)
        if (!is_alnum(s.p[i]) && s.p[i] != '+' && s.p[i] != '-' && s.p[i] != '.')
            return false;
    return true;
}

static bool has_upper_case(struct str s)
{
    for (size_t i = 0; i < s.len; i++)
        if (ascii_lower(s.p[i]) != s.p[i])
            return true;
    return false;
}

const char *shape_origin_fault(struct str s)
{
    size_t at = str_find(s, STR("://"));
    struct str scheme = str_sub(s, 0, at), port = STR_NONE;

    if (at == SIZE_MAX || !is_scheme(scheme))
        return "it must be scheme://host or scheme://host:port";
    if (s.len > SHAPE_ORIGIN_MAX)
        return "it is longer than 255 bytes";
    if (str_find_byte(s, '*') != SIZE_MAX)
        return "wildcards are not known in origins: list each, or use \"*\" alone for all";
    struct str authority = str_sub(s, at + 3, s.len);
    if (str_find_byte(authority, '/') != SIZE_MAX)
        return "an origin has no path and no / at its end";
    if (has_upper_case(s))
        return "browsers send origins in lower case: write it so";
    const char *fault = authority_fault(authority, &port);
    if (fault)
        return fault;
    if ((str_eq(scheme, STR("https")) && str_eq(port, STR("443"))) || (str_eq(scheme, STR("http")) && str_eq(port, STR("80"))))
        return "browsers leave out the scheme's own port: leave it out here";
    return NULL;
}

/* --- URLs --- */

/* RFC 3986 allows these in a path and query, '#' and '@' apart. */
static bool is_url_byte(char c)
{
    return is_alnum(c) || (c != '\0' && memchr("-._~!$&'()*+,;=:@/?%", c, sizeof "-._~!$&'()*+,;=:@/?%" - 1) != NULL);
}

const char *shape_https_fault(struct str s)
{
    struct str prefix = STR("https://"), port;

    if (!str_starts(s, prefix))
        return "it must begin with https://";
    if (s.len > SHAPE_URL_MAX)
        return "it is longer than 2048 bytes";
    struct str rest = str_sub(s, prefix.len, s.len);
    if (str_find_byte(rest, '#') != SIZE_MAX)
        return "a fragment (#...) is not sent: leave it out";
    size_t end = 0;
    while (end < rest.len && rest.p[end] != '/' && rest.p[end] != '?')
        end++;
    struct str authority = str_sub(rest, 0, end);
    if (str_find_byte(authority, '@') != SIZE_MAX)
        return "a user or password does not belong into it";
    const char *fault = authority_fault(authority, &port);
    if (fault)
        return fault;
    for (size_t i = end; i < rest.len; i++)
        if (!is_url_byte(rest.p[i]))
            return "it holds a byte that must be percent-encoded";
    return NULL;
}
