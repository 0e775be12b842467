/* spop_conn: limits, buffers and bookkeeping. What is said on the wire is covered by tests/replay. */
#include <CUnit/CUnit.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "spoa/wire/conn.h"
#include "tests/unit/wire_frames.h"

enum { WIRE_BYTES = 4 * SPOP_FRAME_MAX, PENDINGS = SPOP_PENDING_MAX + 8 };

static struct {
    struct spop_conn *conn;
    struct spop_counters counters;
    struct spop_pending pendings[PENDINGS];
    size_t n_pendings, n_outputs, last_payload_len;
    size_t answer_len; /* 0: NOTIFYs are kept */
    char storage[WIRE_BYTES];
    struct buf wire;
} t;

static bool answer(struct spop_pending *p, size_t len)
{
    static const char text[SPOP_FRAME_MAX];
    struct buf *ack = spop_ack_open(p);

    if (ack == NULL)
        return false;
    spop_put_set_str(ack, SPOP_SCOPE_txn, "v", (struct str){text, len});
    return spop_ack_close(p);
}

static bool on_notify(void *ctx, struct spop_conn *conn, const struct spop_frame *frame)
{
    struct spop_pending *p = &t.pendings[t.n_pendings];

    (void)ctx;
    t.last_payload_len = frame->payload.len;
    if (t.n_pendings == PENDINGS)
        return false;
    spop_conn_adopt(conn, p, frame);
    if (t.answer_len != 0)
        return answer(p, t.answer_len);
    t.n_pendings++;
    return true;
}

static enum spop_status available(void *ctx)
{
    (void)ctx;
    return SPOP_STATUS_NORMAL;
}

static void on_output(void *ctx)
{
    (void)ctx;
    t.n_outputs++;
}

/* Gives the connection what is in t.wire; stops early when it wants no more. Returns whether it lives. */
static bool feed(void)
{
    struct str left = buf_str(&t.wire);
    bool alive = true;

    while (left.len != 0 && alive && spop_conn_wants_input(t.conn)) {
        size_t room = 0;
        char *to = spop_conn_input(t.conn, &room);

        CU_ASSERT_NOT_EQUAL_FATAL(room, 0);
        if (room > left.len)
            room = left.len;
        memcpy(to, left.p, room);
        left = str_sub(left, room, left.len);
        alive = spop_conn_filled(t.conn, room);
    }
    memmove(t.storage, left.p, left.len);
    t.wire.len = left.len;
    return alive;
}

static void begin(uint32_t frame_max)
{
    const struct spop_handler handler = {.notify = on_notify, .availability = available};
    struct err e = {0};

    memset(&t, 0, sizeof(t));
    buf_init(&t.wire, t.storage, sizeof(t.storage));
    CU_ASSERT_TRUE_FATAL(spop_conn_new(&t.conn, &handler, &t.counters, &e));
    wire_put_hello(&t.wire, frame_max);
    CU_ASSERT_TRUE(feed());
    spop_conn_written(t.conn, spop_conn_output(t.conn).len);
    spop_conn_on_output(t.conn, on_output, NULL);
}

static void end(void)
{
    spop_conn_free(&t.conn);
    CU_ASSERT_PTR_NULL(t.conn);
}

static void frame_of_the_whole_negotiated_size_is_handled(void)
{
    const size_t overhead = SPOP_HEADER_MIN + 2 + 1 + 5 + 1 + 3;

    begin(SPOP_FRAME_MAX);
    CU_ASSERT_EQUAL(spop_conn_frame_max(t.conn), SPOP_FRAME_MAX);
    wire_put_notify(&t.wire, 1, 1, SPOP_FRAME_MAX - overhead);
    CU_ASSERT_EQUAL(t.wire.len, SPOP_FRAME_MAX + SPOP_LENGTH_BYTES);
    CU_ASSERT_TRUE(feed());
    CU_ASSERT_EQUAL(t.last_payload_len, SPOP_FRAME_MAX - SPOP_HEADER_MIN);
    wire_put_notify(&t.wire, 2, 1, SPOP_FRAME_MAX - overhead + 1);
    CU_ASSERT_FALSE(feed());
    CU_ASSERT_EQUAL(spop_conn_n_pending(t.conn), 0);
    end();
}

