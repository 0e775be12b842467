/* Header lists: the binary encoding both ways, and which names and values are allowed or reserved. */
#include <CUnit/CUnit.h>
#include <ctype.h>

#include "common/base/varint.h"
#include "common/http/headers.h"
#include "tests/unit/case_raw.h"

enum { BIN_MAX = 1024, VALUE_MAX = 64 };

static struct arena arena;

static int set_up(void)
{
    arena_init(&arena, 16384, 0);
    return 0;
}

static int tear_down(void)
{
    arena_release(&arena);
    return 0;
}

static bool pair_is(const struct header *h, const json_t *pair)
{
    return str_eq(h->name, str_of(json_string_value(json_array_get(pair, 0)))) &&
           str_eq(h->value, str_of(json_string_value(json_array_get(pair, 1))));
}

static void check_decoded(const json_t *row, struct str bin, const json_t *want)
{
    struct headers h;
    if (!CASE_CHECK(row, headers_decode(bin, &arena, &h)) || !CASE_CHECK(row, h.n == json_array_size(want)))
        return;
    char storage[BIN_MAX];
    struct buf again;
    buf_init(&again, storage, sizeof(storage));
    for (size_t i = 0; i < h.n; i++) {
        CASE_CHECK(row, pair_is(&h.items[i], json_array_get(want, i)));
        headers_put_add(&again, h.items[i].name, h.items[i].value);
    }
    headers_end_add(&again);
    CASE_CHECK(row, !again.full && str_eq(buf_str(&again), bin));
}

static void decode_rows(void)
{
    json_t *rows = cases_load("tests/cases/http/headers_decode.json"), *row;
    size_t i;
    json_array_foreach(rows, i, row)
    {
        char storage[BIN_MAX];
        struct str bin = case_bytes(row, "bin_hex", storage, sizeof(storage));
        const json_t *want = json_object_get(row, "headers");
        if (json_is_array(want)) {
            check_decoded(row, bin, want);
        } else {
            struct headers h = {NULL, 77};
            CASE_CHECK(row, !headers_decode(bin, &arena, &h) && h.n == 77);
        }
        arena_reset(&arena);
    }
    json_decref(rows);
}

static void put_n(struct buf *b, size_t n)
{
    for (size_t i = 0; i < n; i++)
        headers_put_add(b, STR("a"), STR("1"));
    headers_end_add(b);
}

static void at_most_128(void)
{
    char storage[BIN_MAX];
    struct buf b;
    struct headers h = {NULL, 0};
    buf_init(&b, storage, sizeof(storage));
    put_n(&b, HEADERS_MAX);
    CU_ASSERT(headers_decode(buf_str(&b), &arena, &h));
    CU_ASSERT_EQUAL(h.n, HEADERS_MAX);
    buf_init(&b, storage, sizeof(storage));
    put_n(&b, HEADERS_MAX + 1);
    CU_ASSERT(!b.full);
    CU_ASSERT(!headers_decode(buf_str(&b), &arena, &h));
    arena_reset(&arena);
}

static void decode_without_memory(void)
{
    struct arena tight;
    struct headers h = {NULL, 77};
    arena_init(&tight, 64, 8);
    CU_ASSERT(!headers_decode((struct str){"\1a\1b\0\0", 6}, &tight, &h));
    CU_ASSERT_EQUAL(h.n, 77);
    arena_release(&tight);
}

static void look_up(void)
{
    struct header items[] = {{STR("host"), STR("a.example")}, {STR("cookie"), STR("a=1")}, {STR("cookie"), STR("b=2")}};
    struct headers h = {items, 3};
    struct str value = STR("untouched");
    CU_ASSERT(!headers_get(&h, STR("cooki"), &value));
    CU_ASSERT(str_eq(value, STR("untouched")));
    CU_ASSERT(headers_get(&h, STR("Cookie"), &value));
    CU_ASSERT(str_eq(value, STR("a=1")));
    CU_ASSERT_EQUAL(headers_count(&h, STR("COOKIE")), 2);
    CU_ASSERT_EQUAL(headers_count(&h, STR("accept")), 0);
}

static void single_line(void)
{
    struct header items[] = {{STR("host"), STR("a.example")}, {STR("cookie"), STR("a=1")}, {STR("Cookie"), STR("b=2")}};
    struct headers h = {items, 3};
    struct str value = STR("untouched");
    CU_ASSERT(!headers_get_single(&h, STR("cookie"), &value));
    CU_ASSERT(!headers_get_single(&h, STR("accept"), &value));
    CU_ASSERT(str_eq(value, STR("untouched")));
    CU_ASSERT(headers_get_single(&h, STR("HOST"), &value));
    CU_ASSERT(str_eq(value, STR("a.example")));
}

