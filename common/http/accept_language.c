/* Accept-Language: cut at ',' and ';', then put in order by weight. */
#include "common/http/accept_language.h"

#include "common/http/language_tag.h"

enum { WHOLE = 1000 };

/* Part of rest up to the first byte c, and rest behind it; the whole of it when there is none. */
static struct str cut_at(struct str *rest, char c)
{
    size_t at = str_find_byte(*rest, c);
    struct str part = str_sub(*rest, 0, at);

    *rest = at == SIZE_MAX ? STR_NONE : str_sub(*rest, at + 1, rest->len);
    return str_trim(part);
}

/* A number from 0 to 1 with any count of decimals, where RFC 9110 12.4.2 has at most three: those beyond count for nothing, but none is more than 1. */
static bool read_weight(struct str text, uint16_t *out)
{
    unsigned whole = 0, thousandths = 0, place = WHOLE;
    bool has_point = false, has_digit = false, has_rest = false;

    for (size_t i = 0; i < text.len; i++) {
        if (text.p[i] == '.' && !has_point) {
            has_point = true;
            continue;
        }
        if (!ascii_is_digit(text.p[i]))
            return false;
        unsigned digit = (unsigned) (text.p[i] - '0');
        has_digit = true;
        if (!has_point && (whole = 10 * whole + digit) > 1)
            return false;
        if (has_point && place > 1)
            thousandths += digit * (place /= 10);
        else if (has_point)
            has_rest = has_rest || digit > 0;
    }
    if (!has_digit || (whole == 1 && (thousandths > 0 || has_rest)))
        return false;
    thousandths += whole * WHOLE;
    *out = (uint16_t) thousandths;
    return true;
}

/* item: "en", "en;q=0.5"; of several weights the first one counts. False: it is left out. */
static bool read_item(struct str item, struct language_range *out)
{
    struct language_range range = {.tag = cut_at(&item, ';'), .thousandths = WHOLE};
    struct language_tag tag;
    bool has_weight = false;

    while (item.len > 0) {
        struct str value = cut_at(&item, ';'), name = cut_at(&value, '=');
        if (has_weight || !str_eq_nocase(name, STR("q")))
            continue;
        if (!read_weight(str_trim(value), &range.thousandths))
            return false;
        has_weight = true;
    }
    if (range.thousandths == 0 || (!str_eq(range.tag, STR("*")) && !language_range_read(range.tag, &tag)))
        return false;
    *out = range;
    return true;
}

size_t accept_language_parse(struct str header, struct language_range out[static ACCEPT_LANGUAGE_RANGES_MAX])
{
    struct language_range range;
    size_t n = 0;

    if (header.len > ACCEPT_LANGUAGE_MAX)
        return 0;
    while (header.len > 0 && n < ACCEPT_LANGUAGE_RANGES_MAX) {
        if (!read_item(cut_at(&header, ','), &range))
            continue;
        /* Inserted behind all that weigh as much or more. */
        size_t at = n++;
        for (; at > 0 && out[at - 1].thousandths < range.thousandths; at--)
            out[at] = out[at - 1];
        out[at] = range;
    }
    return n;
}
