/* The client's address out of the headers of proxies: one address with or without a port, and the walk along X-Forwarded-For. */
#include "common/net/client_ip.h"

enum { PORT_MAX = 65535, PORT_DIGITS_MAX = 5 };

static bool is_port(struct str s)
{
    uint32_t n = 0;

    if (s.len == 0 || s.len > PORT_DIGITS_MAX)
        return false;
    for (size_t i = 0; i < s.len; i++) {
        if (!ascii_is_digit(s.p[i]))
            return false;
        n = n * 10 + (uint32_t) (s.p[i] - '0');
    }
    return n <= PORT_MAX;
}

static size_t find_last_colon(struct str s)
{
    size_t i = s.len;

    while (i > 0 && s.p[i - 1] != ':')
        i--;
    return i == 0 ? SIZE_MAX : i - 1;
}

/* "[2001:db8::1]" or "[2001:db8::1]:443"; only IPv6 stands in brackets (RFC 3986 3.2.2). */
static bool parse_bracketed(struct str s, enum client_ip_form form, struct addr *out)
{
    const size_t end = str_find_byte(s, ']');
    const struct str inside = str_sub(s, 1, end), behind = str_sub(s, end == SIZE_MAX ? s.len : end + 1, s.len);

    if (end == SIZE_MAX || str_find_byte(inside, ':') == SIZE_MAX)
        return false;
    if (behind.len == 0 ? form == CLIENT_IP_ADDRESS_PORT : behind.p[0] != ':' || !is_port(str_sub(behind, 1, behind.len)))
        return false;
    return addr_parse(inside, out);
}

bool client_ip_parse(struct str s, enum client_ip_form form, struct addr *out)
{
    const size_t colon = find_last_colon(s);
    const struct str host = str_sub(s, 0, colon);

    if (str_starts(s, STR("[")))
        return parse_bracketed(s, form, out);
    if (form == CLIENT_IP_ADDRESS && addr_parse(s, out))
        return true;
    if (colon == SIZE_MAX || !is_port(str_sub(s, colon + 1, s.len)))
        return false;
    /* In the form without a port what is left of the last colon must be IPv4: else it was the last group of an address. */
    if (form == CLIENT_IP_ADDRESS && str_find_byte(host, ':') != SIZE_MAX)
        return false;
    return addr_parse(host, out);
}

/* Cuts the last entry off a comma list. False: the list is used up. */
static bool take_last(struct str *list, struct str *entry)
{
    size_t from = list->len;

    if (list->p == NULL)
        return false;
    while (from > 0 && list->p[from - 1] != ',')
        from--;
    *entry = str_trim(str_sub(*list, from, list->len));
    *list = from == 0 ? STR_NONE : str_sub(*list, 0, from - 1);
    return true;
}

enum client_ip_walk client_ip_walk(const struct str *values, size_t n, const struct addr_set *trusted, struct addr *out)
{
    struct addr leftmost, here;
    bool has_leftmost = false;

    while (n-- > 0) {
        struct str list = values[n], entry;

        while (take_last(&list, &entry)) {
            if (entry.len == 0)
                continue;
            if (!client_ip_parse(entry, CLIENT_IP_ADDRESS, &here))
                return CLIENT_IP_MALFORMED;
            if (!addr_set_has(trusted, &here)) {
                *out = here;
                return CLIENT_IP_FOUND;
            }
            leftmost = here;
            has_leftmost = true;
        }
    }
    if (!has_leftmost)
        return CLIENT_IP_MISSING;
    *out = leftmost;
    return CLIENT_IP_FOUND;
}
