/* SPOP frames in memory: what is read is whole or nothing, what is written is whole or nothing. */
#include <CUnit/CUnit.h>

#include "tests/unit/wire_frames.h"

static struct str bytes_of(const void *p, size_t len)
{
    return (struct str){p, len};
}

static void header_is_taken_apart(void)
{
    static const uint8_t bytes[] = {3, 0x80, 0, 0, 1, 0xf0, 0x00, 5, 'x', 'y'};
    struct spop_frame f;
    struct err e = {0};

    CU_ASSERT_TRUE(spop_frame_parse(bytes_of(bytes, sizeof(bytes)), &f, &e));
    CU_ASSERT_EQUAL(f.type, SPOP_NOTIFY);
    CU_ASSERT_EQUAL(f.flags, 0x80000001U);
    CU_ASSERT_EQUAL(f.stream_id, 240);
    CU_ASSERT_EQUAL(f.frame_id, 5);
    CU_ASSERT_TRUE(str_eq(f.payload, STR("xy")));
}

static void cut_header_is_refused_and_output_untouched(void)
{
    static const uint8_t bytes[] = {3, 0, 0, 0, 1, 0xf0, 0x80, 0x00, 0xf0, 0x00};

    for (size_t len = 0; len < sizeof(bytes); len++) {
        struct spop_frame f = {.type = 77};
        struct err e = {0};

        CU_ASSERT_FALSE(spop_frame_parse(bytes_of(bytes, len), &f, &e));
        CU_ASSERT_EQUAL(f.type, 77);
        CU_ASSERT_EQUAL(e.code, ERR_PROTOCOL);
    }
}

static void every_cut_of_every_value_is_refused_and_nothing_moves(void)
{
    static const struct {
        const char *bytes;
        size_t len;
    } values[] = {
        {"\x02\xf0\x00", 3},
        {"\x03\xff\xf0\x00", 4},
        {"\x04\xf5\x05", 3},
        {"\x05\xff\xff\xff\x00", 5},
        {"\x06\x01\x02\x03\x04", 5},
        {"\x07"
         "0123456789abcdef",
         17},
        {"\x08\x03"
         "abc",
         5},
        {"\x09\x03"
         "abc",
         5},
    };

    for (size_t i = 0; i < sizeof(values) / sizeof(*values); i++) {
        for (size_t len = 0; len <= values[i].len; len++) {
            struct str in = {values[i].bytes, len};
            struct spop_value v = {.type = SPOP_NULL, .i = 4711};
            bool whole = len == values[i].len;

            CU_ASSERT_EQUAL(spop_get_value(&in, &v), whole);
            CU_ASSERT_EQUAL(in.len, whole ? 0 : len);
            CU_ASSERT_TRUE(whole || (in.p == values[i].bytes && v.type == SPOP_NULL && v.i == 4711));
        }
    }
}

static void key_without_value_leaves_everything_where_it_was(void)
{
    struct str in = STR("\x03key\x08\x05"
                        "abcd"),
               before = in, name = STR("untouched");
    struct spop_value v = {.type = SPOP_NULL};

    CU_ASSERT_FALSE(spop_get_kv(&in, &name, &v));
    CU_ASSERT_TRUE(in.p == before.p && in.len == before.len);
    CU_ASSERT_TRUE(str_eq(name, STR("untouched")));
    CU_ASSERT_EQUAL(v.type, SPOP_NULL);
}

static void message_without_argument_count_is_refused(void)
{
    struct str in = STR("\x01m"), name = STR("untouched");
    uint8_t n_args = 9;

    CU_ASSERT_FALSE(spop_get_message(&in, &name, &n_args));
    CU_ASSERT_EQUAL(in.len, 2);
    CU_ASSERT_EQUAL(n_args, 9);
    in = STR("\x01m\x02");
    CU_ASSERT_TRUE(spop_get_message(&in, &name, &n_args));
    CU_ASSERT_TRUE(str_eq(name, STR("m")));
    CU_ASSERT_EQUAL(n_args, 2);
    CU_ASSERT_EQUAL(in.len, 0);
}

static void put_everything(struct buf *b)
{
    size_t begin = spop_put_begin(b, SPOP_ACK, 2288, UINT64_MAX);

    spop_put_set_str(b, SPOP_SCOPE_txn, "body", STR("hello"));
    spop_put_set_bin(b, SPOP_SCOPE_proc, "list", STR("\x01\x00\x02"));
    spop_put_set_int(b, SPOP_SCOPE_req, "n", -1);
    spop_put_end(b, begin);
}

/* Reads one set-var action. */
static bool next_action(struct str *in, uint8_t *scope, struct str *name, struct spop_value *value)
{
    if (in->len < 3 || in->p[0] != 1 || in->p[1] != 3)
        return false;
    *scope = (uint8_t)in->p[2];
    *in = str_sub(*in, 3, in->len);
    return spop_get_kv(in, name, value);
}