static void one_pending_more_than_allowed_ends_the_connection(void)
{
    struct spop_frame last = {0};
    struct str out;

    begin(SPOP_FRAME_MAX);
    for (uint64_t i = 0; i < SPOP_PENDING_MAX; i++)
        wire_put_notify(&t.wire, i, 1, 1);
    CU_ASSERT_TRUE(feed());
    CU_ASSERT_EQUAL(spop_conn_n_pending(t.conn), SPOP_PENDING_MAX);
    wire_put_notify(&t.wire, SPOP_PENDING_MAX, 1, 1);
    CU_ASSERT_FALSE(feed());
    out = spop_conn_output(t.conn);
    CU_ASSERT_TRUE(wire_next(&out, &last));
    CU_ASSERT_TRUE(wire_is_disconnect(&last, SPOP_STATUS_RESOURCE));
    CU_ASSERT_EQUAL(spop_conn_n_pending(t.conn), 0);
    CU_ASSERT_PTR_NULL(t.pendings[0].conn);
    CU_ASSERT_PTR_NULL(t.pendings[SPOP_PENDING_MAX - 1].conn);
    CU_ASSERT_EQUAL(atomic_load(&t.counters.n_lost_acks), SPOP_PENDING_MAX);
    end();
}

static void ack_of_the_whole_negotiated_size_leaves_and_a_larger_one_does_not(void)
{
    const size_t overhead = SPOP_HEADER_MIN + 3 + 2 + 1 + 3;
    struct str out;
    struct spop_frame f;

    begin(SPOP_FRAME_MAX);
    wire_put_notify(&t.wire, 1, 1, 1);
    CU_ASSERT_TRUE(feed());
    CU_ASSERT_FALSE(answer(&t.pendings[0], SPOP_FRAME_MAX - overhead + 1));
    CU_ASSERT_EQUAL(spop_conn_output(t.conn).len, 0);
    CU_ASSERT_PTR_NOT_NULL(t.pendings[0].conn);
    CU_ASSERT_TRUE(answer(&t.pendings[0], SPOP_FRAME_MAX - overhead));
    CU_ASSERT_PTR_NULL(t.pendings[0].conn);
    out = spop_conn_output(t.conn);
    CU_ASSERT_EQUAL(out.len, SPOP_FRAME_MAX + SPOP_LENGTH_BYTES);
    CU_ASSERT_TRUE(wire_next(&out, &f));
    CU_ASSERT_EQUAL(f.type, SPOP_ACK);
    CU_ASSERT_EQUAL(atomic_load(&t.counters.n_acks), 1);
    end();
}

/* HAProxy keeps 20 streams on a connection: all may get the largest answer at once. */
static void twenty_answers_of_the_largest_size_wait_together(void)
{
    const size_t overhead = SPOP_HEADER_MIN + 3 + 2 + 1 + 3;
    const char *burst;
    struct str out;
    struct spop_frame f;

    begin(SPOP_FRAME_MAX);
    for (uint64_t i = 0; i < 20; i++)
        wire_put_notify(&t.wire, i, 1, 1);
    CU_ASSERT_TRUE(feed());
    for (size_t i = 0; i < 20; i++)
        CU_ASSERT_TRUE(answer(&t.pendings[i], SPOP_FRAME_MAX - overhead));
    CU_ASSERT_FALSE(spop_conn_wants_input(t.conn));
    out = spop_conn_output(t.conn);
    CU_ASSERT_EQUAL(out.len, 20 * (SPOP_FRAME_MAX + SPOP_LENGTH_BYTES));
    burst = out.p;
    for (uint64_t i = 0; i < 20; i++)
        CU_ASSERT_TRUE(wire_next(&out, &f) && f.type == SPOP_ACK && f.stream_id == i);
    spop_conn_written(t.conn, spop_conn_output(t.conn).len);
    CU_ASSERT_TRUE(spop_conn_wants_input(t.conn));
    /* The burst's memory went back: while both were alive they had different addresses. */
    CU_ASSERT_PTR_NOT_EQUAL(spop_conn_output(t.conn).p, burst);
    wire_put_notify(&t.wire, 1, 2, 1);
    CU_ASSERT_TRUE(feed());
    CU_ASSERT_TRUE(answer(&t.pendings[20], 5));
    end();
}

