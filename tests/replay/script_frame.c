/* Builds a frame from a line with named fields. */
#include "common/base/codec.h"
#include "common/base/varint.h"
#include "tests/replay/script.h"

enum { NAME_MAX_BYTES = 64, FLAGS_OFFSET = SPOP_LENGTH_BYTES + 1 };

static const struct {
    struct str name;
    uint8_t type;
} KINDS[] = {
    {STR("unset"), SPOP_UNSET},
    {STR("hello"), SPOP_HAPROXY_HELLO},
    {STR("disconnect"), SPOP_HAPROXY_DISCONNECT},
    {STR("notify"), SPOP_NOTIFY},
    {STR("agent-hello"), SPOP_AGENT_HELLO},
    {STR("agent-disconnect"), SPOP_AGENT_DISCONNECT},
    {STR("ack"), SPOP_ACK},
};

static bool kind_of(struct str word, uint8_t *type)
{
    uint64_t number;

    for (size_t i = 0; i < sizeof(KINDS) / sizeof(*KINDS); i++) {
        if (str_eq(word, KINDS[i].name)) {
            *type = KINDS[i].type;
            return true;
        }
    }
    if (!script_number(word, &number) || number > UINT8_MAX)
        return false;
    *type = (uint8_t)number;
    return true;
}

static bool put_hex(struct buf *b, struct str digits)
{
    for (size_t i = 0; i < digits.len;) {
        int high = codec_hex_digit(digits.p[i]), low = i + 1 < digits.len ? codec_hex_digit(digits.p[i + 1]) : -1;

        if (digits.p[i] == ' ') {
            i++;
            continue;
        }
        if (high < 0 || low < 0)
            return false;
        buf_put_byte(b, (char)(high << 4 | low));
        i += 2;
    }
    return true;
}

static void put_bytes(struct buf *b, struct str s)
{
    varint_put(b, s.len);
    buf_put(b, s);
}

static bool put_quoted(struct buf *b, struct str text)
{
    if (text.len < 2 || text.p[0] != '"' || text.p[text.len - 1] != '"')
        return false;
    put_bytes(b, str_sub(text, 1, text.len - 1));
    return true;
}

static bool put_address(struct buf *b, struct str text, size_t len)
{
    struct addr a;

    if (!addr_parse(text, &a))
        return false;
    buf_put(b, (struct str){(const char *)a.b + 16 - len, len});
    return true;
}

/* N bytes of 'x'. */
static bool put_fill(struct buf *b, struct str word)
{
    uint64_t n;

    if (!script_number(word, &n) || n > SPOP_FRAME_MAX)
        return false;
    varint_put(b, n);
    for (uint64_t i = 0; i < n; i++)
        buf_put_byte(b, 'x');
    return true;
}

static bool put_number(struct buf *b, struct str word)
{
    uint64_t n;

    if (!script_number(word, &n))
        return false;
    varint_put(b, n);
    return true;
}

static bool put_bin(struct buf *b, struct str digits)
{
    char bytes[256];
    struct buf content;

    buf_init(&content, bytes, sizeof(bytes));
    if (!put_hex(&content, digits) || content.full)
        return false;
    put_bytes(b, buf_str(&content));
    return true;
}

static const struct str TYPES[] = {
    [SPOP_NULL] = STR("null:"),     [SPOP_BOOL] = STR("bool:"),   [SPOP_INT32] = STR("int32:"),
    [SPOP_UINT32] = STR("uint32:"), [SPOP_INT64] = STR("int64:"), [SPOP_UINT64] = STR("uint64:"),
    [SPOP_IPV4] = STR("ipv4:"),     [SPOP_IPV6] = STR("ipv6:"),   [SPOP_STR] = STR("str:"),
    [SPOP_BIN] = STR("bin:"),
};

