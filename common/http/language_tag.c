/* Language tags, cut into their subtags one by one: each kind is told by its length and where it stands. */
#include "common/http/language_tag.h"

enum { EXTENDED_MAX = 3, SUBTAG_MAX = 8 };

static bool is_alnum(char c)
{
    return ascii_is_alpha(c) || ascii_is_digit(c);
}

static bool all(struct str s, bool (*is)(char c))
{
    for (size_t i = 0; i < s.len; i++)
        if (!is(s.p[i]))
            return false;
    return true;
}

/* The next subtag is moved from rest to part. An empty one, as "--" and an end of "-" make it, is no subtag of any kind. */
static void next_subtag(struct str *rest, struct str *part)
{
    size_t n = 0;

    while (n < rest->len && rest->p[n] != '-' && rest->p[n] != '_')
        n++;
    *part = str_sub(*rest, 0, n);
    str_skip(rest, n);
    if (rest->len > 1)
        str_skip(rest, 1);
}

static bool is_variant(struct str s)
{
    return all(s, is_alnum) && ((s.len >= 5 && s.len <= SUBTAG_MAX) || (s.len == 4 && ascii_is_digit(s.p[0])));
}

static bool is_singleton(struct str s)
{
    return s.len == 1 && is_alnum(s.p[0]);
}

/* What stands behind a singleton: subtags of min to 8 letters and digits, at least one. */
static bool take_extension(struct str *rest, struct str *part, size_t min)
{
    size_t n = 0;

    for (next_subtag(rest, part); part->len >= min && part->len <= SUBTAG_MAX && all(*part, is_alnum); next_subtag(rest, part))
        n++;
    return n > 0;
}

/* RFC 5646 2.1, "irregular", and what the registry says to write instead; "" where that is nothing. */
static const struct {
    struct str tag, instead;
} grandfathered[] = {
    {STR("en-GB-oed"), STR("en-GB")}, {STR("i-ami"), STR("ami")},      {STR("i-bnn"), STR("bnn")},   {STR("i-default"), STR("")},
    {STR("i-enochian"), STR("")},     {STR("i-hak"), STR("hak")},      {STR("i-klingon"), STR("tlh")}, {STR("i-lux"), STR("lb")},
    {STR("i-mingo"), STR("see")},     {STR("i-navajo"), STR("nv")},    {STR("i-pwn"), STR("pwn")},   {STR("i-tao"), STR("tao")},
    {STR("i-tay"), STR("tay")},       {STR("i-tsu"), STR("tsu")},      {STR("sgn-BE-FR"), STR("sfb")}, {STR("sgn-BE-NL"), STR("vgt")},
    {STR("sgn-CH-DE"), STR("sgg")},
};

static char as_read(char c)
{
    return c == '_' ? '-' : ascii_lower(c);
}

bool language_tag_equal(struct str a, struct str b)
{
    if (a.len != b.len)
        return false;
    for (size_t i = 0; i < a.len; i++)
        if (as_read(a.p[i]) != as_read(b.p[i]))
            return false;
    return true;
}

bool language_tag_read(struct str s, struct language_tag *out)
{
    struct language_tag tag = {0};
    struct str part;

    if (s.len > LANGUAGE_RANGE_MAX)
        return false;
    next_subtag(&s, &tag.language);
    if (tag.language.len < 2 || tag.language.len > SUBTAG_MAX || !all(tag.language, ascii_is_alpha))
        return false;
    size_t n_extended = tag.language.len <= 3 ? EXTENDED_MAX : 0;
    for (next_subtag(&s, &part); n_extended > 0 && part.len == 3 && all(part, ascii_is_alpha); n_extended--) {
        tag.language = part;
        next_subtag(&s, &part);
    }
    if (part.len == 4 && all(part, ascii_is_alpha)) {
        tag.script = part;
        next_subtag(&s, &part);
    }
    if ((part.len == 2 && all(part, ascii_is_alpha)) || (part.len == 3 && all(part, ascii_is_digit))) {
        tag.region = part;
        next_subtag(&s, &part);
    }
    while (is_variant(part))
        next_subtag(&s, &part);
    while (is_singleton(part) && ascii_lower(part.p[0]) != 'x')
        if (!take_extension(&s, &part, 2))
            return false;
    if (is_singleton(part) && !take_extension(&s, &part, 1))
        return false;
    if (part.len > 0 || s.len > 0)
        return false;
    *out = tag;
    return true;
}

bool language_range_read(struct str s, struct language_tag *out)
{
    struct str rest = s, part;

    if (language_tag_read(s, out))
        return true;
    for (size_t i = 0; i < sizeof grandfathered / sizeof grandfathered[0]; i++)
        if (language_tag_equal(s, grandfathered[i].tag)) {
            *out = (struct language_tag){0};
            (void) language_tag_read(grandfathered[i].instead, out);
            return true;
        }
    next_subtag(&rest, &part);
    if (s.len > LANGUAGE_RANGE_MAX || !str_eq_nocase(part, STR("x")) || !take_extension(&rest, &part, 1) || part.len > 0 || rest.len > 0)
        return false;
    *out = (struct language_tag){0};
    return true;
}
