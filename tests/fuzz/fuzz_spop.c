/* A whole SPOP connection under any bytes: the first CONTROL bytes choose how the rest is cut, when and how NOTIFYs
 * are answered and how the peer reads; whatever comes, all that is written is whole frames of ours within the
 * agreed size, each NOTIFY gets at most one ACK, and memory is bounded. */
#include "tests/fuzz/fuzz.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "spoa/wire/conn.h"

enum { CONTROL = 16, HELD_MAX = 48, STREAM_MAX = 4 * (SPOP_FRAME_MAX + SPOP_LENGTH_BYTES) };

/* Bits of a control byte, taken anew at each turn; all zero: everything at once, answered at once, read at once. */
enum { HOLD = 1, LARGE = 2, TOO_LARGE = 4, NOT_READING = 8, IN_PARTS = 16, STOP = 32, REFUSE = 64 };

struct world {
    const uint8_t *control;
    size_t turn;
    struct spop_conn *conn;
    struct spop_counters counters;
    struct spop_pending held[HELD_MAX];
    bool used[HELD_MAX];
    bool spoke, hello_said, disconnect_said;
    size_t frame_max;        /* as our AGENT-HELLO said it */
    char stream[STREAM_MAX]; /* written by the connection, not a whole frame yet */
    size_t stream_len;
};

static struct world w;

static void require(bool condition)
{
    if (!condition)
        abort();
}

static unsigned next_control(void)
{
    return w.control[w.turn++ % CONTROL];
}

/* How much text an answer carries: little, about as much as fits, or more than fits. */
static size_t answer_len(unsigned control)
{
    size_t frame_max = spop_conn_frame_max(w.conn);

    if ((control & TOO_LARGE) != 0)
        return frame_max;
    return (control & LARGE) != 0 ? frame_max - 60 : control;
}

static void answer(struct spop_pending *p, unsigned control)
{
    static const char text[SPOP_FRAME_MAX];
    struct buf *ack = spop_ack_open(p);

    if (ack == NULL) {
        require(p->conn == NULL);
        return;
    }
    spop_put_set_str(ack, SPOP_SCOPE_txn, "v", (struct str){text, answer_len(control)});
    spop_put_set_int(ack, SPOP_SCOPE_txn, "ok", 1);
    if (spop_ack_close(p)) {
        require(p->conn == NULL);
        return;
    }
    require(p->conn == w.conn);
    ack = spop_ack_open(p);
    if (ack == NULL)
        return;
    spop_put_set_int(ack, SPOP_SCOPE_txn, "ok", 1);
    require(spop_ack_close(p));
}

static bool on_notify(void *ctx, struct spop_conn *conn, const struct spop_frame *frame)
{
    unsigned control = next_control();
    size_t i = 0;

    (void)ctx;
    require(frame->type == SPOP_NOTIFY && (frame->flags & SPOP_FLAG_FIN) != 0 &&
            frame->payload.len <= spop_conn_frame_max(conn));
    while (i < HELD_MAX && w.used[i])
        i++;
    if (i == HELD_MAX || (control & REFUSE) != 0)
        return false;
    spop_conn_adopt(conn, &w.held[i], frame);
    require(w.held[i].conn == conn);
    if ((control & HOLD) != 0)
        w.used[i] = true;
    else
        answer(&w.held[i], control);
    return true;
}

static enum spop_status availability(void *ctx)
{
    (void)ctx;
    return next_control() == 255 ? (enum spop_status)(w.turn * 7) : SPOP_STATUS_NORMAL;
}

static uint64_t number_of(const struct spop_frame *f, struct str wanted)
{
    struct str rest = f->payload, name;
    struct spop_value v;

    while (spop_get_kv(&rest, &name, &v))
        if (str_eq(name, wanted) && v.type == SPOP_UINT32)
            return v.u;
    abort();
}

static void check_frame(const struct spop_frame *f, size_t len)
{
    require(f->flags == SPOP_FLAG_FIN && !w.disconnect_said);
    if (f->type == SPOP_AGENT_HELLO) {
        require(!w.spoke && len <= SPOP_FRAME_MIN);
        w.frame_max = number_of(f, STR("max-frame-size"));
        require(w.frame_max >= SPOP_FRAME_MIN && w.frame_max <= SPOP_FRAME_MAX);
        w.hello_said = true;
    } else if (f->type == SPOP_AGENT_DISCONNECT) {
        uint64_t status = number_of(f, STR("status-code"));

        require(len <= SPOP_FRAME_MIN && (status <= SPOP_STATUS_RESOURCE || status == SPOP_STATUS_UNKNOWN));
        w.disconnect_said = true;
    } else {
        require(f->type == SPOP_ACK && w.hello_said && len <= w.frame_max && f->payload.len != 0);
    }
    w.spoke = true;
}