static void what_is_written_reads_back(void)
{
    char storage[128];
    struct buf b;
    struct spop_frame f;
    struct str rest, name;
    struct spop_value v;
    uint8_t scope;

    buf_init(&b, storage, sizeof(storage));
    put_everything(&b);
    CU_ASSERT_FALSE(b.full);
    rest = buf_str(&b);
    CU_ASSERT_TRUE(wire_next(&rest, &f));
    CU_ASSERT_EQUAL(rest.len, 0);
    CU_ASSERT_EQUAL(f.type, SPOP_ACK);
    CU_ASSERT_EQUAL(f.flags, SPOP_FLAG_FIN);
    CU_ASSERT_EQUAL(f.stream_id, 2288);
    CU_ASSERT_EQUAL(f.frame_id, UINT64_MAX);
    CU_ASSERT_TRUE(next_action(&f.payload, &scope, &name, &v));
    CU_ASSERT_TRUE(scope == SPOP_SCOPE_txn && str_eq(name, STR("body")) && v.type == SPOP_STR &&
                   str_eq(v.s, STR("hello")));
    CU_ASSERT_TRUE(next_action(&f.payload, &scope, &name, &v));
    CU_ASSERT_TRUE(scope == SPOP_SCOPE_proc && str_eq(name, STR("list")) && v.type == SPOP_BIN &&
                   str_eq(v.s, STR("\x01\x00\x02")));
    CU_ASSERT_TRUE(next_action(&f.payload, &scope, &name, &v));
    CU_ASSERT_TRUE(scope == SPOP_SCOPE_req && str_eq(name, STR("n")) && v.type == SPOP_INT64 && v.i == -1);
    CU_ASSERT_EQUAL(f.payload.len, 0);
}

static void buffer_too_small_for_all_holds_whole_actions_only(void)
{
    char storage[128], whole[128];
    struct buf all, b;

    buf_init(&all, whole, sizeof(whole));
    put_everything(&all);
    for (size_t cap = 0; cap < all.len; cap++) {
        memset(storage, 0x5a, sizeof(storage));
        buf_init(&b, storage, cap);
        put_everything(&b);
        CU_ASSERT_TRUE(b.full);
        CU_ASSERT_TRUE(b.len <= cap);
        CU_ASSERT_EQUAL((uint8_t)storage[cap], 0x5a);
        /* Header 22 bytes (no length is filled in), then actions of 15, 13 and 16 bytes: nothing ends in between. */
        CU_ASSERT_TRUE(b.len == 0 || b.len == 22 || b.len == 37 || b.len == 50);
        CU_ASSERT_EQUAL(memcmp(storage + SPOP_LENGTH_BYTES, whole + SPOP_LENGTH_BYTES,
                               b.len < SPOP_LENGTH_BYTES ? 0 : b.len - SPOP_LENGTH_BYTES),
                        0);
    }
}

static void length_does_not_count_itself(void)
{
    static const uint8_t expected[] = {0, 0, 0, 16, 103, 0, 0, 0, 1, 1, 2, 1, 3, 2, 2, 'o', 'k', 4, 0xf0, 0};
    char storage[64];
    struct buf b;
    size_t begin;

    buf_init(&b, storage, sizeof(storage));
    begin = spop_put_begin(&b, SPOP_ACK, 1, 2);
    spop_put_set_int(&b, SPOP_SCOPE_txn, "ok", 240);
    spop_put_end(&b, begin);
    CU_ASSERT_TRUE(str_eq(buf_str(&b), bytes_of(expected, sizeof(expected))));
    /* A second frame behind it gets its own. */
    begin = spop_put_begin(&b, SPOP_ACK, 1, 3);
    spop_put_end(&b, begin);
    CU_ASSERT_EQUAL(begin, sizeof(expected));
    CU_ASSERT_EQUAL(spop_frame_len(b.p + begin), SPOP_HEADER_MIN);
}

void test_frame_register(void)
{
    CU_pSuite s = CU_add_suite("frame", NULL, NULL);

    CU_add_test(s, "a frame's header is taken apart", header_is_taken_apart);
    CU_add_test(s, "a cut header is refused and the output untouched", cut_header_is_refused_and_output_untouched);
    CU_add_test(s, "every cut of every value is refused and nothing moves",
                every_cut_of_every_value_is_refused_and_nothing_moves);
    CU_add_test(s, "a key without its value leaves everything where it was",
                key_without_value_leaves_everything_where_it_was);
    CU_add_test(s, "a message without its argument count is refused", message_without_argument_count_is_refused);
    CU_add_test(s, "what is written reads back", what_is_written_reads_back);
    CU_add_test(s, "a buffer too small for all holds whole actions only",
                buffer_too_small_for_all_holds_whole_actions_only);
    CU_add_test(s, "a frame's length does not count itself", length_does_not_count_itself);
}
