/* spop_server over real sockets: what the state machine says reaches the peer, whatever the peer
 * does. */
#include <CUnit/CUnit.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#include "tests/unit/refuse_memory.h"
#include "tests/unit/wire_frames.h"
#include "tests/unit/wire_rig.h"

static void hello_and_notify_are_answered(void)
{
    struct wire_client *c = wire_client_new();

    wire_client_greet(c, 16380);
    wire_client_notify(c, 1);
    wire_rig_run_until(wire_has_two_frames, c);
    CU_ASSERT_EQUAL(wire_client_frame(c, 0).type, SPOP_AGENT_HELLO);
    CU_ASSERT_EQUAL(wire_client_frame(c, 1).type, SPOP_ACK);
    wire_client_free(c);
    wire_rig_run_until(wire_is_idle, NULL);
    wire_rig_end();
}

static void unix_socket_is_served(void)
{
    wire_rig_begin(8);
    hello_and_notify_are_answered();
}

static void tcp_socket_is_served(void)
{
    wire_rig_begin_tcp();
    hello_and_notify_are_answered();
}

static void ack_written_outside_of_a_callback_leaves_by_itself(void)
{
    struct wire_client *c;

    wire_rig_begin(8);
    wire_rig.holding = true;
    c = wire_client_new();
    wire_client_greet(c, 16380);
    wire_client_notify(c, 1);
    wire_client_notify(c, 2);
    wire_rig_run_until(wire_holds_two, c);
    CU_ASSERT_TRUE(wire_rig_answer(&wire_rig.held[1]));
    wire_rig_run_until(wire_has_two_frames, c);
    CU_ASSERT_EQUAL(wire_client_frame(c, 1).stream_id, 2);
    wire_client_free(c);
    wire_rig_run_until(wire_is_idle, NULL);
    CU_ASSERT_PTR_NULL(wire_rig.held[0].conn);
    wire_rig_end();
}

static void health_check_is_answered_then_closed(void)
{
    char storage[256];
    struct buf b;
    struct wire_client *c;

    wire_rig_begin(8);
    c = wire_client_new();
    buf_init(&b, storage, sizeof(storage));
    wire_put_health_check(&b);
    wire_client_send(c, buf_str(&b));
    wire_rig_run_until(wire_is_closed, c);
    CU_ASSERT_EQUAL(wire_client_n_frames(c), 1);
    CU_ASSERT_EQUAL(wire_client_frame(c, 0).type, SPOP_AGENT_HELLO);
    wire_client_free(c);
    wire_rig_end();
}

static void connection_beyond_peers_max_is_closed_and_counted(void)
{
    struct wire_client *first, *second;

    wire_rig_begin(1);
    first = wire_client_new();
    wire_rig_run_until(wire_has_peers, NULL);
    second = wire_client_new();
    wire_rig_run_until(wire_is_closed, second);
    CU_ASSERT_EQUAL(second->len, 0);
    CU_ASSERT_EQUAL(atomic_load(&wire_rig.counters.n_refused), 1);
    wire_client_greet(first, 16380);
    wire_rig_run_until(wire_has_one_frame, first);
    wire_client_free(first);
    wire_client_free(second);
    wire_rig_end();
}

static void connection_without_memory_is_closed_and_counted(void)
{
    struct wire_client *refused, *next;

    wire_rig_begin(8);
    refused = wire_client_new();
    refuse_memory_of_ours(0);
    wire_rig_run_until(wire_is_closed, refused);
    CU_ASSERT_TRUE(refuse_memory_end());
    CU_ASSERT_EQUAL(refused->len, 0);
    CU_ASSERT_EQUAL(atomic_load(&wire_rig.counters.n_refused), 1);
    next = wire_client_new();
    wire_client_greet(next, 16380);
    wire_rig_run_until(wire_has_one_frame, next);
    wire_client_free(refused);
    wire_client_free(next);
    wire_rig_end();
}

static void connection_without_hello_is_ended_with_status_2(void)
{
    struct wire_client *c, *greeted;
    struct spop_frame f;

    wire_rig_begin(8);
    wire_rig.server.hello_timeout_s = 0.05;
    greeted = wire_client_new();
    wire_client_greet(greeted, 16380);
    wire_rig_run_until(wire_has_one_frame, greeted);
    c = wire_client_new();
    wire_client_send(c, STR("\0\0\0\x30\x01"));
    wire_rig_run_until(wire_is_closed, c);
    f = wire_client_frame(c, 0);
    CU_ASSERT_TRUE(wire_is_disconnect(&f, SPOP_STATUS_TIMEOUT));
    /* The other one was connected for longer, said nothing more, and stays. */
    wire_client_notify(greeted, 1);
    wire_rig_run_until(wire_has_two_frames, greeted);
    CU_ASSERT_EQUAL(wire_client_frame(greeted, 1).type, SPOP_ACK);
    wire_client_free(c);
    wire_client_free(greeted);
    wire_rig_end();
}

