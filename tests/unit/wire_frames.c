/* Builds HAProxy's frames and takes ours apart. */
#include "tests/unit/wire_frames.h"

#include "common/base/varint.h"

static void put_name(struct buf *b, struct str name)
{
    varint_put(b, name.len);
    buf_put(b, name);
}

static size_t begin_hello(struct buf *b, uint32_t frame_max, struct str capabilities)
{
    size_t begin = spop_put_begin(b, SPOP_HAPROXY_HELLO, 0, 0);

    spop_put_kv_str(b, "supported-versions", STR("2.0"));
    spop_put_kv_u32(b, "max-frame-size", frame_max);
    spop_put_kv_str(b, "capabilities", capabilities);
    return begin;
}

void wire_put_hello(struct buf *b, uint32_t frame_max)
{
    size_t begin = begin_hello(b, frame_max, STR("pipelining"));

    spop_put_kv_str(b, "engine-id", STR("2f9c7d1e-0000-4000-8000-000000000001"));
    spop_put_end(b, begin);
}

void wire_put_health_check(struct buf *b)
{
    size_t begin = begin_hello(b, 16380, STR(""));

    put_name(b, STR("healthcheck"));
    buf_put_byte(b, SPOP_BOOL | 0x10);
    spop_put_end(b, begin);
}

void wire_put_notify(struct buf *b, uint64_t stream_id, uint64_t frame_id, size_t fill_len)
{
    size_t begin = spop_put_begin(b, SPOP_NOTIFY, stream_id, frame_id);

    put_name(b, STR("m"));
    buf_put_byte(b, 1);
    put_name(b, STR("fill"));
    buf_put_byte(b, SPOP_STR);
    varint_put(b, fill_len);
    for (size_t i = 0; i < fill_len; i++)
        buf_put_byte(b, 'x');
    spop_put_end(b, begin);
}

bool wire_next(struct str *in, struct spop_frame *out)
{
    struct err e = {0};
    size_t len;

    if (in->len < SPOP_LENGTH_BYTES)
        return false;
    len = spop_frame_len(in->p);
    if (in->len - SPOP_LENGTH_BYTES < len ||
        !spop_frame_parse(str_sub(*in, SPOP_LENGTH_BYTES, SPOP_LENGTH_BYTES + len), out, &e))
        return false;
    *in = str_sub(*in, SPOP_LENGTH_BYTES + len, in->len);
    return true;
}

bool wire_is_disconnect(const struct spop_frame *frame, enum spop_status status)
{
    struct str rest = frame->payload, name;
    struct spop_value value;

    return frame->type == SPOP_AGENT_DISCONNECT && spop_get_kv(&rest, &name, &value) &&
           str_eq(name, STR("status-code")) && value.type == SPOP_UINT32 && value.u == (uint64_t)status;
}
