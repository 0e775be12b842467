/* The record intake: octet-counted records come through whole however the stream is cut. */
#include <CUnit/CUnit.h>
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "spoa/record/intake.h"
#include "spoa/wire/server.h"
#include "tests/unit/refuse_memory.h"

struct collected {
    char text[4096];
    struct buf b;
    size_t n;
};

static void collect(void *ctx, struct str record)
{
    struct collected *c = ctx;
    buf_put_byte(&c->b, '[');
    buf_put(&c->b, record);
    buf_put_byte(&c->b, ']');
    c->n++;
}

static void collected_init(struct collected *c)
{
    buf_init(&c->b, c->text, sizeof c->text);
    c->n = 0;
}

static bool feed(struct intake_stream *s, struct str bytes, struct collected *c)
{
    while (bytes.len > 0) {
        size_t room;
        char *at = intake_stream_room(s, &room);
        size_t n = bytes.len < room ? bytes.len : room;
        memcpy(at, bytes.p, n);
        if (!intake_stream_filled(s, n, collect, c))
            return false;
        bytes = str_sub(bytes, n, bytes.len);
    }
    return true;
}

static void records_are_the_same_wherever_the_stream_is_cut(void)
{
    static const char wire[] = "5 first3 two0 6 last\n\n2 ok";
    const struct str all = {wire, sizeof wire - 1};
    for (size_t cut = 0; cut <= all.len; cut++) {
        static struct intake_stream s;
        struct collected c;
        s.len = 0;
        collected_init(&c);
        CU_ASSERT(feed(&s, str_sub(all, 0, cut), &c));
        CU_ASSERT(feed(&s, str_sub(all, cut, all.len), &c));
        CU_ASSERT(str_eq(buf_str(&c.b), STR("[first][two][][last\n][ok]")));
        CU_ASSERT_EQUAL(s.len, 0);
    }
}

static void the_longest_record_fits_and_a_longer_one_is_refused(void)
{
    static struct intake_stream s;
    char *record = malloc(INTAKE_RECORD_MAX);
    struct collected c;
    CU_ASSERT_FATAL(record != NULL);
    memset(record, 'x', INTAKE_RECORD_MAX);
    s.len = 0;
    collected_init(&c);
    CU_ASSERT(feed(&s, STR("16384 "), &c));
    CU_ASSERT(feed(&s, (struct str){record, INTAKE_RECORD_MAX}, &c));
    CU_ASSERT_EQUAL(c.n, 1);
    CU_ASSERT_FALSE(feed(&s, STR("16385 "), &c));
    free(record);
}

static void bytes_that_are_no_octet_counting_are_refused(void)
{
    static const char *const wires[] = {"<134>Nov 30 a", "GET / HTTP/1.1\r\n", " 3 abc", "-1 a", "3abc", "99999999999999999999 a", "3 abcx"};
    for (size_t i = 0; i < sizeof wires / sizeof wires[0]; i++) {
        static struct intake_stream s;
        struct collected c;
        s.len = 0;
        collected_init(&c);
        CU_ASSERT_FALSE(feed(&s, str_of(wires[i]), &c));
    }
}

/* A running intake and a peer of it. */
struct running {
    char folder[32];
    struct intake in;
    struct sockaddr_un sun;
    int fd;
};

static void running_start(struct running *r, void (*on_record)(void *ctx, struct str record), void (*on_tick)(void *ctx), void *ctx)
{
    char at[128];
    struct err e;
    int listener;
    err_clear(&e);
    snprintf(r->folder, sizeof r->folder, "/tmp/edge-intake-XXXXXX");
    CU_ASSERT_FATAL(mkdtemp(r->folder) != NULL);
    snprintf(at, sizeof at, "unix@%s/records.sock", r->folder);
    CU_ASSERT_FATAL(spop_listen(str_of(at), &listener, &e));
    CU_ASSERT_FATAL(intake_start(&r->in, listener, on_record, on_tick, ctx, &e));

    r->sun = (struct sockaddr_un){.sun_family = AF_UNIX};
    snprintf(r->sun.sun_path, sizeof r->sun.sun_path, "%s/records.sock", r->folder);
    r->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CU_ASSERT_FATAL(connect(r->fd, (struct sockaddr *) &r->sun, sizeof r->sun) == 0);
}

static void running_stop(struct running *r)
{
    close(r->fd);
    intake_stop(&r->in, NULL);
    CU_ASSERT_EQUAL(atomic_load(&r->in.n_malformed), 0);
    unlink(r->sun.sun_path);
    CU_ASSERT_EQUAL(rmdir(r->folder), 0);
}

/* A byte for each record. */
static void tell(void *ctx, struct str record)
{
    const int *fd = ctx;
    (void) !write(*fd, record.p, 1);
}

static char next_told(int fd)
{
    struct pollfd ready = {.fd = fd, .events = POLLIN};
    char byte = 0;
    return poll(&ready, 1, 10 * 1000) == 1 && read(fd, &byte, 1) == 1 ? byte : 0;
}