static void peer_that_never_closes_is_closed_after_our_goodbye(void)
{
    struct wire_client *c;

    wire_rig_begin(8);
    wire_rig.server.goodbye_timeout_s = 0.05;
    c = wire_client_new();
    wire_client_send(c, STR("GET / HTTP/1.1\r\n\r\n"));
    wire_rig_run_until(wire_is_closed, c);
    wire_rig_run_until(wire_is_idle, NULL);
    CU_ASSERT_EQUAL(atomic_load(&wire_rig.counters.n_too_big), 1);
    wire_client_free(c);
    wire_rig_end();
}

/* Over TCP a close with unread bytes is a reset, which may destroy what we said last. */
static void disconnect_arrives_though_more_was_sent_than_read(void)
{
    static char flood[65536];
    struct wire_client *c;
    struct spop_frame f;

    wire_rig_begin_tcp();
    wire_rig.server.goodbye_timeout_s = 3600; /* the peer's own close ends it */
    c = wire_client_new();
    wire_client_send(c, STR("\xff\xff\xff\xff"));
    wire_client_send(c, (struct str){flood, sizeof(flood)});
    wire_rig_run_until(wire_is_closed, c);
    CU_ASSERT_FALSE(c->was_reset);
    f = wire_client_frame(c, 0);
    CU_ASSERT_TRUE(wire_is_disconnect(&f, SPOP_STATUS_TOO_BIG));
    wire_client_free(c);
    wire_rig_run_until(wire_is_idle, NULL);
    wire_rig_end();
}

static void stop_answers_what_is_pending_and_closes(void)
{
    struct wire_client *busy, *quiet, *late;
    struct spop_frame f;

    wire_rig_begin(8);
    wire_rig.holding = true;
    quiet = wire_client_new();
    wire_client_greet(quiet, 16380);
    wire_rig_run_until(wire_has_one_frame, quiet);
    busy = wire_client_new();
    wire_client_greet(busy, 16380);
    wire_client_notify(busy, 1);
    wire_client_notify(busy, 2);
    wire_rig_run_until(wire_holds_two, busy);
    spop_server_stop(&wire_rig.server);
    wire_rig_run_until(wire_is_closed, quiet);
    f = wire_client_frame(quiet, 1);
    CU_ASSERT_TRUE(wire_is_disconnect(&f, SPOP_STATUS_NORMAL));
    late = wire_client_new();
    wire_rig_run_until(wire_is_closed, late);
    f = wire_client_frame(late, 0);
    CU_ASSERT_TRUE(wire_is_disconnect(&f, SPOP_STATUS_NORMAL));
    CU_ASSERT_TRUE(wire_rig_answer(&wire_rig.held[0]));
    wire_rig_run_until(wire_has_two_frames, busy);
    CU_ASSERT_FALSE(busy->closed);
    CU_ASSERT_TRUE(wire_rig_answer(&wire_rig.held[1]));
    wire_rig_run_until(wire_is_closed, busy);
    CU_ASSERT_EQUAL(wire_client_frame(busy, 2).type, SPOP_ACK);
    f = wire_client_frame(busy, 3);
    CU_ASSERT_TRUE(wire_is_disconnect(&f, SPOP_STATUS_NORMAL));
    wire_client_free(busy);
    wire_client_free(quiet);
    wire_client_free(late);
    wire_rig_run_until(wire_is_idle, NULL);
    wire_rig_end();
}

static void peer_that_goes_without_reading_harms_nobody(void)
{
    struct wire_client *rude, *other;

    CU_ASSERT_NOT_EQUAL(signal(SIGPIPE, SIG_DFL), SIG_ERR);
    wire_rig_begin(8);
    wire_rig.holding = true;
    rude = wire_client_new();
    wire_client_greet(rude, 16380);
    wire_client_notify(rude, 1);
    wire_client_notify(rude, 2);
    wire_rig_run_until(wire_holds_two, rude);
    wire_client_free(rude);
    CU_ASSERT_TRUE(wire_rig_answer(&wire_rig.held[0]));
    CU_ASSERT_TRUE(wire_rig_answer(&wire_rig.held[1]));
    wire_rig_run_until(wire_is_idle, NULL);
    other = wire_client_new();
    wire_client_greet(other, 16380);
    wire_rig_run_until(wire_has_one_frame, other);
    wire_client_free(other);
    wire_rig_end();
}

