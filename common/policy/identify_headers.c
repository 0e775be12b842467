/* What identification knows about headers and versions: names that only the edge may say, and the one form of HTTP versions. */
#include "common/policy/identify.h"

static bool begins_as(struct str name, struct str prefix)
{
    for (size_t i = 0; i < prefix.len; i++)
        if (i >= name.len || (name.p[i] == '_' ? '-' : name.p[i]) != prefix.p[i])
            return false;
    return true;
}

bool identify_is_twin(struct str name, struct str of)
{
    return name.len == of.len && begins_as(name, of);
}

bool identify_is_edge_header(struct str name)
{
    return begins_as(name, STR("x-edge-"));
}

bool identify_is_forwarding_header(struct str name)
{
    return begins_as(name, STR("x-forwarded-")) || identify_is_twin(name, STR("forwarded")) || identify_is_twin(name, STR("x-request-id"));
}

struct str identify_http_version(struct str s)
{
    static const struct {
        const char *sent, *version;
    } forms[] = {{"1.0", "1.0"},      {"1.1", "1.1"},      {"2.0", "2.0"},      {"3.0", "3.0"},    {"HTTP/1.0", "1.0"},
                 {"HTTP/1.1", "1.1"}, {"HTTP/2.0", "2.0"}, {"HTTP/3.0", "3.0"}, {"HTTP/2", "2.0"}, {"HTTP/3", "3.0"}};

    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++)
        if (str_eq(s, str_of(forms[i].sent)))
            return str_of(forms[i].version);
    return STR_NONE;
}