static void records_are_taken_while_others_come_and_after_a_pause(void)
{
    struct running r;
    int told[2];
    CU_ASSERT_FATAL(pipe(told) == 0);
    running_start(&r, tell, NULL, &told[1]);
    for (int i = 0; i < 8; i++) {
        CU_ASSERT_EQUAL(write(r.fd, "2 ab2 cd", 8), 8);
        CU_ASSERT_EQUAL(next_told(told[0]), 'a');
        CU_ASSERT_EQUAL(next_told(told[0]), 'c');
        /* At once the peer rests; after four rests nothing came and its socket is watched again. */
        if (i % 2 == 1)
            usleep(20 * 1000);
    }
    running_stop(&r);
    close(told[0]);
    close(told[1]);
}

static void records_sent_before_the_stop_are_taken(void)
{
    struct running r;
    struct collected c;
    collected_init(&c);
    running_start(&r, collect, NULL, &c);
    CU_ASSERT_EQUAL(write(r.fd, "3 one3 two", 10), 10);
    /* The peer's end of file is read behind its records: when our read sees the intake's close, all of them were taken. */
    shutdown(r.fd, SHUT_WR);
    char byte;
    CU_ASSERT_EQUAL(read(r.fd, &byte, 1), 0);
    running_stop(&r);
    CU_ASSERT_EQUAL(c.n, 2);
}

static void a_connection_that_waits_for_a_descriptor_is_read_at_the_stop(void)
{
    struct running r;
    struct collected c;
    struct rlimit before;
    collected_init(&c);
    running_start(&r, collect, NULL, &c);
    const int waiting = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CU_ASSERT_FATAL(waiting >= 0 && getrlimit(RLIMIT_NOFILE, &before) == 0);
    const struct rlimit none = {.rlim_cur = 3, .rlim_max = before.rlim_max};
    CU_ASSERT_FATAL(setrlimit(RLIMIT_NOFILE, &none) == 0);
    CU_ASSERT(connect(waiting, (struct sockaddr *) &r.sun, sizeof r.sun) == 0 && write(waiting, "3 one", 5) == 5);
    while (atomic_load(&r.in.acceptor.n_failures) == 0)
        sched_yield();
    CU_ASSERT_FATAL(setrlimit(RLIMIT_NOFILE, &before) == 0);
    running_stop(&r);
    CU_ASSERT_EQUAL(c.n, 1);
    close(waiting);
}

static void ignore(void *ctx, struct str record)
{
    (void) ctx;
    (void) record;
}

static void tell_tick(void *ctx)
{
    tell(ctx, STR("t"));
}

static void the_tick_comes_again_and_again_and_once_more_at_the_end(void)
{
    struct running r;
    int told[2];
    CU_ASSERT_FATAL(pipe(told) == 0);
    running_start(&r, ignore, tell_tick, &told[1]);
    CU_ASSERT_EQUAL(next_told(told[0]), 't');
    CU_ASSERT_EQUAL(next_told(told[0]), 't');
    running_stop(&r);
    CU_ASSERT_EQUAL(next_told(told[0]), 't');
    close(told[0]);
    close(told[1]);
}

static bool start_refused(void *arg, size_t n)
{
    static struct intake in;
    struct err e;
    int fds[2];
    (void) arg;
    err_clear(&e);
    CU_ASSERT_FATAL(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) == 0);
    refuse_memory_of_ours(n);
    const bool started = intake_start(&in, fds[0], ignore, NULL, NULL, &e);
    const bool refused = refuse_memory_end();
    CU_ASSERT_EQUAL(started, !refused);
    CU_ASSERT(started || str_starts(str_of(e.text), n == 0 ? STR("cannot create an event loop") : STR("cannot start the record intake: ")));
    intake_stop(&in, NULL);
    if (!started)
        close(fds[0]);
    close(fds[1]);
    return refused;
}

static void without_a_loop_or_a_thread_it_does_not_start_and_leaves_nothing(void)
{
    CU_ASSERT_EQUAL(refuse_memory_everywhere(start_refused, NULL), 2);
}

void test_intake_register(void)
{
    CU_pSuite s = CU_add_suite("intake", NULL, NULL);
    CU_add_test(s, "records are the same wherever the stream is cut", records_are_the_same_wherever_the_stream_is_cut);
    CU_add_test(s, "the longest record fits and a longer one is refused", the_longest_record_fits_and_a_longer_one_is_refused);
    CU_add_test(s, "bytes that are no octet counting are refused", bytes_that_are_no_octet_counting_are_refused);
    CU_add_test(s, "records are taken while others come and after a pause", records_are_taken_while_others_come_and_after_a_pause);
    CU_add_test(s, "records sent before the stop are taken", records_sent_before_the_stop_are_taken);
    CU_add_test(s, "a connection that waits for a descriptor is read at the stop", a_connection_that_waits_for_a_descriptor_is_read_at_the_stop);
    CU_add_test(s, "without a loop or a thread it does not start and leaves nothing", without_a_loop_or_a_thread_it_does_not_start_and_leaves_nothing);
    CU_add_test(s, "the tick comes again and again, and once more at the end", the_tick_comes_again_and_again_and_once_more_at_the_end);
}
