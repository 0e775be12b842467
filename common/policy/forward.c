/* Filters of request headers at work. */
#include "common/policy/forward_priv.h"

bool forward_always_keeps(struct str name)
{
    return str_eq_nocase(name, STR("traceparent")) || str_eq_nocase(name, STR("tracestate")) || header_name_reserved(name);
}

/* Order of str_cmp; lower is in lower case. */
static int cmp_nocase(struct str name, struct str lower)
{
    size_t n = name.len < lower.len ? name.len : lower.len;

    for (size_t i = 0; i < n; i++) {
        int diff = (unsigned char) ascii_lower(name.p[i]) - (unsigned char) lower.p[i];
        if (diff != 0)
            return diff;
    }
    return name.len < lower.len ? -1 : name.len > lower.len;
}

static bool is_named(const struct str_list *names, struct str name)
{
    size_t from = 0, to = names->n;

    while (from < to) {
        size_t middle = from + (to - from) / 2;
        int order = cmp_nocase(name, names->items[middle]);
        if (order == 0)
            return true;
        if (order < 0)
            to = middle;
        else
            from = middle + 1;
    }
    return false;
}

static bool is_twin_of_any(const struct str_list *names, struct str name)
{
    for (size_t i = 0; i < names->n; i++)
        if (header_names_alike(names->items[i], name))
            return true;
    return false;
}

/* RFC 6455 4.1: without them the upgrade that every filter keeps comes to nothing. HAProxy would make a key of its own, and the client refuse the answer
 * to it. A denylist may name them. */
static bool is_websocket_handshake(struct str name)
{
    return str_eq_nocase(name, STR("sec-websocket-key")) || str_eq_nocase(name, STR("sec-websocket-version")) ||
           str_eq_nocase(name, STR("sec-websocket-protocol")) || str_eq_nocase(name, STR("sec-websocket-extensions"));
}

static bool is_wanted(const struct forward_filter *filter, struct str name)
{
    switch (filter->mode) {
    case FORWARD_ALLOWLIST:
        return is_named(&filter->names, name) || is_websocket_handshake(name);
    case FORWARD_DENYLIST:
        return !is_twin_of_any(&filter->names, name);
    case FORWARD_ALL:
        break;
    }
    return true;
}

bool forward_keeps(const struct forward_filter *filter, struct str name)
{
    return is_wanted(filter, name) || forward_always_keeps(name);
}
