/* Any bytes as a binary header list: refused whole, or decoded to what encodes back to the same bytes. */
#include "common/http/headers.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/guarantee.h"

static void check_encodes_back(const struct headers *h, struct str bin, struct arena *a)
{
    struct buf b;
    char *storage = arena_take_bytes(a, bin.len);
    GUARANTEE(storage != NULL);
    buf_init(&b, storage, bin.len);
    for (size_t i = 0; i < h->n; i++) {
        GUARANTEE(h->items[i].name.len > 0);
        headers_put_add(&b, h->items[i].name, h->items[i].value);
    }
    headers_end_add(&b);
    GUARANTEE(!b.full && str_eq(buf_str(&b), bin));
}

static void check_item(const struct headers *h, const struct header *item)
{
    struct str first;
    GUARANTEE(headers_get(h, item->name, &first) && headers_count(h, item->name) >= 1);
    if (header_name_ok(item->name))
        GUARANTEE(str_is_token(item->name) && item->name.len <= 256);
    if (header_value_ok(item->value))
        GUARANTEE(str_find(item->value, STR("\r")) == SIZE_MAX && str_find(item->value, STR("\n")) == SIZE_MAX);
    if (str_starts(item->name, STR("x-edge-")))
        GUARANTEE(header_name_reserved(item->name));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str bin = {(const char *)data, size};
    struct headers h;
    struct arena a;
    arena_init(&a, 4096, 0);
    if (headers_decode(bin, &a, &h)) {
        GUARANTEE(h.n <= HEADERS_MAX);
        check_encodes_back(&h, bin, &a);
        for (size_t i = 0; i < h.n; i++)
            check_item(&h, &h.items[i]);
    }
    arena_release(&a);
    return 0;
}
