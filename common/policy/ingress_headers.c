/* Which headers may say something about the client, and the list of those that do. */
#include "common/policy/ingress_priv.h"

/* Every name of a table that a name may be refused by: exactly, or by its beginning. */
struct name_row {
    struct str text;
    bool is_prefix;
};

static bool is_client_header(struct str name)
{
    static const struct name_row rows[] = {
#define CLIENT_HEADER(text) {{(text), sizeof(text) - 1}, false},
#define CLIENT_PREFIX(text) {{(text), sizeof(text) - 1}, true},
#include "schemas/client_headers.def"
#undef CLIENT_HEADER
#undef CLIENT_PREFIX
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (str_eq_nocase(rows[i].is_prefix ? str_sub(name, 0, rows[i].text.len) : name, rows[i].text))
            return true;
    return false;
}

/* Of the names that belong to the edge, proxies in front use these, and the edge reads them before it replaces them. */
static bool is_forwarded(struct str name)
{
    const struct str prefix = STR("x-forwarded-");

    return str_eq_nocase(str_sub(name, 0, prefix.len), prefix);
}

const char *ingress_header_refused(struct str name)
{
    if (!header_name_ok(name))
        return "is no name of a header: an RFC 9110 token of at most 256 characters, such as X-Real-IP";
    if (str_find_byte(name, '_') != SIZE_MAX)
        return "has a _ in it, which upstreams read as -, so that clients could write it in another way: let the proxy in front send it with -";
    if (str_eq_nocase(name, STR("x-forwarded-host")))
        return "says which host is asked for and nothing about the client: name a header that does";
    if (header_name_reserved(name) && !is_forwarded(name))
        return "belongs to the connection or to the edge, which no proxy in front speaks by: name a header that only that proxy writes";
    if (is_client_header(name))
        return "is written by clients, and as a source it would be taken out of their requests: name a header that only the proxy in front writes";
    return NULL;
}

bool ingress_own_header(struct ingress_reading *r, struct str name, struct str *out)
{
    struct ingress *in = &r->in;

    for (size_t i = 0; i < in->n_own_headers; i++)
        if (str_eq_nocase(in->own_headers[i], name)) {
            *out = in->own_headers[i];
            return true;
        }
    if (!arena_copy_lower(r->a, name, out)) {
        r->no_memory = true;
        return false;
    }
    in->own_headers[in->n_own_headers++] = *out;
    in->own_lengths |= UINT64_C(1) << (name.len < 63 ? name.len : 63);
    return true;
}

size_t ingress_own_place(const struct ingress *in, struct str name)
{
    size_t i = 0;

    while (in->own_headers[i].p != name.p)
        i++;
    return i;
}
