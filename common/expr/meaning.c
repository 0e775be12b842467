/* What the values of fields never are: by field, whatever the operator. A rule that asks for it would look active and do
 * nothing. */
#include "common/expr/literal_priv.h"

#include "common/base/codec.h"

static bool begins(enum part part)
{
    return part == WHOLE || part == BEGINNING;
}

static bool ends(enum part part)
{
    return part == WHOLE || part == ENDING;
}

static bool has_byte(struct str s, char byte)
{
    return str_find_byte(s, byte) != SIZE_MAX;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static bool is_address_byte(char c)
{
    return ascii_is_digit(c) || (c >= 'a' && c <= 'f') || c == ':' || c == '.';
}

/* Each of the next ones says why v can never be that part of the field's value, and what would be right; NULL: it can. */

/* HAProxy refuses a Host with any of these. */
static bool is_no_host_byte(char c)
{
    return c <= ' ' || c == 0x7f || (unsigned char)c >= 0x80 || str_find_byte(STR("/?#@,"), c) != SIZE_MAX;
}

static const char *no_host_reason(struct str v)
{
    for (size_t i = 0; i < v.len; i++)
        if (is_no_host_byte(v.p[i]))
            return "a host is a name or an address alone, of ASCII letters, digits and signs: write it without scheme, path and blanks, "
                   "other letters as xn--";
    return NULL;
}

/* Only an IPv6 address keeps a ':' once the port is off. */
static const char *host_reason(struct str v, enum part part, bool folded)
{
    static const char *const no_port = "http.host has no port: leave it out";
    struct addr whole;

    for (size_t i = 0; i < v.len; i++)
        if (!folded && ascii_lower(v.p[i]) != v.p[i])
            return "http.host is always lower case: write it so";
    if (has_byte(v, '[') || has_byte(v, ']'))
        return "http.host has no brackets: write an IPv6 address without them";
    if ((part == WHOLE || part == ENDING) && str_ends(v, STR(".")))
        return "http.host has no dot at its end: leave it out";
    if (!has_byte(v, ':'))
        return no_host_reason(v);
    for (size_t i = 0; i < v.len; i++)
        if (!is_address_byte(ascii_lower(v.p[i])))
            return no_port;
    return part == WHOLE && !addr_parse(v, &whole) ? no_port : NULL;
}

/* Every other method is refused before rules are asked. */
static const char *method_reason(struct str v, bool folded)
{
    for (size_t i = 0; i < v.len; i++) {
        if (!ascii_is_tchar(v.p[i]))
            return "a method is an RFC 9110 token such as GET";
        if (!folded && v.p[i] >= 'a' && v.p[i] <= 'z')
            return "a method is upper case (others are refused with 400): write it so";
    }
    return NULL;
}

/* Whether v has a whole "." or ".." segment: one that a '/' or the end of the path bounds on either side. */
static bool has_dot_segment(struct str v, enum part part)
{
    bool ends_path = part == WHOLE || part == ENDING;

    for (size_t from = str_find_byte(v, '/'); from < v.len;) {
        struct str rest = str_sub(v, from + 1, v.len);
        size_t slash = str_find_byte(rest, '/');
        struct str segment = str_sub(rest, 0, slash);

        if ((str_eq(segment, STR(".")) || str_eq(segment, STR(".."))) && (slash != SIZE_MAX || ends_path))
            return true;
        from = slash == SIZE_MAX ? v.len : from + 1 + slash;
    }
    return false;
}

/* Holds v against common/http/path.h: what normalisation removes or the edge refuses is in no path that a rule sees. */
static const char *path_reason(struct str v, enum part part)
{
    if (has_byte(v, '\\'))
        return "a path with a backslash is refused with 400";
    if (has_byte(v, ';'))
        return "rules see paths without their ;parameters: leave them out";
    if (str_find(v, STR("//")) != SIZE_MAX)
        return "rules see // as /: write it so";
    if (has_dot_segment(v, part))
        return "rules see paths without . segments, and .. is refused with 400: leave them out";
    return NULL;
}

/* v as far as it goes, or all of beginning; v of a folded operator is lower case. */
static bool is_begun_by(struct str v, struct str beginning)
{
    return str_eq(str_sub(v, 0, beginning.len), str_sub(beginning, 0, v.len));
}

/* What the host of a full address is held to: v from behind the scheme on. */
static const char *authority_reason(struct str v, enum part part, bool folded)
{
    size_t slash = str_find_byte(v, '/');
    struct str host = str_sub(v, 0, slash);

    if (part == WHOLE && slash == SIZE_MAX)
        return "a full address has a path behind its host, as https://a.example/ has: add the /";
    for (size_t i = 0; i < host.len; i++) {
        if (!folded && ascii_lower(host.p[i]) != host.p[i])
            return "the host of a full address is always lower case: write it so";
        if (host.p[i] == ':' && !str_starts(host, STR("[")))
            return "a full address has no port: leave it out";
    }
    return NULL;
}

static const char *full_uri_reason(struct str v, enum part part, bool folded)
{
    if (!begins(part))
        return NULL;
    if (str_starts(v, STR("https://")) || str_starts(v, STR("http://")))
        return authority_reason(str_sub(v, str_find(v, STR("://")) + 3, v.len), part, folded);
    if (part == BEGINNING && (is_begun_by(v, STR("https://")) || is_begun_by(v, STR("http://"))))
        return NULL;
    return "a full address begins with https:// or http://: write it so";
}

/* Addresses are refused or escaped but for the bytes that may stand in them (RFC 3986 2). */
static const char *sent_reason(struct str v)
{
    for (size_t i = 0; i < v.len; i++) {
        if (v.p[i] == '#')
            return "no client sends a # and what is behind it: leave it out";
        if (v.p[i] <= ' ' || v.p[i] == 0x7f || (unsigned char)v.p[i] >= 0x80)
            return "an address has no blanks, control characters and bytes beyond ASCII as sent: write them as %20 and so on";
    }
    return NULL;
}

static const char *query_reason(struct str v, enum part part)
{
    if (has_byte(v, ';'))
        return "parameters with a ; are dropped from the query: leave it out";
    for (size_t i = 0; i < v.len; i++)
        for (size_t at = i + 1; v.p[i] == '%' && at <= i + 2; at++)
            if (at < v.len ? codec_hex_digit(v.p[at]) < 0 : ends(part))
                return "a % in the query is followed by two hex digits, else its parameter is dropped: write % itself as %25";
    return sent_reason(v);
}

/* Of a header or a cookie: blanks around it are not part of it. */
static const char *value_reason(enum field f, struct str v, enum part part)
{
    bool joined = f == FIELD_HTTP_X_FORWARDED_FOR; /* of several the last may be empty: "192.0.2.1, " */

    if (v.len == 0)
        return NULL;
    if ((begins(part) && is_blank(v.p[0])) || (ends(part) && !joined && is_blank(v.p[v.len - 1])))
        return "rules see values without the blanks around them: leave them out";
    return has_byte(v, '\n') || has_byte(v, '\r') ? "a value is one line: leave the line break out" : NULL;
}

static bool has_reserved_prefix(struct str v)
{
    static const struct str prefixes[] = {
#define RESERVED_HEADER(text)
#define RESERVED_PREFIX(text) {(text), sizeof(text) - 1},
#include "schemas/reserved_headers.def"
#undef RESERVED_HEADER
#undef RESERVED_PREFIX
    };

    for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++)
        if (header_names_alike(str_sub(v, 0, prefixes[i].len), prefixes[i]))
            return true;
    return false;
}