static void joined_lines(void)
{
    struct header items[] = {{STR("via"), STR("")}, {STR("host"), STR("a.example")}, {STR("Via"), STR("b")}, {STR("via"), STR("c, d")}};
    struct headers h = {items, 4};
    struct str value = STR("untouched");
    struct arena tight;
    CU_ASSERT(headers_join(&h, STR("VIA"), &arena, &value));
    CU_ASSERT(str_eq(value, STR(", b, c, d")));
    CU_ASSERT(headers_join(&h, STR("host"), &arena, &value));
    CU_ASSERT(value.p == items[1].value.p && value.len == items[1].value.len);
    CU_ASSERT(headers_join(&h, STR("accept"), &arena, &value));
    CU_ASSERT_EQUAL(value.len, 0);
    value = STR("untouched");
    arena_init(&tight, 64, 8);
    CU_ASSERT(!headers_join(&h, STR("via"), &tight, &value));
    CU_ASSERT(str_eq(value, STR("untouched")));
    arena_release(&tight);
    arena_reset(&arena);
}

static void operation_lists(void)
{
    char storage[64];
    struct buf b;
    buf_init(&b, storage, sizeof(storage));
    headers_put_del(&b, STR("x-a"));
    headers_put_del(&b, STR("cookie"));
    headers_end_del(&b);
    CU_ASSERT(str_eq(buf_str(&b), STR("\3x-a\6cookie\0")));
    buf_init(&b, storage, sizeof(storage));
    headers_put_add(&b, STR("x-a"), STR("1"));
    headers_put_add(&b, STR("x-b"), STR(""));
    headers_end_add(&b);
    CU_ASSERT(str_eq(buf_str(&b), STR("\3x-a\1"
                                      "1\3x-b\0\0\0")));
    buf_init(&b, storage, 4);
    headers_put_add(&b, STR("x-a"), STR("1"));
    CU_ASSERT(b.full);
}

static void name_rows(void)
{
    json_t *rows = cases_load("tests/cases/http/header_names.json"), *row;
    size_t i;
    json_array_foreach(rows, i, row)
    {
        char storage[VALUE_MAX];
        struct str name = case_raw(row, "name", storage, sizeof(storage));
        CASE_CHECK(row, header_name_ok(name) == json_is_true(json_object_get(row, "ok")));
        CASE_CHECK(row, header_name_reserved(name) == json_is_true(json_object_get(row, "reserved")));
    }
    json_decref(rows);
}

static void value_rows(void)
{
    json_t *rows = cases_load("tests/cases/http/header_values.json"), *row;
    size_t i;
    json_array_foreach(rows, i, row)
    {
        char storage[VALUE_MAX];
        CASE_CHECK(row, header_value_ok(case_raw(row, "value", storage, sizeof(storage))) ==
                            json_is_true(json_object_get(row, "ok")));
    }
    json_decref(rows);
}

/* The name as written, in capitals and with '_', and the name with something behind it. */
static void check_reserved(const char *text, bool is_prefix)
{
    char name[64];
    size_t len = strlen(text);
    CU_ASSERT_FATAL(len + 1 < sizeof(name));
    memcpy(name, text, len);
    name[len] = 'x';
    CU_ASSERT(header_name_reserved((struct str){name, len}));
    CU_ASSERT_EQUAL(header_name_reserved((struct str){name, len + 1}), is_prefix);
    CU_ASSERT(!header_name_reserved((struct str){name, len - 1}));
    for (size_t i = 0; i < len; i++)
        name[i] = name[i] == '-' ? '_' : (char)toupper((unsigned char)name[i]);
    CU_ASSERT(header_name_reserved((struct str){name, len}));
}

static void reserved_table(void)
{
#define RESERVED_HEADER(text) check_reserved(text, false);
#define RESERVED_PREFIX(text) check_reserved(text, true);
#include "schemas/reserved_headers.def"
#undef RESERVED_HEADER
#undef RESERVED_PREFIX
}

void test_headers_register(void)
{
    CU_pSuite s = CU_add_suite("headers", set_up, tear_down);
    CU_add_test(s, "a binary header list decodes to what it holds and encodes back, or is refused whole", decode_rows);
    CU_add_test(s, "a list of more than HEADERS_MAX headers is refused, so a request's memory is bounded", at_most_128);
    CU_add_test(s, "a list that finds no memory is refused and leaves the output alone", decode_without_memory);
    CU_add_test(s, "a look-up ignores case, takes the first value and counts all", look_up);
    CU_add_test(s, "a header that is read as a single one is absent where it stands twice", single_line);
    CU_add_test(s, "lines of one header are joined in their order, a single one is borrowed, and without memory the output is left alone", joined_lines);
    CU_add_test(s, "operation lists are encoded as HAProxy and edge.lua read them", operation_lists);
    CU_add_test(s, "only a token is a name, and no spelling of a reserved name escapes", name_rows);
    CU_add_test(s, "a value with a control character or outer blanks is refused, so none splits a header", value_rows);
    CU_add_test(s, "every row of the reserved table holds in capitals and with underscores", reserved_table);
}
