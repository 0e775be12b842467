/* Lines as Cookie headers: every pair stands in them as sent, and many headers are as one. */
#include "common/http/cookies.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/guarantee.h"

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static void check_pair(const struct pair *p, struct str data)
{
    GUARANTEE(p->name.len > 0 && p->name.p >= data.p && p->value.p >= p->name.p);
    GUARANTEE(p->value.p + p->value.len <= data.p + data.len);
    GUARANTEE(str_find_byte(p->name, '=') == SIZE_MAX && str_find_byte(p->name, ';') == SIZE_MAX);
    GUARANTEE(str_find_byte(p->value, ';') == SIZE_MAX);
    GUARANTEE(!is_blank(p->name.p[0]) && !is_blank(p->name.p[p->name.len - 1]));
    GUARANTEE(p->value.len == 0 || (!is_blank(p->value.p[0]) && !is_blank(p->value.p[p->value.len - 1])));
}

/* The lines joined by "; " into one header hold the same pairs. */
static void check_joined(const struct headers *lines, const struct pairs *pairs, size_t size, struct arena *a)
{
    char *p = arena_take_bytes(a, 3 * size + 2);
    struct header one = {STR("Cookie"), STR_NONE};
    struct headers joined = {&one, 1};
    struct pairs again;
    struct buf b;

    GUARANTEE(p != NULL);
    buf_init(&b, p, 3 * size + 2);
    for (size_t i = 0; i < lines->n; i++) {
        buf_put_cstr(&b, i == 0 ? "" : "; ");
        buf_put(&b, lines->items[i].value);
    }
    one.value = buf_str(&b);
    GUARANTEE(!b.full && cookies_parse(&joined, a, &again) && again.n == pairs->n);
    for (size_t i = 0; i < again.n; i++)
        GUARANTEE(str_eq(again.items[i].name, pairs->items[i].name) && str_eq(again.items[i].value, pairs->items[i].value));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct header items[HEADERS_MAX];
    struct headers lines = {items, 0};
    struct str all = {(const char *)data, size}, rest = all;
    struct pairs pairs;
    struct arena a;

    while (rest.len > 0 && lines.n < HEADERS_MAX) {
        size_t end = str_find_byte(rest, '\n');

        items[lines.n++] = (struct header){STR("cookie"), str_sub(rest, 0, end)};
        rest = end == SIZE_MAX ? STR_NONE : str_sub(rest, end + 1, rest.len);
    }
    arena_init(&a, 65536, 0);
    GUARANTEE(cookies_parse(&lines, &a, &pairs));
    for (size_t i = 0; i < pairs.n; i++)
        check_pair(&pairs.items[i], all);
    check_joined(&lines, &pairs, size, &a);
    arena_release(&a);
    return 0;
}
