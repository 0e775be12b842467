/* Collects the names of a query's parameters in one pass over its first pairs. */
#include "common/http/query_names.h"

#include "common/base/codec.h"

static const bool name_bytes[256] = {
    ['0' ... '9'] = true, ['A' ... 'Z'] = true, ['a' ... 'z'] = true, ['_'] = true, ['.'] = true, ['['] = true, [']'] = true, ['-'] = true,
};

/* Pairs that hold something. */
static uint64_t count_pairs(struct str query)
{
    uint64_t n = 0;

    for (size_t i = 0; i < query.len; i++)
        n += query.p[i] != '&' && (i == 0 || query.p[i - 1] == '&');
    return n;
}

static bool is_escape(struct str at)
{
    return at.len >= 3 && codec_hex_digit(at.p[1]) >= 0 && codec_hex_digit(at.p[2]) >= 0;
}

/* Whether upstreams get it as a parameter: no ';', and every '%' begins an escape. */
static bool is_parameter(struct str pair)
{
    if (str_find_byte(pair, ';') != SIZE_MAX)
        return false;
    for (size_t at; (at = str_find_byte(pair, '%')) != SIZE_MAX; str_skip(&pair, at + 1))
        if (!is_escape(str_sub(pair, at, pair.len)))
            return false;
    return true;
}

/* The name in its decoded form, into room where it is another one. False: too long, or of other bytes. */
static bool decode(struct str *name, char room[static QUERY_NAME_LEN_MAX])
{
    char whole[3 * QUERY_NAME_LEN_MAX];
    size_t len;

    if (str_span(*name, name_bytes) == name->len)
        return name->len > 0 && name->len <= QUERY_NAME_LEN_MAX;
    if (name->len > sizeof whole || !codec_percent_decode(*name, true, whole, &len) || len > QUERY_NAME_LEN_MAX)
        return false;
    memcpy(room, whole, len);
    *name = (struct str){room, len};
    return len > 0 && str_span(*name, name_bytes) == len;
}

/* Where name stands in the sorted list, or would. */
static size_t place_of(const struct query_names *names, struct str name, bool *found)
{
    size_t low = 0, high = names->n;

    *found = false;
    while (low < high && !*found) {
        size_t middle = (low + high) / 2;
        int order = str_cmp(name, names->items[middle]);
        *found = order == 0;
        if (order <= 0)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

static void add(struct query_names *names, struct str name)
{
    char *room = names->decoded[names->n < QUERY_NAMES_MAX ? names->n : QUERY_NAMES_MAX - 1];
    char last[QUERY_NAME_LEN_MAX];
    bool full = names->n == QUERY_NAMES_MAX, found;

    if (!decode(&name, full ? last : room)) {
        names->n_dropped++;
        return;
    }
    size_t at = place_of(names, name, &found);
    if (found)
        return;
    if (full) {
        names->n_dropped++;
        return;
    }
    memmove(&names->items[at + 1], &names->items[at], (names->n - at) * sizeof names->items[0]);
    names->items[at] = name;
    names->n++;
}

void query_names(struct str query, struct query_names *out)
{
    bool all_plain = str_find_byte(query, '%') == SIZE_MAX && str_find_byte(query, ';') == SIZE_MAX;

    out->n = 0;
    out->n_dropped = 0;
    for (size_t i = 0; i < QUERY_NAMES_PAIRS_MAX; i++) {
        while (query.len > 0 && query.p[0] == '&')
            str_skip(&query, 1);
        if (query.len == 0)
            return;
        struct str pair = str_sub(query, 0, str_find_byte(query, '&'));
        str_skip(&query, pair.len);
        if (!all_plain && !is_parameter(pair))
            continue;
        size_t equals = str_find_byte(pair, '=');
        if (equals == SIZE_MAX)
            out->n_dropped++;
        else
            add(out, str_sub(pair, 0, equals));
    }
    out->n_dropped += count_pairs(query);
}
