/* Texts of a fixed shape, byte by byte: fingerprints of TLS hellos, countries. Whole ones, and what can be a part of one. */
#include "common/expr/literal_priv.h"

/* One letter a byte: h lower-case hex digit, d digit, a letter or digit, U upper-case letter, others as follows; '_' is
 * itself. */
#define HEX_6 "hhhhhh"
static const struct str ja3_shape = STR(HEX_6 HEX_6 HEX_6 HEX_6 HEX_6 "hh");
static const struct str ja4_shape = STR("pvdsddddaa_" HEX_6 HEX_6 "_" HEX_6 HEX_6);
static const struct str country_shape = STR("UU");

static bool is_one_of(char c, const char *set)
{
    return c != '\0' && strchr(set, c) != NULL;
}

static bool class_has(char class, char c)
{
    switch (class) {
    case 'h':
        return ascii_is_digit(c) || (c >= 'a' && c <= 'f');
    case 'd':
        return ascii_is_digit(c);
    case 'a':
        return ascii_is_digit(c) || ascii_is_alpha(c);
    case 'U':
        return c >= 'A' && c <= 'Z';
    case 'p': /* transport: TCP, QUIC, DTLS */
        return is_one_of(c, "tqd");
    case 'v': /* first of a version: 1x, sx, dx or 00 */
        return is_one_of(c, "01sd");
    case 's': /* a server name or none */
        return is_one_of(c, "di");
    default:
        return c == class;
    }
}

static bool stands_at(struct str shape, size_t at, struct str s, bool folded)
{
    for (size_t i = 0; i < s.len; i++) {
        char c = s.p[i], other = c;

        if (folded && ascii_is_alpha(c))
            other = (char)(c ^ 0x20);
        if (!class_has(shape.p[at + i], c) && !class_has(shape.p[at + i], other))
            return false;
    }
    return true;
}

static bool has_part(struct str shape, struct str s, enum part part, bool folded)
{
    if (s.len > shape.len)
        return false;
    switch (part) {
    case WHOLE:
        return s.len == shape.len && stands_at(shape, 0, s, folded);
    case BEGINNING:
        return stands_at(shape, 0, s, folded);
    case ENDING:
        return stands_at(shape, shape.len - s.len, s, folded);
    case INSIDE:
        for (size_t at = 0; at + s.len <= shape.len; at++)
            if (stands_at(shape, at, s, folded))
                return true;
        break;
    }
    return false;
}

/* The versions that TLS and DTLS have had; 00 is one that the fingerprint does not know. */
static bool is_version(struct str s)
{
    static const char *const versions[] = {"13", "12", "11", "10", "s3", "s2", "d1", "d2", "d3", "00"};

    for (size_t i = 0; i < sizeof(versions) / sizeof(versions[0]); i++)
        if (str_eq_nocase(s, str_of(versions[i])))
            return true;
    return false;
}

enum { JA4_VERSION_FROM = 1, JA4_VERSION_TO = 3 };

bool shape_ja3_has(struct str s, enum part part, bool folded)
{
    return has_part(ja3_shape, s, part, folded);
}

bool shape_ja4_has(struct str s, enum part part, bool folded)
{
    bool has_version = (part == WHOLE || part == BEGINNING) && s.len >= JA4_VERSION_TO;

    return has_part(ja4_shape, s, part, folded) &&
           (!has_version || is_version(str_sub(s, JA4_VERSION_FROM, JA4_VERSION_TO)));
}

bool shape_country_has(struct str s, enum part part, bool folded)
{
    return has_part(country_shape, s, part, folded);
}

bool expr_ja3_ok(struct str s)
{
    return shape_ja3_has(s, WHOLE, false);
}

bool expr_ja4_ok(struct str s)
{
    return shape_ja4_has(s, WHOLE, false);
}
