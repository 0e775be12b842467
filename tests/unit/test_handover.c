/* Hand-overs of record connections: whole or not at all, whatever comes, and nothing of the connection is lost or read twice. */
#include <CUnit/CUnit.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "spoa/record/intake.h"
#include "spoa/wire/server.h"

enum { PATIENCE_MS = 10 * 1000 };

static void a_hand_over_is_whole_at_its_last_byte_and_no_other(void)
{
    static const char wire[] = "handover 1 9 5 abc3 xy";
    const struct str all = {wire, sizeof wire - 1};
    struct str rest = STR_NONE;
    for (size_t n = 1; n < all.len; n++)
        CU_ASSERT_EQUAL(handover_parse(str_sub(all, 0, n), &rest), HANDOVER_PART);
    CU_ASSERT_EQUAL(handover_parse(all, &rest), HANDOVER_WHOLE);
    CU_ASSERT(str_eq(rest, STR("5 abc3 xy")));
    CU_ASSERT_EQUAL(handover_parse(STR("handover 1 9 5 abc3 xyz"), &rest), HANDOVER_BAD);
    CU_ASSERT_EQUAL(handover_parse(STR("handover 1 0 "), &rest), HANDOVER_WHOLE);
    CU_ASSERT_EQUAL(rest.len, 0);
}

static void what_can_not_become_a_hand_over_is_bad_at_once(void)
{
    static const char *const wires[] = {"hands",           "handover 2 ",       "handover 1  ",       "handover 1 x",
                                        "handover 1 -1 ",  "handover 1 16393 ", "handover 1 000001 ", "handover 1 99999999999999999999 ",
                                        "handover 1 3,ab", "handover 1 0 1"};
    struct str rest;
    for (size_t i = 0; i < sizeof wires / sizeof wires[0]; i++)
        CU_ASSERT_EQUAL(handover_parse(str_of(wires[i]), &rest), HANDOVER_BAD);
    CU_ASSERT_EQUAL(handover_parse(STR("handover 1 16392 "), &rest), HANDOVER_PART);
}

/* A running intake that writes the first byte of each record to told[1]. */
struct rig {
    char folder[32], path[64];
    struct intake in;
    int told[2];
};

static void tell(void *ctx, struct str record)
{
    const struct rig *r = ctx;
    (void) !write(r->told[1], record.p, 1);
}

static void rig_open(struct rig *r)
{
    memset(r, 0, sizeof *r);
    snprintf(r->folder, sizeof r->folder, "/tmp/edge-handover-XXXXXX");
    CU_ASSERT_FATAL(mkdtemp(r->folder) != NULL && pipe(r->told) == 0);
    snprintf(r->path, sizeof r->path, "%s/records.sock", r->folder);
}

static bool rig_listen(struct rig *r, const char *path)
{
    char at[128];
    struct err e;
    int listener;
    err_clear(&e);
    snprintf(at, sizeof at, "unix@%s", path);
    return spop_listen(str_of(at), &listener, &e) && intake_start(&r->in, listener, tell, NULL, r, &e);
}

static void rig_start(struct rig *r)
{
    rig_open(r);
    CU_ASSERT_FATAL(rig_listen(r, r->path));
}

static void rig_close(struct rig *r)
{
    close(r->told[0]);
    close(r->told[1]);
    unlink(r->path);
    CU_ASSERT_EQUAL(rmdir(r->folder), 0);
}

static char next_told(const struct rig *r)
{
    struct pollfd ready = {.fd = r->told[0], .events = POLLIN};
    char byte = 0;
    return poll(&ready, 1, PATIENCE_MS) == 1 && read(r->told[0], &byte, 1) == 1 ? byte : 0;
}

static int reach(const char *path)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    snprintf(at.sun_path, sizeof at.sun_path, "%s", path);
    CU_ASSERT_FATAL(connect(fd, (struct sockaddr *) &at, sizeof at) == 0);
    return fd;
}

