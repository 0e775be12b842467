/* Any bytes as a request target, a Host and a query. */
#include "common/base/codec.h"
#include "common/http/target.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/guarantee.h"

static bool lies_within(struct str inner, struct str outer)
{
    return inner.len == 0 || (inner.p >= outer.p && inner.p + inner.len <= outer.p + outer.len);
}

static void check_split(struct str url)
{
    struct target t;
    target_split(url, &t);
    GUARANTEE(lies_within(t.path, url) && lies_within(t.query, url));
    GUARANTEE(t.path.len == 0 || t.path.p[0] == '/');
    GUARANTEE(str_find_byte(t.path, '?') == SIZE_MAX);
    GUARANTEE(t.has_query == (str_find_byte(url, '?') != SIZE_MAX));
    GUARANTEE(t.has_query || t.query.len == 0);
    if (str_starts(url, STR("/")))
        GUARANTEE(t.path.len + (t.has_query ? 1 : 0) + t.query.len == url.len);
}

static void check_host(struct str header, struct arena *a)
{
    struct str host;
    GUARANTEE(target_host(header, a, &host));
    GUARANTEE(host.len <= header.len);
    for (size_t i = 0; i < host.len; i++)
        GUARANTEE(ascii_lower(host.p[i]) == host.p[i]);
    GUARANTEE(str_starts(header, STR("[")) || str_find_byte(host, ':') == SIZE_MAX || str_eq_nocase(host, header));
}

static void check_query(struct str query, struct arena *a)
{
    struct str clean, again;
    GUARANTEE(target_clean_query(query, a, &clean));
    for (size_t i = 0; i < clean.len; i++) {
        GUARANTEE(clean.p[i] > ' ' && clean.p[i] < 0x7f && clean.p[i] != '#' && clean.p[i] != ';');
        GUARANTEE(clean.p[i] != '%' ||
                  (clean.len - i > 2 && codec_hex_digit(clean.p[i + 1]) >= 0 && codec_hex_digit(clean.p[i + 2]) >= 0));
    }
    GUARANTEE(!str_eq(clean, query) || clean.p == query.p);
    GUARANTEE(target_clean_query(clean, a, &again) && again.len == clean.len && again.p == clean.p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str input = {(const char *)data, size};
    struct arena a;
    arena_init(&a, 4096, 0);
    check_split(input);
    check_host(input, &a);
    check_query(input, &a);
    GUARANTEE(a.used_bytes <= 5 * size);
    arena_release(&a);
    return 0;
}
