/* UPSTREAM_URL in parts. */
#include <arpa/inet.h>

#include "common/base/parse.h"
#include "spoa/settings.h"

/* A name, or an IPv4 address: what ends in a number must be one (so "10.0.1" is no name). */
static bool is_upstream_name(struct str host)
{
    char text[INET_ADDRSTRLEN];
    struct in_addr v4;
    size_t label = host.len;

    for (size_t i = 0; i < host.len; i++)
        if (!ascii_is_alpha(host.p[i]) && !ascii_is_digit(host.p[i]) && memchr("-._", host.p[i], 3) == NULL)
            return false;
    if (host.len == 0 || host.len > 253 || host.p[0] == '.' || str_find(host, STR("..")) != SIZE_MAX)
        return false;
    while (label > 0 && host.p[label - 1] != '.')
        label--;
    if (label == host.len || !ascii_is_digit(host.p[label]))
        return true;
    for (size_t i = label; i < host.len; i++)
        if (!ascii_is_digit(host.p[i]))
            return true;
    if (host.len >= sizeof(text))
        return false;
    memcpy(text, host.p, host.len);
    text[host.len] = '\0';
    return inet_pton(AF_INET, text, &v4) == 1;
}

static bool is_ipv6(const char *text)
{
    struct in6_addr addr;

    return inet_pton(AF_INET6, text, &addr) == 1;
}

static bool is_authority_only(struct str s)
{
    for (size_t i = 0; i < s.len; i++)
        if (memchr("/?#", s.p[i], 3) != NULL)
            return false;
    return true;
}

/* Cuts "host", "host:port" or "[v6]:port". port is empty when there is none. */
static bool split_authority(struct str authority, struct str *host, bool *is_v6, struct str *port)
{
    size_t colon;

    *is_v6 = authority.len > 0 && authority.p[0] == '[';
    if (*is_v6) {
        const size_t close = str_find_byte(authority, ']');

        if (close == SIZE_MAX)
            return false;
        *host = str_sub(authority, 1, close);
        colon = close + 1;
    } else {
        colon = str_find_byte(authority, ':');
        *host = str_sub(authority, 0, colon);
    }
    *port = STR_NONE;
    if (colon >= authority.len)
        return true;
    *port = str_sub(authority, colon + 1, authority.len);
    return authority.p[colon] == ':' && port->len > 0;
}

bool settings_split_upstream(const char *url, struct upstream_addr *out, struct err *e)
{
    const struct str http = STR("http://"), https = STR("https://"), whole = str_of(url);
    const bool tls = str_eq_nocase(str_sub(whole, 0, https.len), https);
    struct upstream_addr addr = {.tls = tls};
    struct str rest, host, port;
    uint64_t number = tls ? 443 : 80;
    bool is_v6;

    if (!tls && !str_eq_nocase(str_sub(whole, 0, http.len), http))
        return err_set(e, ERR_BAD_VALUE, "", "must begin with http:// or https://, as in \"http://127.0.0.1:8000\"");
    rest = str_sub(whole, tls ? https.len : http.len, whole.len);
    /* Before anything of the value is quoted: what stands there is a secret. */
    if (str_find_byte(rest, '@') != SIZE_MAX)
        return err_set(e, ERR_BAD_VALUE, "", "must not hold a user or password; write scheme, host and port only");
    if (rest.len > 0 && rest.p[rest.len - 1] == '/')
        rest.len--;
    if (!is_authority_only(rest))
        return err_set(e, ERR_BAD_VALUE, "", "must not have a path, query or fragment: requests keep their own");
    if (!split_authority(rest, &host, &is_v6, &port) || host.len >= sizeof(addr.host))
        return err_set(e, ERR_BAD_VALUE, "",
                       "has no readable host and port; write http://host:port or http://[v6]:port");
    if (port.len > 0 && !parse_u64(port, 1, UINT16_MAX, &number, "", e))
        return false;
    memcpy(addr.host, host.p, host.len);
    addr.port = (uint16_t)number;
    if (is_v6 ? !is_ipv6(addr.host) : !is_upstream_name(host))
        return err_set(e, ERR_BAD_VALUE, "", "the host must be a name, an IPv4 address or an IPv6 address in brackets");
    *out = addr;
    return true;
}