static void say(int fd, struct str text)
{
    CU_ASSERT_EQUAL(send(fd, text.p, text.len, MSG_NOSIGNAL), (ssize_t) text.len);
}

/* Until the peer has read everything. */
static void wait_read(int fd)
{
    int left = 1;
    while (ioctl(fd, SIOCOUTQ, &left) == 0 && left > 0)
        sched_yield();
}

/* text with n descriptors on its first byte. */
static void pass(int to, struct str text, const int *fds, size_t n)
{
    char bytes[64], control[CMSG_SPACE(2 * sizeof(int))] __attribute__((aligned(sizeof(struct cmsghdr)))) = {0};
    memcpy(bytes, text.p, text.len);
    struct iovec part = {bytes, text.len};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    if (n > 0) {
        message.msg_control = control;
        message.msg_controllen = CMSG_SPACE(n * sizeof(int));
        struct cmsghdr *c = CMSG_FIRSTHDR(&message);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(n * sizeof(int));
        memcpy(CMSG_DATA(c), fds, n * sizeof(int));
    }
    CU_ASSERT_EQUAL(sendmsg(to, &message, MSG_NOSIGNAL), (ssize_t) text.len);
}

static void pair_make(int fds[static 2])
{
    CU_ASSERT_FATAL(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) == 0);
}

static void a_hand_over_is_taken_wherever_it_is_cut(void)
{
    static const char wire[] = "handover 1 8 1 a6 bef";
    const struct str all = {wire, sizeof wire - 1};
    struct rig r;
    rig_start(&r);
    for (size_t cut = 1; cut <= all.len; cut++) {
        int haproxy[2], to = reach(r.path);
        pair_make(haproxy);
        pass(to, str_sub(all, 0, cut), &haproxy[1], 1);
        close(haproxy[1]);
        wait_read(to);
        say(haproxy[0], STR("ore1 c"));
        if (cut < all.len)
            say(to, str_sub(all, cut, all.len));
        CU_ASSERT_EQUAL(next_told(&r), 'a');
        CU_ASSERT_EQUAL(next_told(&r), 'b');
        CU_ASSERT_EQUAL(next_told(&r), 'c');
        CU_ASSERT_EQUAL(atomic_load(&r.in.n_taken_over), cut);
        close(to);
        close(haproxy[0]);
    }
    intake_stop(&r.in, NULL);
    CU_ASSERT_EQUAL(atomic_load(&r.in.n_malformed), 0);
    rig_close(&r);
}

/* The intake closes what said this; whoever could be read through the descriptor keeps what it has sent. */
static void check_refused(struct rig *r, struct str text, const int *fds, size_t n, bool ends)
{
    uint64_t before = atomic_load(&r->in.n_malformed);
    int to = reach(r->path);
    char byte;
    pass(to, text, fds, n);
    if (ends)
        shutdown(to, SHUT_WR);
    CU_ASSERT(read(to, &byte, 1) <= 0);
    CU_ASSERT_EQUAL(atomic_load(&r->in.n_malformed), before + 1);
    close(to);
}

