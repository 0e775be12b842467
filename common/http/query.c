/* Query parameters: cut at '&' and '=', decoded once. */
#include "common/http/query.h"

#include "common/base/codec.h"

/* Parts between '&' that are not empty. */
static size_t count_parts(struct str s)
{
    size_t n = 0;

    for (size_t i = 0; i < s.len; i++)
        n += s.p[i] != '&' && (i == 0 || s.p[i - 1] == '&');
    return n;
}

/* Puts what *s stands for in its place: itself, or, where there is something to decode, bytes of *room. False: an escape
 * is none. */
static bool decode(struct str *s, char **room)
{
    size_t len;

    if (str_find_byte(*s, '%') == SIZE_MAX && str_find_byte(*s, '+') == SIZE_MAX)
        return true;
    if (!codec_percent_decode(*s, true, *room, &len))
        return false;
    *s = (struct str){*room, len};
    *room += len;
    return true;
}

static bool read_pair(struct str text, char **room, struct pair *out)
{
    size_t equals = str_find_byte(text, '=');
    struct pair pair = {.name = str_sub(text, 0, equals)};

    if (equals != SIZE_MAX)
        pair.value = str_sub(text, equals + 1, text.len);
    if (text.len == 0 || str_find_byte(text, ';') != SIZE_MAX || !decode(&pair.name, room) || !decode(&pair.value, room))
        return false;
    *out = pair;
    return true;
}

bool query_parse(struct str query, struct arena *a, struct pairs *out)
{
    struct pair *items;
    size_t n = 0;
    char *room;
    bool more = query.len > 0;

    if (!more) {
        *out = (struct pairs){0};
        return true;
    }
    items = arena_take_n(a, count_parts(query), sizeof(*items));
    room = arena_take_bytes(a, query.len);
    if (items == NULL || room == NULL)
        return false;
    while (more) {
        size_t end = str_find_byte(query, '&');
        char *before = room;

        more = end != SIZE_MAX;
        if (read_pair(str_sub(query, 0, end), &room, &items[n]))
            n++;
        else
            room = before;
        if (more)
            query = str_sub(query, end + 1, query.len);
    }
    *out = (struct pairs){items, n};
    return true;
}
