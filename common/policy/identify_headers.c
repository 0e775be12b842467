/* What identification knows about headers and versions: names that only the edge may say, and the one form of HTTP versions. */
#include "common/policy/identify.h"

static bool begins_as(struct str name, struct str prefix)
{
    for (size_t i = 0; i < prefix.len; i++)
        if (i >= name.len || (name.p[i] == '_' ? '-' : name.p[i]) != prefix.p[i])
            return false;
    return true;
}

bool identify_is_edge_header(struct str name)
{
    return begins_as(name, STR("x-edge-"));
}

static bool is_alnum(char c)
{
    return ascii_is_alpha(c) || ascii_is_digit(c);
}

/* Whether name begins with a spelling of prefix: whatever is no letter or digit is one character. */
static bool begins_alike(struct str name, struct str prefix)
{
    for (size_t i = 0; i < prefix.len; i++)
        if (i >= name.len || (is_alnum(prefix.p[i]) ? name.p[i] != prefix.p[i] : is_alnum(name.p[i])))
            return false;
    return true;
}

static bool is_alike(struct str name, struct str of)
{
    return name.len == of.len && begins_alike(name, of);
}

bool identify_is_stripped(struct str name, const struct str *own, size_t n_own)
{
#define STRIPPED_HEADER(text)                                                                                                                \
    if (is_alike(name, STR(text)))                                                                                                           \
        return true;
#define STRIPPED_PREFIX(text)                                                                                                                \
    if (begins_alike(name, STR(text)))                                                                                                       \
        return true;
#define STRIPPED_TWINS(text)                                                                                                                 \
    if (is_alike(name, STR(text)) && !str_eq(name, STR(text)))                                                                               \
        return true;
#include "schemas/stripped_headers.def"
#undef STRIPPED_HEADER
#undef STRIPPED_PREFIX
#undef STRIPPED_TWINS
    for (size_t i = 0; i < n_own; i++)
        if (is_alike(name, own[i]))
            return true;
    return false;
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
