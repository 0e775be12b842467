/* SPOP frames: decoding over borrowed bytes and encoding into a bounded buffer. */
#include "spoa/wire/frame.h"

#include "common/base/varint.h"

enum { FLAGS_BYTES = 4, TYPE_MASK = 0x0f, BOOL_TRUE = 0x10, ACTION_SET_VAR = 1, SET_VAR_ARGS = 3 };

static uint32_t load_u32(const char *p)
{
    const uint8_t *b = (const uint8_t *)p;

    return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

static void store_u32(char *p, uint32_t n)
{
    for (int i = 0; i < 4; i++)
        p[i] = (char)(n >> (24 - 8 * i));
}

uint32_t spop_frame_len(const char length[static SPOP_LENGTH_BYTES])
{
    return load_u32(length);
}

bool spop_frame_parse(struct str bytes, struct spop_frame *out, struct err *e)
{
    struct spop_frame frame;

    if (bytes.len < SPOP_HEADER_MIN)
        return err_set(e, ERR_PROTOCOL, "", "a frame of %zu bytes: the least is %d", bytes.len, SPOP_HEADER_MIN);
    frame.type = (uint8_t)bytes.p[0];
    frame.flags = load_u32(bytes.p + 1);
    str_skip(&bytes, 1 + FLAGS_BYTES);
    if (!varint_get(&bytes, &frame.stream_id) || !varint_get(&bytes, &frame.frame_id))
        return err_set(e, ERR_PROTOCOL, "", "a frame of type %u whose stream or frame id is cut or wider than 64 bits",
                       frame.type);
    frame.payload = bytes;
    *out = frame;
    return true;
}

/* Here and below, in is a copy that the caller drops on failure. */
static inline bool get_bytes(struct str *in, struct str *out)
{
    uint64_t len;

    if (!varint_get(in, &len) || len > in->len)
        return false;
    *out = (struct str){in->p, (size_t)len};
    str_skip(in, (size_t)len);
    return true;
}

/* A negative INT32 comes sign-extended to 64 bits or as its own 32: both are unmistakable. */
static bool get_int32(struct str *in, int64_t *out)
{
    uint64_t n;

    if (!varint_get(in, &n) || (n > UINT32_MAX && n < (uint64_t)INT32_MIN))
        return false;
    *out = (int32_t)(uint32_t)n;
    return true;
}

static bool get_address(struct str *in, bool v4, struct addr *out)
{
    size_t len = v4 ? 4 : 16;

    if (in->len < len)
        return false;
    *out = v4 ? addr_from_v4((const uint8_t *)in->p) : addr_from_v6((const uint8_t *)in->p);
    str_skip(in, len);
    return true;
}

/* Reads what follows the type byte; value->type is set. */
static inline bool get_content(struct str *in, uint8_t flags, struct spop_value *value)
{
    uint64_t n;

    switch (value->type) {
    case SPOP_NULL:
        return true;
    case SPOP_BOOL:
        value->b = (flags & BOOL_TRUE) != 0;
        return true;
    case SPOP_INT32:
        return get_int32(in, &value->i);
    case SPOP_UINT32:
        return varint_get(in, &value->u) && value->u <= UINT32_MAX;
    case SPOP_INT64:
        if (!varint_get(in, &n))
            return false;
        value->i = (int64_t)n;
        return true;
    case SPOP_UINT64:
        return varint_get(in, &value->u);
    case SPOP_IPV4:
    case SPOP_IPV6:
        return get_address(in, value->type == SPOP_IPV4, &value->ip);
    case SPOP_STR:
    case SPOP_BIN:
        return get_bytes(in, &value->s);
    }
    return false;
}

static inline bool get_value(struct str *in, struct spop_value *value)
{
    uint8_t head;

    if (in->len == 0)
        return false;
    head = (uint8_t)in->p[0];
    value->type = (enum spop_type)(head & TYPE_MASK);
    str_skip(in, 1);
    return get_content(in, head, value);
}

bool spop_get_value(struct str *in, struct spop_value *out)
{
    struct str rest = *in;
    struct spop_value value = {0};

    if (!get_value(&rest, &value))
        return false;
    *in = rest;
    *out = value;
    return true;
}

bool spop_get_kv(struct str *in, struct str *name, struct spop_value *out)
{
    struct str rest = *in, key;
    struct spop_value value = {0};

    if (!get_bytes(&rest, &key) || !get_value(&rest, &value))
        return false;
    *in = rest;
    *name = key;
    *out = value;
    return true;
}

bool spop_get_message(struct str *in, struct str *name, uint8_t *n_args)
{
    struct str rest = *in, key;

    if (!get_bytes(&rest, &key) || rest.len == 0)
        return false;
    *n_args = (uint8_t)rest.p[0];
    str_skip(&rest, 1);
    *in = rest;
    *name = key;
    return true;
}

/* Whole items are written or nothing, so that a full buffer never ends in half an action. */
static bool reserve(struct buf *b, size_t len)
{
    if (!b->full && b->cap - b->len >= len)
        return true;
    b->full = true;
    return false;
}

size_t spop_put_begin(struct buf *b, enum spop_frame_type type, uint64_t stream_id, uint64_t frame_id)
{
    size_t begin = b->len;
    char *p;

    if (!reserve(b, SPOP_LENGTH_BYTES + 1 + FLAGS_BYTES + varint_len(stream_id) + varint_len(frame_id)))
        return begin;
    p = b->p + begin;
    p[SPOP_LENGTH_BYTES] = (char)type;
    store_u32(p + SPOP_LENGTH_BYTES + 1, SPOP_FLAG_FIN);
    b->len += SPOP_LENGTH_BYTES + 1 + FLAGS_BYTES;
    varint_put(b, stream_id);
    varint_put(b, frame_id);
    return begin;
}

void spop_put_end(struct buf *b, size_t begin)
{
    if (!b->full)
        store_u32(b->p + begin, (uint32_t)(b->len - begin - SPOP_LENGTH_BYTES));
}

static size_t bytes_len(size_t len)
{
    return varint_len(len) + len;
}

static void put_bytes(struct buf *b, struct str s)
{
    varint_put(b, s.len);
    buf_put(b, s);
}

void spop_put_kv_str(struct buf *b, const char *name, struct str value)
{
    struct str key = str_of(name);

    if (!reserve(b, bytes_len(key.len) + 1 + bytes_len(value.len)))
        return;
    put_bytes(b, key);
    buf_put_byte(b, SPOP_STR);
    put_bytes(b, value);
}

void spop_put_kv_u32(struct buf *b, const char *name, uint32_t value)
{
    struct str key = str_of(name);

    if (!reserve(b, bytes_len(key.len) + 1 + varint_len(value)))
        return;
    put_bytes(b, key);
    buf_put_byte(b, SPOP_UINT32);
    varint_put(b, value);
}

/* Everything of a set-var action up to its value's content, for which room is made as well. */
static bool put_set(struct buf *b, enum spop_scope scope, const char *name, enum spop_type type, size_t content_len)
{
    struct str key = str_of(name);
    char *p;

    if (!reserve(b, 3 + bytes_len(key.len) + 1 + content_len))
        return false;
    p = b->p + b->len;
    p[0] = ACTION_SET_VAR;
    p[1] = SET_VAR_ARGS;
    p[2] = (char)scope;
    b->len += 3;
    put_bytes(b, key);
    b->p[b->len++] = (char)type;
    return true;
}

void spop_put_set_str(struct buf *b, enum spop_scope scope, const char *name, struct str value)
{
    if (put_set(b, scope, name, SPOP_STR, bytes_len(value.len)))
        put_bytes(b, value);
}

void spop_put_set_bin(struct buf *b, enum spop_scope scope, const char *name, struct str value)
{
    if (put_set(b, scope, name, SPOP_BIN, bytes_len(value.len)))
        put_bytes(b, value);
}

void spop_put_set_int(struct buf *b, enum spop_scope scope, const char *name, int64_t value)
{
    if (put_set(b, scope, name, SPOP_INT64, varint_len((uint64_t)value)))
        varint_put(b, (uint64_t)value);
}