static void release_closes_everything_at_once(void)
{
    struct wire_client *c;

    wire_rig_begin(8);
    wire_rig.holding = true;
    c = wire_client_new();
    wire_client_greet(c, 16380);
    wire_client_notify(c, 1);
    wire_client_notify(c, 2);
    wire_rig_run_until(wire_holds_two, c);
    wire_rig_end();
    CU_ASSERT_TRUE(spop_server_idle(&wire_rig.server));
    CU_ASSERT_PTR_NULL(wire_rig.held[0].conn);
    CU_ASSERT_TRUE(wire_is_closed(c));
    wire_client_free(c);
}

/* Lines that the server logged about connections, by event. */
static size_t count_lines(FILE *f, const char *event)
{
    char line[4096];
    size_t n = 0;

    rewind(f);
    while (fgets(line, sizeof(line), f) != NULL)
        n += strstr(line, event) != NULL;
    return n;
}

/* The second that the lines are counted in does not pass, however slow the machine is. */
static void hold_log_window(void)
{
    ev_timer *w = &wire_rig.server.log_window;

    ev_timer_stop(wire_rig.loop, w);
    ev_timer_set(w, 3600., 0.);
    ev_timer_start(wire_rig.loop, w);
}

static void flood_of_failures_is_logged_in_a_few_lines(void)
{
    FILE *log = tmpfile();
    int saved = dup(STDERR_FILENO);

    CU_ASSERT_PTR_NOT_NULL_FATAL(log);
    wire_rig_begin(64);
    CU_ASSERT_TRUE(dup2(fileno(log), STDERR_FILENO) >= 0);
    for (int i = 0; i < 25; i++) {
        struct wire_client *c = wire_client_new();

        wire_client_send(c, STR("GET / HTTP/1.1\r\n\r\n"));
        wire_rig_run_until(wire_is_closed, c);
        wire_client_free(c);
        wire_rig_run_until(wire_is_idle, NULL);
        if (i == 0)
            hold_log_window();
    }
    wire_rig_end();
    CU_ASSERT_TRUE(dup2(saved, STDERR_FILENO) >= 0);
    close(saved);
    CU_ASSERT_EQUAL(count_lines(log, "\"spop_connection_failed\""), SPOP_LOG_PER_S_MAX);
    CU_ASSERT_EQUAL(count_lines(log, "15 more connections"), 1);
    CU_ASSERT_EQUAL(count_lines(log, "a frame of 1195725856 bytes"), SPOP_LOG_PER_S_MAX);
    fclose(log);
}

void test_server_register(void)
{
    CU_pSuite s = CU_add_suite("server", NULL, NULL);

    CU_add_test(s, "a UNIX socket is served", unix_socket_is_served);
    CU_add_test(s, "a TCP socket is served", tcp_socket_is_served);
    CU_add_test(s, "an ACK written outside of a callback leaves by itself",
                ack_written_outside_of_a_callback_leaves_by_itself);
    CU_add_test(s, "a health check is answered, then closed", health_check_is_answered_then_closed);
    CU_add_test(s, "a connection beyond peers_max is closed and counted (security: bounded memory)",
                connection_beyond_peers_max_is_closed_and_counted);
    CU_add_test(s, "a connection that finds no memory is closed and counted, the next one is served",
                connection_without_memory_is_closed_and_counted);
    CU_add_test(s, "a connection without HELLO is ended with status 2, a greeted one stays",
                connection_without_hello_is_ended_with_status_2);
    CU_add_test(s, "a peer that never closes is closed after our goodbye",
                peer_that_never_closes_is_closed_after_our_goodbye);
    CU_add_test(s, "a DISCONNECT arrives though more was sent than read",
                disconnect_arrives_though_more_was_sent_than_read);
    CU_add_test(s, "stop answers what is pending and closes", stop_answers_what_is_pending_and_closes);
    CU_add_test(s, "a peer that goes without reading harms nobody", peer_that_goes_without_reading_harms_nobody);
    CU_add_test(s, "release closes everything at once", release_closes_everything_at_once);
    CU_add_test(s, "a flood of failures is logged in a few lines", flood_of_failures_is_logged_in_a_few_lines);
}
