/* An SPOP connection's life, output and end. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "spoa/wire/conn_priv.h"

_Static_assert((int)SPOP_OUT_BEGIN_FRAMES > (int)SPOP_OUT_REST_FRAMES, "one more answer fits when input comes to rest");

bool spop_conn_new(struct spop_conn **out, const struct spop_handler *handler, struct spop_counters *counters,
                   struct err *e)
{
    struct spop_conn *c = malloc(sizeof(*c));

    if (c == NULL)
        return err_set(e, ERR_NO_MEMORY, "", "no memory for an SPOP connection");
    memset(c, 0, offsetof(struct spop_conn, in_first));
    c->handler = *handler;
    c->counters = counters;
    c->frame_max = SPOP_HELLO_MAX;
    c->in = c->in_first;
    c->in_cap = SPOP_IN_FIRST;
    c->out = c->out_first;
    c->out_cap = SPOP_OUT_FIRST;
    *out = c;
    return true;
}

void spop_conn_on_output(struct spop_conn *c, void (*fn)(void *ctx), void *ctx)
{
    c->on_output = fn;
    c->on_output_ctx = ctx;
}

void spop_conn_detach(struct spop_conn *c, struct spop_pending *p)
{
    if (p->prev != NULL)
        p->prev->next = p->next;
    else
        c->pending = p->next;
    if (p->next != NULL)
        p->next->prev = p->prev;
    p->conn = NULL;
    p->prev = p->next = NULL;
    c->n_pending--;
}

static void drop_pending(struct spop_conn *c)
{
    counter_add(&c->counters->n_lost_acks, c->n_pending);
    while (c->pending != NULL)
        spop_conn_detach(c, c->pending);
}

void spop_conn_free(struct spop_conn **conn)
{
    struct spop_conn *c = *conn;

    *conn = NULL;
    if (c == NULL)
        return;
    drop_pending(c);
    if (c->in != c->in_first)
        free(c->in);
    if (c->out != c->out_first)
        free(c->out);
    free(c);
}

static size_t out_waiting(const struct spop_conn *c)
{
    return c->out_end - c->out_start;
}

static bool out_heavy(const struct spop_conn *c)
{
    return out_waiting(c) > SPOP_OUT_REST_FRAMES * c->frame_max;
}

static size_t out_cap_of(size_t n_frames, size_t frame_max)
{
    return n_frames * (frame_max + SPOP_LENGTH_BYTES) + SPOP_OUT_RESERVE;
}

static bool out_resize(struct spop_conn *c, size_t cap)
{
    char *out = malloc(cap);

    if (out == NULL)
        return false;
    memcpy(out, c->out + c->out_start, out_waiting(c));
    if (c->out != c->out_first)
        free(c->out);
    c->out = out;
    c->out_end = out_waiting(c);
    c->out_start = 0;
    c->out_cap = cap;
    return true;
}

/* Room for one more frame of the largest size behind what waits. */
static bool out_make_room(struct spop_conn *c)
{
    size_t need = c->frame_max + SPOP_LENGTH_BYTES + SPOP_OUT_RESERVE;
    size_t cap_max = out_cap_of(SPOP_OUT_MAX_FRAMES, c->frame_max);

    if (c->out_cap - c->out_end >= need)
        return true;
    if (out_waiting(c) + need > cap_max)
        return false;
    if (out_waiting(c) > c->out_cap / 2 && c->out_cap < cap_max)
        return out_resize(c, c->out_cap * 2 < cap_max ? c->out_cap * 2 : cap_max);
    /* Moving less than half the buffer to its front is paid for by the writes that emptied the front. */
    memmove(c->out, c->out + c->out_start, out_waiting(c));
    c->out_end = out_waiting(c);
    c->out_start = 0;
    return true;
}

struct str spop_conn_output(const struct spop_conn *c)
{
    return (struct str){c->out + c->out_start, out_waiting(c)};
}

void spop_conn_written(struct spop_conn *c, size_t len)
{
    size_t cap = out_cap_of(SPOP_OUT_BEGIN_FRAMES, c->frame_max);

    c->out_start += len;
    if (c->out_start != c->out_end)
        return;
    c->out_start = c->out_end = 0;
    /* A burst's memory goes back; if the smaller buffer is refused, the larger one serves. */
    if (c->out_cap > cap)
        (void)out_resize(c, cap);
}

void spop_conn_added(struct spop_conn *c, size_t len)
{
    c->out_end += len;
    if (c->on_output != NULL)
        c->on_output(c->on_output_ctx);
}

bool spop_conn_grow(struct spop_conn *c, size_t frame_max)
{
    size_t in_cap = frame_max + SPOP_LENGTH_BYTES > SPOP_IN_FIRST ? frame_max + SPOP_LENGTH_BYTES : SPOP_IN_FIRST;
    size_t left = c->in_end - c->in_start;
    char *in = malloc(in_cap);

    if (in == NULL)
        return false;
    if (!out_resize(c, out_cap_of(SPOP_OUT_BEGIN_FRAMES, frame_max))) {
        free(in);
        return false;
    }
    memcpy(in, c->in + c->in_start, left);
    c->in = in;
    c->in_cap = in_cap;
    c->in_start = 0;
    c->in_end = left;
    c->frame_max = frame_max;
    return true;
}