static bool put_typed(struct buf *b, enum spop_type type, struct str text)
{
    bool is_true = str_eq(text, STR("true"));

    buf_put_byte(b, (char)(type == SPOP_BOOL && is_true ? (int)type | 0x10 : (int)type));
    switch (type) {
    case SPOP_NULL:
        return text.len == 0;
    case SPOP_BOOL:
        return is_true || str_eq(text, STR("false"));
    case SPOP_INT32:
    case SPOP_UINT32:
    case SPOP_INT64:
    case SPOP_UINT64:
        return put_number(b, text);
    case SPOP_IPV4:
        return put_address(b, text, 4);
    case SPOP_IPV6:
        return put_address(b, text, 16);
    case SPOP_STR:
        return put_quoted(b, text);
    case SPOP_BIN:
        return put_bin(b, text);
    }
    return false;
}

/* A value with its type written before it, or one whose form tells it. */
static bool put_value(struct buf *b, struct str text, enum spop_type number_type)
{
    for (size_t i = 0; i < sizeof(TYPES) / sizeof(*TYPES); i++)
        if (str_starts(text, TYPES[i]))
            return put_typed(b, (enum spop_type)i, str_sub(text, TYPES[i].len, text.len));
    if (str_starts(text, STR("raw:")))
        return put_hex(b, str_sub(text, 4, text.len));
    if (str_starts(text, STR("fill:"))) {
        buf_put_byte(b, SPOP_STR);
        return put_fill(b, str_sub(text, 5, text.len));
    }
    if (str_eq(text, STR("true")) || str_eq(text, STR("false")))
        return put_typed(b, SPOP_BOOL, text);
    return put_typed(b, text.len != 0 && text.p[0] == '"' ? SPOP_STR : number_type, text);
}

static bool put_item(struct buf *b, uint8_t frame_type, struct str word)
{
    size_t equals = str_find_byte(word, '=');
    struct str name = str_sub(word, 0, equals);
    bool is_counted = frame_type == SPOP_NOTIFY || frame_type == SPOP_ACK;

    if (str_starts(word, STR("raw:")))
        return put_hex(b, str_sub(word, 4, word.len));
    if (equals == SIZE_MAX)
        return false;
    if (frame_type == SPOP_ACK)
        buf_put(b, ((struct str){(const char[]){1, 3, SPOP_SCOPE_txn}, 3}));
    put_bytes(b, name);
    return put_value(b, str_sub(word, equals + 1, word.len), is_counted ? SPOP_INT64 : SPOP_UINT32);
}

static void store_u32(char *p, uint64_t n)
{
    for (int i = 0; i < 4; i++)
        p[i] = (char)(n >> (24 - 8 * i));
}

/* "[name]" begins a message whose number of arguments is filled in as they come. */
static bool put_items(struct buf *b, uint8_t type, struct str line)
{
    size_t n_args_at = 0;
    struct str word;

    while (script_word(&line, &word)) {
        if (word.len > 2 && word.p[0] == '[' && word.p[word.len - 1] == ']') {
            put_bytes(b, str_sub(word, 1, word.len - 1));
            n_args_at = b->len;
            buf_put_byte(b, 0);
            continue;
        }
        if (!put_item(b, type, word))
            return false;
        if (n_args_at != 0 && !b->full)
            b->p[n_args_at]++;
    }
    return true;
}

bool script_frame(struct buf *b, struct str line)
{
    struct str word, rest;
    uint8_t type;
    uint64_t stream_id = 0, frame_id = 0, flags = SPOP_FLAG_FIN;
    size_t begin;

    if (!script_word(&line, &word))
        return false;
    if (str_eq(word, STR("hex")))
        return put_hex(b, line) && !b->full;
    if (!kind_of(word, &type))
        return false;
    rest = line;
    if (script_word(&rest, &word) && script_ids(word, &stream_id, &frame_id))
        line = rest;
    rest = line;
    if (script_word(&rest, &word) && str_starts(word, STR("flags="))) {
        if (!script_number(str_sub(word, 6, word.len), &flags))
            return false;
        line = rest;
    }
    begin = spop_put_begin(b, (enum spop_frame_type)type, stream_id, frame_id);
    if (b->full)
        return false;
    store_u32(b->p + begin + FLAGS_OFFSET, flags);
    if (!put_items(b, type, line))
        return false;
    spop_put_end(b, begin);
    return !b->full;
}
