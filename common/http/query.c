/* Query parameters: cut at '&' and '=', decoded once. */
#include "common/http/query.h"

#include "common/base/codec.h"

/* Pieces between '&' that hold something: the others are no parameters, and take no memory however many there are. */
static size_t count_pieces(struct str query)
{
    size_t n = 0;

    for (size_t i = 0; i < query.len; i++)
        n += query.p[i] != '&' && (i == 0 || query.p[i - 1] == '&');
    return n;
}

/* Decodes *s in place of itself, into *room where there is something to decode. False: an escape is none. */
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

    *out = (struct pair){.name = str_sub(text, 0, equals)};
    if (equals != SIZE_MAX)
        out->value = str_sub(text, equals + 1, text.len);
    return text.len > 0 && str_find_byte(text, ';') == SIZE_MAX && decode(&out->name, room) && decode(&out->value, room);
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
    /* One more: where a piece that turns out to be no parameter is read last. */
    items = arena_take_n(a, count_pieces(query) + 1, sizeof(*items));
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