static const char *status_text(enum spop_status status)
{
    switch (status) {
    case SPOP_STATUS_NORMAL:
        return "closing in order";
    case SPOP_STATUS_IO:
        return "input or output failed";
    case SPOP_STATUS_TIMEOUT:
        return "waited too long";
    case SPOP_STATUS_TOO_BIG:
        return "frame larger than agreed";
    case SPOP_STATUS_INVALID:
        return "invalid frame";
    case SPOP_STATUS_NO_VERSION:
        return "HELLO without supported-versions";
    case SPOP_STATUS_NO_FRAME_SIZE:
        return "HELLO without max-frame-size";
    case SPOP_STATUS_NO_CAPABILITIES:
        return "HELLO without capabilities";
    case SPOP_STATUS_BAD_VERSION:
        return "only SPOP 2.0 is spoken here";
    case SPOP_STATUS_BAD_FRAME_SIZE:
        return "max-frame-size is below 256";
    case SPOP_STATUS_FRAGMENTED:
        return "fragments are not supported";
    case SPOP_STATUS_INTERLACED:
        return "interlaced frames";
    case SPOP_STATUS_FRAME_ID:
        return "frame id is in use";
    case SPOP_STATUS_RESOURCE:
        return "out of resources";
    case SPOP_STATUS_UNKNOWN:
        break;
    }
    return "not available";
}

/* HAProxy looks codes up in a table: only the protocol's own leave. */
static enum spop_status known_status(enum spop_status status)
{
    return status >= SPOP_STATUS_NORMAL && status <= SPOP_STATUS_RESOURCE ? status : SPOP_STATUS_UNKNOWN;
}

void spop_conn_end(struct spop_conn *c, enum spop_status status)
{
    struct buf b;

    status = known_status(status);
    buf_init(&b, c->out + c->out_end, c->out_cap - c->out_end);
    spop_put_begin(&b, SPOP_AGENT_DISCONNECT, 0, 0);
    spop_put_kv_u32(&b, "status-code", (uint32_t)status);
    spop_put_kv_str(&b, "message", str_of(status_text(status)));
    spop_put_end(&b, 0);
    c->state = SPOP_CONN_CLOSING;
    c->in_start = c->in_end = 0;
    drop_pending(c);
    counter_add(&c->counters->n_disconnects, 1);
    spop_conn_added(c, b.len);
}

void spop_conn_end_failed(struct spop_conn *c, enum spop_status status)
{
    counter_add(status == SPOP_STATUS_TOO_BIG ? &c->counters->n_too_big : &c->counters->n_protocol_errors, 1);
    spop_conn_end(c, status);
}

void spop_conn_fail(struct spop_conn *c, enum spop_status status, const char *why, ...)
{
    char text[ERR_TEXT_MAX];
    va_list args;

    if (c->state == SPOP_CONN_CLOSING)
        return;
    va_start(args, why);
    if (vsnprintf(text, sizeof(text), why, args) < 0)
        text[0] = '\0';
    va_end(args);
    (void)err_set(&c->error, status == SPOP_STATUS_RESOURCE ? ERR_LIMIT_EXCEEDED : ERR_PROTOCOL, "", "%s", text);
    spop_conn_end_failed(c, status);
}

void spop_conn_end_if_stopped(struct spop_conn *c)
{
    if (c->stopping && c->n_pending == 0 && c->state != SPOP_CONN_CLOSING)
        spop_conn_end(c, SPOP_STATUS_NORMAL);
}

void spop_conn_stop(struct spop_conn *c)
{
    c->stopping = true;
    spop_conn_end_if_stopped(c);
}

void spop_conn_eof(struct spop_conn *c)
{
    drop_pending(c);
    c->state = SPOP_CONN_CLOSING;
    c->in_start = c->in_end = 0;
    c->out_start = c->out_end = 0;
}

void spop_conn_adopt(struct spop_conn *c, struct spop_pending *p, const struct spop_frame *frame)
{
    *p = (struct spop_pending){.stream_id = frame->stream_id, .frame_id = frame->frame_id};
    if (c->state == SPOP_CONN_CLOSING) {
        counter_add(&c->counters->n_lost_acks, 1);
        return;
    }
    p->conn = c;
    p->next = c->pending;
    if (p->next != NULL)
        p->next->prev = p;
    c->pending = p;
    c->n_pending++;
}

struct buf *spop_ack_open(struct spop_pending *p)
{
    struct spop_conn *c = p->conn;

    if (c == NULL)
        return NULL;
    if (!out_make_room(c)) {
        spop_conn_fail(c, SPOP_STATUS_RESOURCE, "%zu bytes of answers wait and the peer does not read them",
                       out_waiting(c));
        return NULL;
    }
    buf_init(&c->ack, c->out + c->out_end, c->frame_max + SPOP_LENGTH_BYTES);
    spop_put_begin(&c->ack, SPOP_ACK, p->stream_id, p->frame_id);
    return &c->ack;
}

bool spop_ack_close(struct spop_pending *p)
{
    struct spop_conn *c = p->conn;

    if (c->ack.full)
        return false;
    spop_put_end(&c->ack, 0);
    spop_conn_detach(c, p);
    counter_add(&c->counters->n_acks, 1);
    spop_conn_added(c, c->ack.len);
    spop_conn_end_if_stopped(c);
    return true;
}

bool spop_conn_wants_input(const struct spop_conn *c)
{
    return c->state != SPOP_CONN_CLOSING && !out_heavy(c);
}

bool spop_conn_greeted(const struct spop_conn *c)
{
    return c->state == SPOP_CONN_OPEN;
}

bool spop_conn_done(const struct spop_conn *c)
{
    return c->state == SPOP_CONN_CLOSING && out_waiting(c) == 0;
}

const struct err *spop_conn_error(const struct spop_conn *c)
{
    return c->error.code == ERR_NONE ? NULL : &c->error;
}

struct spop_note *spop_conn_note(struct spop_conn *c)
{
    return &c->note;
}

size_t spop_conn_n_pending(const struct spop_conn *c)
{
    return c->n_pending;
}

size_t spop_conn_frame_max(const struct spop_conn *c)
{
    return c->frame_max;
}