static void check_stream(void)
{
    size_t at = 0, len;

    while (w.stream_len - at >= SPOP_LENGTH_BYTES &&
           w.stream_len - at - SPOP_LENGTH_BYTES >= (len = spop_frame_len(w.stream + at))) {
        struct spop_frame f;
        struct err e = {0};

        require(spop_frame_parse((struct str){w.stream + at + SPOP_LENGTH_BYTES, len}, &f, &e));
        check_frame(&f, len);
        at += SPOP_LENGTH_BYTES + len;
    }
    w.stream_len -= at;
    memmove(w.stream, w.stream + at, w.stream_len);
}

/* The peer reads: nothing, a part, or all that waits. Returns whether the connection still reads. */
static bool read_output(unsigned control)
{
    size_t part = control * 37 + 1;
    bool alive = true;

    while ((control & NOT_READING) == 0) {
        struct str out = spop_conn_output(w.conn);
        size_t len = out.len < sizeof(w.stream) - w.stream_len ? out.len : sizeof(w.stream) - w.stream_len;

        if ((control & IN_PARTS) != 0 && len > part)
            len = part;
        if (len == 0)
            break;
        memcpy(w.stream + w.stream_len, out.p, len);
        w.stream_len += len;
        spop_conn_written(w.conn, len);
        check_stream();
        alive = spop_conn_filled(w.conn, 0);
        if ((control & IN_PARTS) != 0)
            break;
    }
    return alive;
}

static void check_bounds(void)
{
    size_t n = 0;

    for (size_t i = 0; i < HELD_MAX; i++)
        n += w.used[i] && w.held[i].conn != NULL;
    require(n == spop_conn_n_pending(w.conn));
    require(spop_conn_output(w.conn).len <=
            SPOP_OUT_MAX_FRAMES * (size_t)(SPOP_FRAME_MAX + SPOP_LENGTH_BYTES) + SPOP_FRAME_MIN);
    require(atomic_load(&w.counters.n_acks) + atomic_load(&w.counters.n_lost_acks) + n <=
            atomic_load(&w.counters.n_notifies));
}

static void answer_some_held(unsigned control)
{
    for (size_t i = 0; i < HELD_MAX; i++) {
        size_t at =
            (i * 29 + control) % HELD_MAX; /* 29 and HELD_MAX share no factor: each is visited once, in an odd order */

        if (w.used[at] && ((control >> (i % 8)) & 1) == 0) {
            w.used[at] = false;
            answer(&w.held[at], control);
        }
    }
}

static void drive(struct str in)
{
    bool alive = true;

    while (in.len != 0 && alive) {
        unsigned control = next_control();
        size_t room = 0, len = (control & IN_PARTS) != 0 ? control : in.len;

        if ((control & STOP) != 0 && (control & LARGE) != 0)
            spop_conn_stop(w.conn);
        if (!spop_conn_wants_input(w.conn)) {
            alive = read_output(control & ~(unsigned)(NOT_READING | IN_PARTS));
            continue;
        }
        (void)spop_conn_input(w.conn, &room);
        require(room != 0);
        len = len < room ? len : room;
        len = len < in.len ? len : in.len;
        memcpy(spop_conn_input(w.conn, &room), in.p, len);
        in = str_sub(in, len, in.len);
        alive = spop_conn_filled(w.conn, len);
        answer_some_held(control);
        check_bounds();
        alive = read_output(control) && alive;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct spop_handler handler = {.notify = on_notify, .availability = availability};
    struct err e = {0};

    if (size < CONTROL)
        return 0;
    w.control = data;
    w.turn = w.stream_len = w.frame_max = 0;
    w.spoke = w.hello_said = w.disconnect_said = false;
    memset(&w.counters, 0, sizeof(w.counters));
    memset(w.used, 0, sizeof(w.used));
    if (!spop_conn_new(&w.conn, &handler, &w.counters, &e))
        return 0;
    drive((struct str){(const char *)data + CONTROL, size - CONTROL});
    answer_some_held(0);
    read_output(0);
    require(w.stream_len == 0 && spop_conn_output(w.conn).len == 0);
    if ((next_control() & STOP) != 0)
        spop_conn_eof(w.conn);
    spop_conn_free(&w.conn);
    for (size_t i = 0; i < HELD_MAX; i++)
        require(!w.used[i] || w.held[i].conn == NULL);
    require(atomic_load(&w.counters.n_acks) + atomic_load(&w.counters.n_lost_acks) <=
            atomic_load(&w.counters.n_notifies));
    return 0;
}