static void answers_written_in_small_parts_come_out_unchanged(void)
{
    static char written[64 * 1024];
    size_t n = 0;
    struct str all;
    struct spop_frame f;

    begin(256);
    t.answer_len = 150;
    for (uint64_t i = 0; i < 200; i++) {
        size_t part;

        wire_put_notify(&t.wire, i, 1, 10);
        (void)feed();
        part = spop_conn_output(t.conn).len;
        part = part < 100 ? part : 100; /* less than a frame: the front moves through frames, and what waits grows */
        memcpy(written + n, spop_conn_output(t.conn).p, part);
        spop_conn_written(t.conn, part);
        n += part;
        CU_ASSERT_TRUE(spop_conn_filled(t.conn, 0));
    }
    while (spop_conn_output(t.conn).len != 0 || t.wire.len != 0) {
        struct str out = spop_conn_output(t.conn);

        memcpy(written + n, out.p, out.len);
        n += out.len;
        spop_conn_written(t.conn, out.len);
        CU_ASSERT_TRUE(spop_conn_filled(t.conn, 0));
        CU_ASSERT_TRUE(feed());
    }
    all = (struct str){written, n};
    for (uint64_t i = 0; i < 200; i++)
        CU_ASSERT_TRUE(wire_next(&all, &f) && f.type == SPOP_ACK && f.stream_id == i);
    CU_ASSERT_EQUAL(all.len, 0);
    CU_ASSERT_EQUAL(atomic_load(&t.counters.n_acks), 200);
    end();
}

static void owner_hears_of_every_output(void)
{
    begin(SPOP_FRAME_MAX);
    wire_put_notify(&t.wire, 1, 1, 1);
    CU_ASSERT_TRUE(feed());
    CU_ASSERT_EQUAL(t.n_outputs, 0);
    CU_ASSERT_TRUE(answer(&t.pendings[0], 5));
    CU_ASSERT_EQUAL(t.n_outputs, 1);
    spop_conn_stop(t.conn);
    CU_ASSERT_EQUAL(t.n_outputs, 2);
    end();
}

static void answer_to_a_freed_connection_goes_nowhere(void)
{
    begin(SPOP_FRAME_MAX);
    wire_put_notify(&t.wire, 1, 1, 1);
    wire_put_notify(&t.wire, 2, 1, 1);
    CU_ASSERT_TRUE(feed());
    CU_ASSERT_EQUAL(spop_conn_n_pending(t.conn), 2);
    end();
    CU_ASSERT_PTR_NULL(t.pendings[0].conn);
    CU_ASSERT_PTR_NULL(spop_ack_open(&t.pendings[1]));
    CU_ASSERT_EQUAL(atomic_load(&t.counters.n_lost_acks), 2);
}

static void notify_adopted_after_the_end_is_finished_at_once(void)
{
    const struct spop_frame frame = {.type = SPOP_NOTIFY, .flags = SPOP_FLAG_FIN, .stream_id = 1, .frame_id = 1};

    begin(SPOP_FRAME_MAX);
    spop_conn_stop(t.conn);
    spop_conn_adopt(t.conn, &t.pendings[0], &frame);
    CU_ASSERT_PTR_NULL(t.pendings[0].conn);
    CU_ASSERT_EQUAL(spop_conn_n_pending(t.conn), 0);
    end();
}

