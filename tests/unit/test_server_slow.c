/* spop_server and peers that read slowly: all that was said arrives, in order, and never too much of it at once. */
#include <CUnit/CUnit.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "tests/unit/wire_frames.h"
#include "tests/unit/wire_rig.h"

static void slow_reader_gets_everything_and_delays_nobody(void)
{
    static char storage[64 * 1024];
    struct buf b;
    struct wire_client *slow, *quick;

    wire_rig_begin(8);
    wire_rig.answer_len = 60000;
    slow = wire_client_new();
    buf_init(&b, storage, sizeof(storage));
    wire_put_hello(&b, SPOP_FRAME_MAX);
    for (uint64_t i = 1; i <= 20; i++)
        wire_put_notify(&b, i, 1, 100);
    wire_client_send(slow, buf_str(&b));
    wire_rig_run_until(wire_has_peers, NULL);
    /* 20 answers of 60,000 bytes are more than the kernel keeps for a socket: the rest waits with us meanwhile. */
    quick = wire_client_new();
    wire_client_greet(quick, SPOP_FRAME_MAX);
    wire_client_notify(quick, 1);
    wire_rig_run_until(wire_has_two_frames, quick);
    wire_rig_run_until(wire_has_21_frames, slow);
    for (size_t i = 1; i <= 20; i++)
        CU_ASSERT_EQUAL(wire_client_frame(slow, i).stream_id, i);
    wire_client_free(slow);
    wire_client_free(quick);
    wire_rig_end();
}

static bool has_21_frames_and_never_64_kib_unread(struct wire_client *c)
{
    int unread = 0;

    CU_ASSERT_EQUAL(ioctl(c->fd, FIONREAD, &unread), 0);
    CU_ASSERT(unread < 64 * 1024);
    return wire_has_21_frames(c);
}

static void peer_never_has_a_buffer_of_haproxys_before_it_unread(void)
{
    static const size_t answer_lens[] = {400, 3300, 10000, 32768, 60000};
    static char storage[64 * 1024];

    for (size_t i = 0; i < sizeof answer_lens / sizeof answer_lens[0]; i++) {
        struct buf b;
        wire_rig_begin(8);
        wire_rig.answer_len = answer_lens[i];
        struct wire_client *c = wire_client_new();
        buf_init(&b, storage, sizeof storage);
        wire_put_hello(&b, SPOP_FRAME_MAX);
        for (uint64_t id = 1; id <= 20; id++)
            wire_put_notify(&b, id, 1, 100);
        wire_client_send(c, buf_str(&b));
        wire_rig_run_until(has_21_frames_and_never_64_kib_unread, c);
        for (size_t id = 1; id <= 20; id++)
            CU_ASSERT_EQUAL(wire_client_frame(c, id).stream_id, id);
        wire_client_free(c);
        wire_rig_end();
    }
}

/* HAProxy leaves the part of a frame in its buffer until the frame is whole, so it counts as if it were unread. */
static bool has_21_frames_and_never_64_kib_in_its_buffer(struct wire_client *c)
{
    struct str rest = {c->bytes, c->len};
    int unread = 0;

    for (size_t n = wire_client_n_frames(c); n > 0; n--) {
        const unsigned char *b = (const unsigned char *) rest.p;
        str_skip(&rest, SPOP_LENGTH_BYTES + ((size_t) b[0] << 24 | (size_t) b[1] << 16 | (size_t) b[2] << 8 | b[3]));
    }
    CU_ASSERT_EQUAL(ioctl(c->fd, FIONREAD, &unread), 0);
    CU_ASSERT(rest.len + (size_t) unread < 64 * 1024);
    return wire_has_21_frames(c);
}

/* The socket takes a part of a frame at a time; the last length makes the largest frame that there is, as large as the peer's buffer. */
static void frames_that_a_socket_takes_in_parts_arrive_whole(void)
{
    static const struct {
        size_t answer_len;
        int send_bytes;
    } rows[] = {{3300, 4096}, {60000, 4096}, {20000, 20000}, {30000, 30000}, {60000, 30000}, {SPOP_FRAME_MAX - 16, 4096}};
    static char storage[64 * 1024];

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct buf b;
        wire_rig_begin(8);
        wire_rig.answer_len = rows[i].answer_len;
        wire_rig.send_bytes = rows[i].send_bytes;
        struct wire_client *c = wire_client_new();
        buf_init(&b, storage, sizeof storage);
        wire_put_hello(&b, SPOP_FRAME_MAX);
        for (uint64_t id = 1; id <= 20; id++)
            wire_put_notify(&b, id, 1, 100);
        wire_client_send(c, buf_str(&b));
        wire_rig_run_until(rows[i].answer_len <= 60000 ? has_21_frames_and_never_64_kib_in_its_buffer : wire_has_21_frames, c);
        for (size_t id = 1; id <= 20; id++) {
            const struct spop_frame f = wire_client_frame(c, id);
            CU_ASSERT(f.type == SPOP_ACK && f.stream_id == id && f.payload.len > rows[i].answer_len);
        }
        wire_client_free(c);
        wire_rig_end();
    }
}

/* While a receive of the peer is under way the kernel may say already that all is read: only where a receive ends by itself, another one begins. */
static void receive_ends_where_the_peer_was_seen_to_have_read_all(void)
{
    static char bytes[256 * 1024];
    struct wire_client *c;

    wire_rig_begin(8);
    wire_rig.answer_len = 40000;
    c = wire_client_new();
    wire_client_greet(c, SPOP_FRAME_MAX);
    wire_client_notify(c, 1);
    wire_rig_run_until(wire_has_two_frames, c);
    wire_client_notify(c, 2);
    ssize_t n = 0;
    for (int unread = 0; unread < 40000;) {
        ev_run(wire_rig.loop, EVRUN_NOWAIT);
        CU_ASSERT_EQUAL_FATAL(ioctl(c->fd, FIONREAD, &unread), 0);
    }
    n = recv(c->fd, bytes, sizeof bytes, MSG_DONTWAIT);
    CU_ASSERT_EQUAL(n, 1);
    CU_ASSERT(recv(c->fd, bytes, sizeof bytes, MSG_DONTWAIT) >= 40000);
    wire_client_free(c);
    wire_rig_end();
}

void test_server_slow_register(void)
{
    CU_pSuite s = CU_add_suite("server_slow", NULL, NULL);

    CU_add_test(s, "a slow reader gets everything and delays nobody", slow_reader_gets_everything_and_delays_nobody);
    CU_add_test(s, "a peer never has a buffer of HAProxy's before it unread, which HAProxy would not survive",
                peer_never_has_a_buffer_of_haproxys_before_it_unread);
    CU_add_test(s, "frames that a socket takes in parts arrive whole", frames_that_a_socket_takes_in_parts_arrive_whole);
    CU_add_test(s, "a receive ends where the peer was seen to have read all, so that what is written next does not come on top of it",
                receive_ends_where_the_peer_was_seen_to_have_read_all);
}