static void a_hand_over_that_is_not_as_it_must_be_ends_and_its_connection_is_not_read(void)
{
    struct rig r;
    int haproxy[2], plain[2], listener = socket(AF_UNIX, SOCK_STREAM, 0), datagram[2];
    struct sockaddr_un nameless = {.sun_family = AF_UNIX};
    char got[8];
    rig_start(&r);
    pair_make(haproxy);
    CU_ASSERT_FATAL(pipe(plain) == 0 && socketpair(AF_UNIX, SOCK_DGRAM, 0, datagram) == 0);
    CU_ASSERT_FATAL(bind(listener, (struct sockaddr *) &nameless, sizeof(sa_family_t)) == 0 && listen(listener, 1) == 0);
    const int two[] = {haproxy[1], haproxy[1]};
    say(haproxy[0], STR("1 x"));

    check_refused(&r, STR("handover 1 0 "), NULL, 0, false);
    check_refused(&r, STR("handover 1 0 "), two, 2, false);
    check_refused(&r, STR("handover 1 0 "), &plain[0], 1, false);
    check_refused(&r, STR("handover 1 0 "), &listener, 1, false);
    check_refused(&r, STR("handover 1 0 "), &datagram[0], 1, false);
    check_refused(&r, STR("handover 1 0 1 y"), &haproxy[1], 1, false);
    check_refused(&r, STR("handover 2 0 "), &haproxy[1], 1, false);
    check_refused(&r, STR("handover 1 7 1 y"), &haproxy[1], 1, true);
    check_refused(&r, STR("h"), &haproxy[1], 1, true);
    check_refused(&r, STR("1 y"), &haproxy[1], 1, false);
    intake_stop(&r.in, NULL);
    CU_ASSERT_EQUAL(recv(haproxy[1], got, sizeof got, MSG_DONTWAIT), 3);
    for (size_t i = 0; i < 2; i++) {
        close(haproxy[i]);
        close(plain[i]);
        close(datagram[i]);
    }
    close(listener);
    rig_close(&r);
}

static void what_follows_records_is_no_hand_over(void)
{
    struct rig r;
    int haproxy[2], to;
    char byte;
    rig_start(&r);
    pair_make(haproxy);
    to = reach(r.path);
    say(to, STR("1 a"));
    CU_ASSERT_EQUAL(next_told(&r), 'a');
    pass(to, STR("handover 1 0 "), &haproxy[1], 1);
    CU_ASSERT(read(to, &byte, 1) <= 0);
    CU_ASSERT_EQUAL(atomic_load(&r.in.n_malformed), 1);
    CU_ASSERT_EQUAL(atomic_load(&r.in.n_taken_over), 0);
    close(to);
    close(haproxy[0]);
    close(haproxy[1]);
    intake_stop(&r.in, NULL);
    rig_close(&r);
}

/* The process that takes over: tells of its records through r, ends when held's other end is closed. */
static pid_t successor_start(struct rig *r, int held[static 2])
{
    char byte;
    CU_ASSERT_FATAL(pipe(held) == 0);
    pid_t pid = fork();
    if (pid == 0) {
        close(held[1]);
        if (!rig_listen(r, r->path) || write(r->told[1], "!", 1) != 1)
            _exit(1);
        (void) !read(held[0], &byte, 1);
        intake_stop(&r->in, NULL);
        _exit(0);
    }
    close(held[0]);
    CU_ASSERT_FATAL(pid > 0 && next_told(r) == '!');
    return pid;
}

static void successor_end(pid_t pid, int held)
{
    int status = -1;
    close(held);
    CU_ASSERT(waitpid(pid, &status, 0) == pid && status == 0);
}

static void a_connection_goes_on_in_the_process_that_takes_over(void)
{
    struct rig taking, leaving;
    int held[2], haproxy, quiet;
    rig_open(&taking);
    pid_t pid = successor_start(&taking, held);
    rig_start(&leaving);
    haproxy = reach(leaving.path);
    quiet = reach(leaving.path);
    say(haproxy, STR("1 a5 bef"));
    CU_ASSERT_EQUAL(next_told(&leaving), 'a');
    wait_read(haproxy);
    intake_stop(&leaving.in, taking.path);
    CU_ASSERT_EQUAL(atomic_load(&leaving.in.n_handed_over), 2);
    say(haproxy, STR("or1 c"));
    CU_ASSERT_EQUAL(next_told(&taking), 'b');
    CU_ASSERT_EQUAL(next_told(&taking), 'c');
    say(quiet, STR("1 d"));
    CU_ASSERT_EQUAL(next_told(&taking), 'd');
    successor_end(pid, held[1]);
    close(haproxy);
    close(quiet);
    rig_close(&leaving);
    rig_close(&taking);
}