static void first_reason_to_end_is_the_one_that_is_kept(void)
{
    begin(SPOP_FRAME_MAX);
    spop_conn_fail(t.conn, SPOP_STATUS_TIMEOUT, "waited %d s", 5);
    spop_conn_fail(t.conn, SPOP_STATUS_INVALID, "and then this");
    spop_conn_stop(t.conn);
    CU_ASSERT_STRING_EQUAL(spop_conn_error(t.conn)->text, "waited 5 s");
    CU_ASSERT_EQUAL(atomic_load(&t.counters.n_disconnects), 1);
    CU_ASSERT_EQUAL(atomic_load(&t.counters.n_protocol_errors), 1);
    CU_ASSERT_FALSE(spop_conn_done(t.conn));
    spop_conn_written(t.conn, spop_conn_output(t.conn).len);
    CU_ASSERT_TRUE(spop_conn_done(t.conn));
    end();
}

static void text_from_the_peer_reaches_the_log_short_and_on_one_line(void)
{
    size_t at;

    begin(SPOP_FRAME_MAX);
    at = spop_put_begin(&t.wire, SPOP_HAPROXY_DISCONNECT, 0, 0);
    spop_put_kv_u32(&t.wire, "status-code", 4);
    spop_put_kv_str(&t.wire, "message", (struct str){t.storage + 20000, 5000}); /* zeros */
    spop_put_end(&t.wire, at);
    CU_ASSERT_FALSE(feed());
    CU_ASSERT_PTR_NOT_NULL_FATAL(spop_conn_error(t.conn));
    CU_ASSERT_TRUE(strlen(spop_conn_error(t.conn)->text) < 200);
    end();
    begin(SPOP_FRAME_MAX);
    at = spop_put_begin(&t.wire, SPOP_HAPROXY_DISCONNECT, 0, 0);
    spop_put_kv_u32(&t.wire, "status-code", 4);
    spop_put_kv_str(&t.wire, "message", STR("a\r\n\x1b[31mb"));
    spop_put_end(&t.wire, at);
    CU_ASSERT_FALSE(feed());
    CU_ASSERT_PTR_NOT_NULL_FATAL(spop_conn_error(t.conn));
    CU_ASSERT_PTR_NULL(strpbrk(spop_conn_error(t.conn)->text, "\r\n\x1b"));
    end();
}

void test_conn_register(void)
{
    CU_pSuite s = CU_add_suite("conn", NULL, NULL);

    CU_add_test(s, "a frame of the whole negotiated size is handled, one byte more is not",
                frame_of_the_whole_negotiated_size_is_handled);
    CU_add_test(s, "one pending NOTIFY more than allowed ends the connection (security: bounded memory)",
                one_pending_more_than_allowed_ends_the_connection);
    CU_add_test(s, "an ACK of the whole negotiated size leaves and a larger one does not",
                ack_of_the_whole_negotiated_size_leaves_and_a_larger_one_does_not);
    CU_add_test(s, "twenty answers of the largest size wait together",
                twenty_answers_of_the_largest_size_wait_together);
    CU_add_test(s, "answers written in small parts come out unchanged",
                answers_written_in_small_parts_come_out_unchanged);
    CU_add_test(s, "the owner hears of every output", owner_hears_of_every_output);
    CU_add_test(s, "an answer to a freed connection goes nowhere", answer_to_a_freed_connection_goes_nowhere);
    CU_add_test(s, "a NOTIFY adopted after the end is finished at once",
                notify_adopted_after_the_end_is_finished_at_once);
    CU_add_test(s, "the first reason to end is the one that is kept", first_reason_to_end_is_the_one_that_is_kept);
    CU_add_test(s, "text from the peer reaches the log short and on one line (security: log injection)",
                text_from_the_peer_reaches_the_log_short_and_on_one_line);
}