static const char *header_name_reason(struct str v, enum part part, bool folded)
{
    for (size_t i = 0; i < v.len; i++) {
        if (!ascii_is_tchar(v.p[i]))
            return "the name of a header is an RFC 9110 token such as x-api-key";
        if (!folded && ascii_lower(v.p[i]) != v.p[i])
            return "names of headers are seen in lower case: write it so";
    }
    if (part == WHOLE && v.len == 0)
        return "the name of a header has at least one character";
    return (begins(part) && has_reserved_prefix(v)) || (part == WHOLE && header_name_reserved(v)) ? "rules do not see this header: it belongs to the edge" : NULL;
}

/* Whether s is that part of text. */
static bool is_part(struct str text, struct str s, enum part part, bool folded)
{
    size_t at = part == ENDING ? text.len - s.len : 0, last = part == INSIDE ? text.len - s.len : at;

    if (s.len > text.len || (part == WHOLE && s.len != text.len))
        return false;
    for (; at <= last; at++) {
        struct str here = str_sub(text, at, at + s.len);

        if (folded ? str_eq_nocase(here, s) : str_eq(here, s))
            return true;
    }
    return false;
}

static bool is_part_of_any(const char *const *texts, struct str s, enum part part, bool folded)
{
    for (size_t i = 0; texts[i] != NULL; i++)
        if (is_part(str_of(texts[i]), s, part, folded))
            return true;
    return false;
}

