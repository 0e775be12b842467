/* Any bytes as a query: the pairs that target_clean_query keeps, decoded once, and no others. */
#include <string.h>

#include "common/base/codec.h"
#include "common/http/query.h"
#include "common/http/query_names.h"
#include "common/http/target.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/guarantee.h"

/* What is left of the query behind its next part, which is empty at the end. */
static struct str next_part(struct str *rest)
{
    size_t end = str_find_byte(*rest, '&');
    struct str part = str_sub(*rest, 0, end);

    *rest = end == SIZE_MAX ? STR_NONE : str_sub(*rest, end + 1, rest->len);
    return part;
}

static bool is_decoded(struct str value, struct str sent, struct arena *a)
{
    char *p = arena_take_bytes(a, sent.len);
    size_t len;

    GUARANTEE(p != NULL);
    return codec_percent_decode(sent, true, p, &len) && str_eq(value, (struct str){p, len});
}

/* Each pair is one of the clean query's non-empty parts, in order, and none is left out. */
static void check_against_clean(struct str clean, const struct pairs *pairs, struct arena *a)
{
    size_t n = 0;

    while (clean.len > 0) {
        struct str part = next_part(&clean);
        size_t equals = str_find_byte(part, '=');

        if (part.len == 0)
            continue;
        GUARANTEE(n < pairs->n && is_decoded(pairs->items[n].name, str_sub(part, 0, equals), a));
        GUARANTEE(is_decoded(pairs->items[n].value, equals == SIZE_MAX ? STR_NONE : str_sub(part, equals + 1, part.len), a));
        n++;
    }
    GUARANTEE(n == pairs->n);
}

static bool is_told(const struct query_names *names, struct str name)
{
    for (size_t i = 0; i < names->n; i++)
        if (str_eq(names->items[i], name))
            return true;
    return false;
}

static bool is_name(struct str s)
{
    for (size_t i = 0; i < s.len; i++)
        if (!ascii_is_alpha(s.p[i]) && !ascii_is_digit(s.p[i]) && (s.p[i] == '\0' || strchr("_.[]-", s.p[i]) == NULL))
            return false;
    return s.len > 0 && s.len <= QUERY_NAME_LEN_MAX;
}

/* Each name is a parameter's, of harmless bytes, in order; a parameter with a value has its name there unless there is no room for it. */
static void check_names(struct str query, const struct pairs *pairs)
{
    struct query_names names;
    size_t n_pieces = 0;

    query_names(query, &names);
    GUARANTEE(names.n <= QUERY_NAMES_MAX);
    for (size_t i = 0; i < names.n; i++) {
        bool sent = false;
        for (size_t k = 0; k < pairs->n && !sent; k++)
            sent = str_eq(pairs->items[k].name, names.items[i]);
        GUARANTEE(sent && is_name(names.items[i]) && (i == 0 || str_cmp(names.items[i - 1], names.items[i]) < 0));
    }
    for (struct str rest = query; rest.len > 0;)
        n_pieces += next_part(&rest).len > 0;
    for (size_t k = 0; k < pairs->n && n_pieces <= QUERY_NAMES_PAIRS_MAX && names.n < QUERY_NAMES_MAX; k++)
        GUARANTEE(pairs->items[k].value.len == 0 || !is_name(pairs->items[k].name) || is_told(&names, pairs->items[k].name));
    GUARANTEE(names.n + names.n_dropped <= n_pieces);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str query = {(const char *)data, size}, clean;
    struct pairs pairs;
    struct arena a;

    arena_init(&a, 65536, 0);
    GUARANTEE(query_parse(query, &a, &pairs) && target_clean_query(query, &a, &clean));
    check_against_clean(clean, &pairs, &a);
    check_names(query, &pairs);
    check_names(clean, &pairs);
    arena_release(&a);
    return 0;
}
