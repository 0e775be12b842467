/* What comes in on an SPOP connection: HELLO, NOTIFYs, DISCONNECT, and everything that should not. */
#include "spoa/wire/conn_priv.h"
#include "spoa/wire/hello_priv.h"

enum { PEER_TEXT_MAX = 100 /* bytes of what the peer says that go into our log */ };

static void handle_hello(struct spop_conn *c, const struct spop_frame *frame)
{
    struct spop_hello hello;
    enum spop_status status = spop_hello_read(frame, &hello, &c->error);
    struct buf b;

    if (status != SPOP_STATUS_NORMAL) {
        spop_conn_end_failed(c, status);
        return;
    }
    counter_add(hello.healthcheck ? &c->counters->n_healthchecks : &c->counters->n_hellos, 1);
    status = c->handler.availability(c->handler.ctx);
    if (hello.healthcheck && c->handler.leaving != NULL && c->handler.leaving(c->handler.ctx))
        status = SPOP_STATUS_RESOURCE;
    if (status != SPOP_STATUS_NORMAL) {
        spop_conn_end(c, status);
        return;
    }
    if (!hello.healthcheck && !spop_conn_grow(c, hello.frame_max)) {
        spop_conn_fail(c, SPOP_STATUS_RESOURCE, "no memory for frames of %zu bytes", hello.frame_max);
        return;
    }
    buf_init(&b, c->out + c->out_end, c->out_cap - c->out_end);
    spop_hello_answer(&b, &hello);
    c->state = hello.healthcheck ? SPOP_CONN_CLOSING : SPOP_CONN_OPEN;
    spop_conn_added(c, b.len);
}

/* The peer says why it goes; it is answered in kind whatever stands in there. */
static void handle_disconnect(struct spop_conn *c, struct str payload)
{
    struct spop_value value;
    struct str name, message = STR_NONE;
    uint64_t status = SPOP_STATUS_NORMAL;

    while (spop_get_kv(&payload, &name, &value)) {
        if (str_eq(name, STR("status-code")) && value.type == SPOP_UINT32)
            status = value.u;
        else if (str_eq(name, STR("message")) && value.type == SPOP_STR)
            message = str_sub(value.s, 0, PEER_TEXT_MAX);
    }
    /* An idle connection that HAProxy gives up is no fault. */
    if (status != SPOP_STATUS_NORMAL && status != SPOP_STATUS_TIMEOUT)
        (void)err_set(&c->error, ERR_PROTOCOL, "", "HAProxy ended the connection with status %llu: %.*s",
                      (unsigned long long)status, STR_ARG(message));
    spop_conn_end(c, SPOP_STATUS_NORMAL);
}

static struct spop_pending *find_pending(const struct spop_conn *c, const struct spop_frame *frame)
{
    struct spop_pending *p = c->pending;

    while (p != NULL && (p->stream_id != frame->stream_id || p->frame_id != frame->frame_id))
        p = p->next;
    return p;
}

/* The peer no longer wants this answer: it gets none, and what is being computed for it goes nowhere. */
static void handle_abort(struct spop_conn *c, const struct spop_frame *frame)
{
    struct spop_pending *p = find_pending(c, frame);

    if (p != NULL)
        spop_conn_detach(c, p);
    spop_conn_end_if_stopped(c);
}

static void handle_notify(struct spop_conn *c, const struct spop_frame *frame)
{
    counter_add(&c->counters->n_notifies, 1);
    if (c->stopping) {
        counter_add(&c->counters->n_lost_acks, 1);
        return;
    }
    if ((frame->flags & SPOP_FLAG_FIN) == 0) {
        spop_conn_fail(c, SPOP_STATUS_FRAGMENTED, "a fragment of a NOTIFY, which was never agreed to");
        return;
    }
    if (find_pending(c, frame) != NULL) {
        spop_conn_fail(c, SPOP_STATUS_FRAME_ID, "stream %llu, frame %llu came twice without an answer between",
                       (unsigned long long)frame->stream_id, (unsigned long long)frame->frame_id);
        return;
    }
    if (c->n_pending >= SPOP_PENDING_MAX) {
        spop_conn_fail(c, SPOP_STATUS_RESOURCE, "more than %d unanswered NOTIFYs on one connection", SPOP_PENDING_MAX);
        return;
    }
    if (!c->handler.notify(c->handler.ctx, c, frame))
        spop_conn_fail(c, SPOP_STATUS_RESOURCE, "a request could not be taken on");
}

static void handle_frame(struct spop_conn *c, struct str bytes)
{
    struct spop_frame frame;

    if (!spop_frame_parse(bytes, &frame, &c->error))
        spop_conn_end_failed(c, SPOP_STATUS_INVALID);
    else if (frame.type == SPOP_HAPROXY_DISCONNECT)
        handle_disconnect(c, frame.payload);
    else if (c->state == SPOP_CONN_HELLO && frame.type == SPOP_HAPROXY_HELLO)
        handle_hello(c, &frame);
    else if (c->state == SPOP_CONN_OPEN && (frame.flags & SPOP_FLAG_ABORT) != 0 &&
             (frame.type == SPOP_NOTIFY || frame.type == SPOP_UNSET))
        handle_abort(c, &frame);
    else if (c->state == SPOP_CONN_OPEN && frame.type == SPOP_NOTIFY)
        handle_notify(c, &frame);
    else
        spop_conn_fail(c, SPOP_STATUS_INVALID, "a frame of type %u %s", frame.type,
                       c->state == SPOP_CONN_HELLO ? "before HELLO" : "after HELLO");
}

char *spop_conn_input(struct spop_conn *c, size_t *room)
{
    /* At most one move for a whole buffer of small frames; a large frame that has begun at the front is never moved. */
    if (c->in_start != 0 && c->in_cap - c->in_end < c->in_cap / 2) {
        memmove(c->in, c->in + c->in_start, c->in_end - c->in_start);
        c->in_end -= c->in_start;
        c->in_start = 0;
    }
    *room = c->in_cap - c->in_end;
    return c->in + c->in_end;
}

/* The next frame if it is complete. Its length is judged as soon as it is there, before anything of the body is. */
static bool next_frame(struct spop_conn *c, struct str *out)
{
    size_t have = c->in_end - c->in_start;
    const char *p = c->in + c->in_start;
    size_t len;

    if (have < SPOP_LENGTH_BYTES)
        return false;
    len = spop_frame_len(p);
    if (len < SPOP_HEADER_MIN || len > c->frame_max) {
        spop_conn_fail(c, len < SPOP_HEADER_MIN ? SPOP_STATUS_INVALID : SPOP_STATUS_TOO_BIG,
                       "a frame of %zu bytes: from %d to %zu are allowed %s", len, SPOP_HEADER_MIN, c->frame_max,
                       c->state == SPOP_CONN_HELLO ? "for a HELLO" : "by agreement");
        return false;
    }
    if (have - SPOP_LENGTH_BYTES < len)
        return false;
    *out = (struct str){p + SPOP_LENGTH_BYTES, len};
    c->in_start += SPOP_LENGTH_BYTES + len;
    return true;
}

bool spop_conn_filled(struct spop_conn *c, size_t len)
{
    struct str frame;

    c->in_end += len;
    while (spop_conn_wants_input(c) && next_frame(c, &frame))
        handle_frame(c, frame);
    if (c->in_start == c->in_end)
        c->in_start = c->in_end = 0;
    return c->state != SPOP_CONN_CLOSING;
}
