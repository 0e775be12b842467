/* Drives one spop_conn the way a socket and a request handler do. */
#include "tests/replay/peer.h"

#include <stdlib.h>

#include "common/base/codec.h"

enum { TEXT_MAX_BYTES = 70000 };

static bool append(char **to, size_t *len, size_t *cap, struct str s)
{
    if (s.len > *cap - *len) {
        size_t wanted = (*len + s.len) * 2;
        char *grown = realloc(*to, wanted);

        if (grown == NULL)
            return false;
        *to = grown;
        *cap = wanted;
    }
    if (s.len != 0)
        memcpy(*to + *len, s.p, s.len);
    *len += s.len;
    return true;
}

static void put_address_text(struct buf *b, const struct spop_value *v)
{
    char text[ADDR_TEXT_MAX];
    size_t len = addr_render(&v->ip, text);

    buf_put_cstr(b, v->type == SPOP_IPV4 ? "ipv4:" : "ipv6:");
    buf_put(b, (struct str){text, len});
}

static void put_hex_text(struct buf *b, struct str s)
{
    buf_put_cstr(b, "bin:");
    for (size_t i = 0; i < s.len; i++) {
        char digits[2];

        codec_hex((const uint8_t *)s.p + i, 1, digits);
        buf_put(b, (struct str){digits, 2});
    }
}

static void put_value_text(struct buf *b, const struct spop_value *v)
{
    switch (v->type) {
    case SPOP_NULL:
        buf_put_cstr(b, "null:");
        break;
    case SPOP_BOOL:
        buf_put_cstr(b, v->b ? "bool:true" : "bool:false");
        break;
    case SPOP_INT32:
    case SPOP_INT64:
        buf_printf(b, "int%d:%lld", v->type == SPOP_INT32 ? 32 : 64, (long long)v->i);
        break;
    case SPOP_UINT32:
    case SPOP_UINT64:
        buf_printf(b, "uint%d:%llu", v->type == SPOP_UINT32 ? 32 : 64, (unsigned long long)v->u);
        break;
    case SPOP_IPV4:
    case SPOP_IPV6:
        put_address_text(b, v);
        break;
    case SPOP_STR:
        buf_put_cstr(b, "str:");
        buf_put(b, v->s);
        break;
    case SPOP_BIN:
        put_hex_text(b, v->s);
        break;
    }
}

static void put_argument(struct buf *ack, struct str name, const struct spop_value *v)
{
    static char text[TEXT_MAX_BYTES];
    char cname[64] = {0};
    struct buf b;

    memcpy(cname, name.p, name.len < sizeof(cname) ? name.len : sizeof(cname) - 1);
    buf_init(&b, text, sizeof(text));
    put_value_text(&b, v);
    spop_put_set_str(ack, SPOP_SCOPE_txn, cname, buf_str(&b));
}

/* Every message's name and arguments go into ack (NULL: only checks). False: the payload does not decode. */
static bool echo(struct str payload, struct buf *ack)
{
    while (payload.len != 0) {
        struct str name;
        uint8_t n_args;

        if (!spop_get_message(&payload, &name, &n_args))
            return false;
        if (ack != NULL)
            spop_put_set_str(ack, SPOP_SCOPE_txn, "message", name);
        for (; n_args > 0; n_args--) {
            struct spop_value value;

            if (!spop_get_kv(&payload, &name, &value))
                return false;
            if (ack != NULL)
                put_argument(ack, name, &value);
        }
    }
    return true;
}

static void free_held(struct held *h)
{
    free(h->payload);
    *h = (struct held){.used = false};
}

static bool answer(struct held *h)
{
    struct buf *ack = spop_ack_open(&h->pending);
    bool closed = true;

    if (ack != NULL) {
        closed = echo((struct str){h->payload, h->payload_len}, ack);
        spop_put_set_int(ack, SPOP_SCOPE_txn, "ok", 1);
        closed = closed && spop_ack_close(&h->pending);
    }
    if (!closed && (ack = spop_ack_open(&h->pending)) != NULL) {
        spop_put_set_int(ack, SPOP_SCOPE_txn, "too_large", 1);
        spop_put_set_int(ack, SPOP_SCOPE_txn, "ok", 1);
        closed = spop_ack_close(&h->pending);
    }
    free_held(h);
    return closed;
}

static bool on_notify(void *ctx, struct spop_conn *conn, const struct spop_frame *frame)
{
    struct peer *p = ctx;
    struct held *h = p->held;

    while (h < p->held + HELD_MAX && h->used)
        h++;
    if (h == p->held + HELD_MAX || p->refusing)
        return false;
    if (!echo(frame->payload, NULL)) {
        spop_conn_fail(conn, SPOP_STATUS_INVALID, "a payload that does not decode");
        return true;
    }
    h->payload = malloc(frame->payload.len + 1);
    if (h->payload == NULL)
        return false;
    memcpy(h->payload, frame->payload.p, frame->payload.len);
    h->payload_len = frame->payload.len;
    h->used = true;
    spop_conn_adopt(conn, &h->pending, frame);
    return p->holding || answer(h);
}

static enum spop_status on_availability(void *ctx)
{
    const struct peer *p = ctx;

    return p->available;
}

static bool on_leaving(void *ctx)
{
    const struct peer *p = ctx;

    return p->leaving;
}

bool peer_init(struct peer *p)
{
    struct err e = {0};
    const struct spop_handler handler = {
        .notify = on_notify, .availability = on_availability, .leaving = on_leaving, .ctx = p};

    memset(p, 0, sizeof(*p));
    return spop_conn_new(&p->conn, &handler, &p->counters, &e);
}

void peer_release(struct peer *p)
{
    spop_conn_free(&p->conn);
    for (size_t i = 0; i < HELD_MAX; i++)
        free_held(&p->held[i]);
    free(p->in);
    free(p->out);
    p->in = p->out = NULL;
}

/* As much of what was sent as the connection takes, in as few fills as it allows. */
static void take_input(struct peer *p)
{
    size_t at = 0;

    while (at < p->in_len && !p->ended && spop_conn_wants_input(p->conn)) {
        size_t room, len;
        char *to = spop_conn_input(p->conn, &room);

        len = room < p->in_len - at ? room : p->in_len - at;
        memcpy(to, p->in + at, len);
        at += len;
        p->ended = !spop_conn_filled(p->conn, len);
    }
    p->in_len -= at;
    if (at != 0)
        memmove(p->in, p->in + at, p->in_len);
}

bool peer_read(struct peer *p)
{
    for (;;) {
        struct str out = spop_conn_output(p->conn);

        if (out.len == 0 || p->paused)
            return true;
        if (!append(&p->out, &p->out_len, &p->out_cap, out))
            return false;
        spop_conn_written(p->conn, out.len);
        p->ended = !spop_conn_filled(p->conn, 0);
        take_input(p);
    }
}

bool peer_send(struct peer *p, struct str chunk)
{
    if (!append(&p->in, &p->in_len, &p->in_cap, chunk))
        return false;
    take_input(p);
    return peer_read(p);
}

bool peer_answer(struct peer *p, uint64_t stream_id, uint64_t frame_id)
{
    for (struct held *h = p->held; h < p->held + HELD_MAX; h++)
        if (h->used && h->pending.stream_id == stream_id && h->pending.frame_id == frame_id)
            return answer(h) && peer_read(p);
    return false;
}
