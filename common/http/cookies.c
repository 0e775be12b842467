/* Cookies: cut at ';' and '='. */
#include "common/http/cookies.h"

static bool is_cookie_header(const struct header *h)
{
    return str_eq_nocase(h->name, STR("cookie"));
}

/* Parts of a value that may be cookies: those with a '=' that is not their first byte. A value of nothing but '=' or ';'
 * takes no memory. */
static size_t count_parts(struct str value)
{
    size_t n = 0, from = 0;
    bool has_equals = false;

    for (size_t i = 0; i < value.len; i++) {
        if (value.p[i] == ';') {
            from = i + 1;
            has_equals = false;
        } else if (value.p[i] == '=' && !has_equals) {
            has_equals = true;
            n += i > from;
        }
    }
    return n;
}

static size_t count_cookies_max(const struct headers *headers)
{
    size_t n = 0;

    for (size_t i = 0; i < headers->n; i++)
        if (is_cookie_header(&headers->items[i]))
            n += count_parts(headers->items[i].value);
    return n;
}

static bool read_cookie(struct str part, struct pair *out)
{
    size_t equals = str_find_byte(part, '=');

    if (equals == SIZE_MAX)
        return false;
    out->name = str_trim(str_sub(part, 0, equals));
    out->value = str_trim(str_sub(part, equals + 1, part.len));
    return out->name.len > 0;
}

/* Adds those of one header's value behind n and returns how many there are then. */
static size_t read_cookies(struct str rest, struct pair *items, size_t n)
{
    bool more = true;

    while (more) {
        size_t end = str_find_byte(rest, ';');

        more = end != SIZE_MAX;
        n += read_cookie(str_sub(rest, 0, end), &items[n]);
        if (more)
            rest = str_sub(rest, end + 1, rest.len);
    }
    return n;
}

bool cookies_parse(const struct headers *headers, struct arena *a, struct pairs *out)
{
    size_t n_max = count_cookies_max(headers), n = 0;
    struct pair *items;

    if (n_max == 0) {
        *out = (struct pairs){0};
        return true;
    }
    /* One more: where a part that turns out to be no cookie is read last. */
    items = arena_take_n(a, n_max + 1, sizeof(*items));
    if (items == NULL)
        return false;
    for (size_t i = 0; i < headers->n; i++)
        if (is_cookie_header(&headers->items[i]))
            n = read_cookies(headers->items[i].value, items, n);
    *out = (struct pairs){items, n};
    return true;
}
