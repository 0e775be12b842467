/* Any bytes as a query: the pairs that target_clean_query keeps, decoded once, and no others. */
#include "common/base/codec.h"
#include "common/http/query.h"
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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str query = {(const char *)data, size}, clean;
    struct pairs pairs;
    struct arena a;

    arena_init(&a, 65536, 0);
    GUARANTEE(query_parse(query, &a, &pairs) && target_clean_query(query, &a, &clean));
    check_against_clean(clean, &pairs, &a);
    arena_release(&a);
    return 0;
}