static void where_nobody_takes_over_the_last_records_are_read_and_no_more_are_taken(void)
{
    struct rig r;
    char nobody[80];
    for (int i = 0; i < 2; i++) {
        rig_start(&r);
        int haproxy = reach(r.path);
        say(haproxy, STR("1 a1 b1 c2 d"));
        snprintf(nobody, sizeof nobody, "%s/nobody", r.folder);
        intake_stop(&r.in, i == 0 ? r.path : nobody);
        CU_ASSERT_EQUAL(next_told(&r), 'a');
        CU_ASSERT_EQUAL(next_told(&r), 'b');
        CU_ASSERT_EQUAL(next_told(&r), 'c');
        CU_ASSERT_EQUAL(send(haproxy, "d", 1, MSG_NOSIGNAL), -1);
        CU_ASSERT_EQUAL(errno, EPIPE);
        CU_ASSERT_EQUAL(atomic_load(&r.in.n_handed_over), 0);
        close(haproxy);
        rig_close(&r);
    }
}

static void a_hand_over_that_nobody_reads_is_given_up(void)
{
    static char rest[HANDOVER_REST_MAX];
    int to[2], haproxy[2], least = 1;
    pair_make(to);
    pair_make(haproxy);
    CU_ASSERT_FATAL(setsockopt(to[0], SOL_SOCKET, SO_SNDBUF, &least, sizeof least) == 0);
    memset(rest, 'x', sizeof rest);
    CU_ASSERT_FALSE(handover_send(to[0], haproxy[0], (struct str){rest, sizeof rest}, clock_mono_us(&clock_system) + 20 * 1000));
    close(to[1]);
    CU_ASSERT_FALSE(handover_send(to[0], haproxy[0], STR("x"), UINT64_MAX));
    close(to[0]);
    close(haproxy[0]);
    close(haproxy[1]);
}

static void a_connection_beyond_the_most_is_closed_and_counted(void)
{
    struct rig r;
    int peers[INTAKE_PEERS_MAX], one_more;
    char byte;
    rig_start(&r);
    for (size_t i = 0; i < INTAKE_PEERS_MAX; i++) {
        peers[i] = reach(r.path);
        say(peers[i], STR("1 a"));
        CU_ASSERT_EQUAL(next_told(&r), 'a');
    }
    one_more = reach(r.path);
    CU_ASSERT_EQUAL(read(one_more, &byte, 1), 0);
    CU_ASSERT_EQUAL(atomic_load(&r.in.n_refused), 1);
    say(peers[0], STR("1 b"));
    CU_ASSERT_EQUAL(next_told(&r), 'b');
    for (size_t i = 0; i < INTAKE_PEERS_MAX; i++)
        close(peers[i]);
    close(one_more);
    intake_stop(&r.in, NULL);
    rig_close(&r);
}

void test_handover_register(void)
{
    CU_pSuite s = CU_add_suite("handover", NULL, NULL);
    CU_add_test(s, "a hand-over is whole at its last byte and no other", a_hand_over_is_whole_at_its_last_byte_and_no_other);
    CU_add_test(s, "what can not become a hand-over is bad at once", what_can_not_become_a_hand_over_is_bad_at_once);
    CU_add_test(s, "a hand-over is taken wherever it is cut", a_hand_over_is_taken_wherever_it_is_cut);
    CU_add_test(s, "a hand-over that is not as it must be ends, and its connection is not read",
                a_hand_over_that_is_not_as_it_must_be_ends_and_its_connection_is_not_read);
    CU_add_test(s, "what follows records is no hand-over", what_follows_records_is_no_hand_over);
    CU_add_test(s, "a connection goes on in the process that takes over", a_connection_goes_on_in_the_process_that_takes_over);
    CU_add_test(s, "where nobody takes over the last records are read and no more are taken",
                where_nobody_takes_over_the_last_records_are_read_and_no_more_are_taken);
    CU_add_test(s, "a hand-over that nobody reads is given up", a_hand_over_that_nobody_reads_is_given_up);
    CU_add_test(s, "a connection beyond the most is closed and counted", a_connection_beyond_the_most_is_closed_and_counted);
}
