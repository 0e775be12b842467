/* The request target cut into path and query, the host as rules see it, and the query without what does not parse. */
#include "common/http/target.h"

#include "common/http/uri_bytes_priv.h"
#include "common/net/addr.h"

/* Length of "scheme://" (RFC 3986 3.1) at the front of url, 0 when there is none. */
static size_t scheme_len(struct str url)
{
    size_t n = 0;
    while (n < url.len && (ascii_is_alpha(url.p[n]) || ascii_is_digit(url.p[n]) || url.p[n] == '+' || url.p[n] == '-' ||
                           url.p[n] == '.'))
        n++;
    if (n == 0 || !ascii_is_alpha(url.p[0]) || !str_starts(str_sub(url, n, url.len), STR("://")))
        return 0;
    return n + 3;
}

void target_split(struct str url, struct target *out)
{
    size_t question = str_find_byte(url, '?');
    struct str before = str_sub(url, 0, question);
    *out = (struct target){.path = STR_NONE, .query = STR_NONE, .has_query = question != SIZE_MAX};
    if (out->has_query)
        out->query = str_sub(url, question + 1, url.len);
    size_t authority = scheme_len(before);
    size_t slash = authority == 0 ? 0 : str_find_byte(str_sub(before, authority, before.len), '/');
    out->absolute = authority > 0;
    if (out->absolute)
        out->authority = str_sub(before, authority, slash == SIZE_MAX ? before.len : authority + slash);
    if (slash == SIZE_MAX)
        return;
    struct str path = str_sub(before, authority + slash, before.len);
    if (str_starts(path, STR("/")))
        out->path = path;
}

bool target_bytes_ok(struct str url)
{
    return uri_bytes_ok(url, URI_QUERY);
}

/* Without brackets only an IPv6 address may hold a ':'; of any other text the first one ends the name, as it does for
 * upstreams that take the port from there. */
static struct str without_port(struct str host)
{
    if (str_starts(host, STR("["))) {
        size_t close = str_find_byte(host, ']');
        if (close != SIZE_MAX)
            return str_sub(host, 1, close);
    }
    size_t colon = str_find_byte(host, ':');
    struct addr bare;
    struct str name = colon != SIZE_MAX && addr_parse(host, &bare) ? host : str_sub(host, 0, colon);
    return str_ends(name, STR(".")) ? str_sub(name, 0, name.len - 1) : name;
}

bool target_host(struct str host_header, struct arena *a, struct str *out)
{
    static const bool not_upper[256] = {[0 ... '@'] = true, ['[' ... 0xff] = true};
    struct str host = without_port(host_header);
    if (str_span(host, not_upper) == host.len) {
        *out = host;
        return true;
    }
    return arena_copy_lower(a, host, out);
}

static bool pair_parses(struct str pair)
{
    for (size_t i = 0; i < pair.len; i++)
        if (pair.p[i] == ';' || (pair.p[i] == '%' && uri_escape_at(pair, i) < 0))
            return false;
    return true;
}

/* Cuts the pair off the front of rest; false when there was none. "a&" ends in an empty pair, "" is one. */
static bool next_pair(struct str *rest, bool *more, struct str *pair)
{
    if (!*more)
        return false;
    size_t end = str_find_byte(*rest, '&');
    *pair = str_sub(*rest, 0, end);
    *more = end != SIZE_MAX;
    *rest = *more ? str_sub(*rest, end + 1, rest->len) : STR_NONE;
    return true;
}

static bool drop_unparsable(struct str query, struct arena *a, struct str *out)
{
    char *p = arena_take_bytes(a, query.len);
    if (p == NULL)
        return false;
    size_t len = 0, n_kept = 0;
    struct str rest = query, pair;
    for (bool more = true; next_pair(&rest, &more, &pair);) {
        if (!pair_parses(pair))
            continue;
        if (n_kept++ > 0)
            p[len++] = '&';
        if (pair.len > 0)
            memcpy(p + len, pair.p, pair.len);
        len += pair.len;
    }
    *out = (struct str){p, len};
    return true;
}

bool target_clean_query(struct str query, struct arena *a, struct str *out)
{
    static const bool parses_anywhere[256] = {[0 ... '$'] = true, ['&' ... ':'] = true, ['<' ... 0xff] = true};
    struct str kept = query, rest = query, pair;
    bool all_parse = true;
    if (str_span(query, parses_anywhere) == query.len)
        return uri_escape(query, URI_QUERY, a, out);
    for (bool more = true; next_pair(&rest, &more, &pair);)
        all_parse = all_parse && pair_parses(pair);
    if (!all_parse && !drop_unparsable(query, a, &kept))
        return false;
    return uri_escape(kept, URI_QUERY, a, out);
}