static const char *continent_reason(struct str v, enum part part, bool folded)
{
    static const char *const continents[] = {"AF", "AN", "AS", "EU", "NA", "OC", "SA", NULL};

    return is_part_of_any(continents, v, part, folded)
               ? NULL
               : "a continent is one of AF AN AS EU NA OC SA, in upper case: write it so";
}

bool meaning_is_version(struct str s, enum part part)
{
    static const char *const versions[] = {"1.0", "1.1", "2.0", "3.0", NULL};

    return is_part_of_any(versions, s, part, false);
}

bool meaning_lacks_slash(enum field f, struct str s, enum part part)
{
    return (f == FIELD_HTTP_PATH || f == FIELD_HTTP_URI) && begins(part) && !str_starts(s, STR("/"));
}

const char *meaning_refuses(enum field f, struct str s, enum part part, bool folded)
{
    if (part == WHOLE && s.len == 0 && !field_info(f)->list)
        return field_info(f)->absent == ABSENT_NEVER ? "this field has at least one character" : NULL;
    if (f == FIELD_HTTP_HOST)
        return host_reason(s, part, folded);
    if (f == FIELD_HTTP_METHOD)
        return method_reason(s, folded);
    if (f == FIELD_HTTP_PATH)
        return path_reason(s, part);
    if (f == FIELD_HTTP_URI)
        return sent_reason(s);
    if (f == FIELD_HTTP_FULL_URI) {
        const char *reason = full_uri_reason(s, part, folded);
        return reason != NULL ? reason : sent_reason(s);
    }
    if (f == FIELD_HTTP_QUERY)
        return query_reason(s, part);
    if (f == FIELD_HTTP_HEADERS_NAMES)
        return header_name_reason(s, part, folded);
    if (f == FIELD_HTTP_COOKIES && has_byte(s, ';'))
        return "a cookie's value has no ;: it ends there";
    if (f == FIELD_HTTP_HEADERS || f == FIELD_HTTP_COOKIES || f == FIELD_HTTP_USER_AGENT || f == FIELD_HTTP_REFERER || f == FIELD_HTTP_X_FORWARDED_FOR)
        return value_reason(f, s, part);
    if (f == FIELD_IP_COUNTRY && !shape_country_has(s, part, folded))
        return "a country is two upper-case letters (ISO 3166-1) such as DE: write it so";
    if (f == FIELD_IP_CONTINENT)
        return continent_reason(s, part, folded);
    if (f == FIELD_TLS_JA3 && !shape_ja3_has(s, part, folded))
        return "a JA3 fingerprint is 32 lower-case hex digits";
    if (f == FIELD_TLS_JA4 && !shape_ja4_has(s, part, folded))
        return "a JA4 fingerprint looks like t13d1516h2_8daaf6152771_02713d6af862";
    return NULL;
}

const char *meaning_refuses_int(enum field f, const struct value *v, enum op op)
{
    static const int64_t asnum_max = UINT32_MAX;
    bool is_asnum = f == FIELD_IP_ASNUM;

    if (is_asnum && (v->ints.last < 0 || v->ints.first > asnum_max))
        return "the number of an autonomous system is between 0 and 4294967295";
    if (is_asnum && op == OP_LT && v->ints.first == 0)
        return "no number of an autonomous system is less than 0";
    if (is_asnum && op == OP_GT && v->ints.first == asnum_max)
        return "no number of an autonomous system is greater than that";
    return NULL;
}
