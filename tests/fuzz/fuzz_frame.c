/* Any bytes as a frame, as values and as a list of writes: nothing is read or written out of bounds, progress is
 * made on success, nothing moves on failure, and what is written reads back. */
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>

#include "spoa/wire/frame.h"

static void require(bool condition)
{
    if (!condition)
        abort();
}

static void check_frame(struct str in)
{
    char storage[64];
    struct spop_frame f, again;
    struct err e = {0};
    struct buf b;
    size_t header_len;

    if (!spop_frame_parse(in, &f, &e)) {
        require(e.code == ERR_PROTOCOL && e.text[0] != '\0');
        return;
    }
    header_len = (size_t)(f.payload.p - in.p);
    require(header_len >= SPOP_HEADER_MIN && header_len + f.payload.len == in.len);
    buf_init(&b, storage, sizeof(storage));
    spop_put_end(&b, spop_put_begin(&b, (enum spop_frame_type)f.type, f.stream_id, f.frame_id));
    require(!b.full && b.len == SPOP_LENGTH_BYTES + header_len);
    require(spop_frame_parse(str_sub(buf_str(&b), SPOP_LENGTH_BYTES, b.len), &again, &e));
    require(again.type == f.type && again.stream_id == f.stream_id && again.frame_id == f.frame_id &&
            again.payload.len == 0);
}

static void check_values(struct str in)
{
    const char *end = in.p + in.len;
    struct spop_value v;

    for (;;) {
        struct str before = in;

        if (!spop_get_value(&in, &v)) {
            require(in.p == before.p && in.len == before.len);
            return;
        }
        require(in.p > before.p && in.p + in.len == end);
        if (v.type == SPOP_STR || v.type == SPOP_BIN)
            require(v.s.p > before.p && v.s.p + v.s.len == in.p);
    }
}

static void check_messages(struct str in)
{
    struct str name;
    struct spop_value v;
    uint8_t n_args;

    while (spop_get_message(&in, &name, &n_args)) {
        for (; n_args > 0; n_args--) {
            struct str before = in;

            if (!spop_get_kv(&in, &name, &v)) {
                require(in.p == before.p && in.len == before.len);
                return;
            }
            require(in.len < before.len);
        }
    }
}

/* Writes parts of the input as variables into a buffer whose size the input chooses. */
static void check_writes(struct str in)
{
    char storage[1024];
    size_t cap = in.len == 0 ? 0 : (uint8_t)in.p[0] * 4U, n_written = 0, begin;
    struct str rest, name;
    struct spop_value v;
    struct buf b;

    buf_init(&b, storage, cap);
    begin = spop_put_begin(&b, SPOP_ACK, cap, 1);
    for (size_t at = 1; at < in.len && !b.full; at += 17) {
        size_t before = b.len;

        if (in.p[at] & 1)
            spop_put_set_str(&b, SPOP_SCOPE_txn, "s", str_sub(in, at, at + 17));
        else
            spop_put_set_int(&b, SPOP_SCOPE_txn, "s", (int64_t)((uint64_t)(uint8_t)in.p[at] << (in.p[at] & 56)));
        require(b.full ? b.len == before : b.len > before);
        n_written += !b.full;
    }
    require(b.len <= cap);
    if (b.full)
        return;
    spop_put_end(&b, begin);
    require(spop_frame_len(b.p) == b.len - SPOP_LENGTH_BYTES);
    rest = str_sub(buf_str(&b), SPOP_LENGTH_BYTES, b.len);
    require(spop_frame_parse(rest, &(struct spop_frame){0}, &(struct err){0}));
    rest = str_sub(rest, 5 + (cap < 240 ? 2 : 3), rest.len);
    for (; n_written > 0; n_written--) {
        require(rest.len > 3 && rest.p[0] == 1 && rest.p[1] == 3 && rest.p[2] == SPOP_SCOPE_txn);
        rest = str_sub(rest, 3, rest.len);
        require(spop_get_kv(&rest, &name, &v) && str_eq(name, STR("s")) &&
                (v.type == SPOP_STR || v.type == SPOP_INT64));
    }
    require(rest.len == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str in = {(const char *)data, size};

    check_frame(in);
    check_values(in);
    check_messages(in);
    check_writes(in);
    return 0;
}
