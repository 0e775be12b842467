/* Connecting to, and sending to, a UNIX socket whose other end may not be there or not read. */
#include <CUnit/CUnit.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "spoa/wire/unix_peer.h"

enum { MORE_THAN_A_SOCKET_HOLDS = 8 * 1024 * 1024, PATIENCE_US = 60 * 1000 * 1000 };

static void a_socket_that_cannot_be_there_is_refused_with_its_reason(void)
{
    char name[256];
    memset(name, 'a', sizeof name);
    name[sizeof name - 1] = '\0';
    CU_ASSERT_EQUAL(unix_connect(name), -1);
    CU_ASSERT_EQUAL(errno, ENAMETOOLONG);
    CU_ASSERT_EQUAL(unix_connect("/tmp/edge-no-such-folder/socket"), -1);
    CU_ASSERT_EQUAL(errno, ENOENT);
}

static void pair_make(int fds[2])
{
    CU_ASSERT_FATAL(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds) == 0);
}

struct reading {
    int fd;
    size_t n, n_wrong;
};

/* To the end; each byte is to be its place in the stream. */
static void *read_all(void *arg)
{
    struct reading *r = arg;
    char bytes[4096];
    for (;;) {
        const ssize_t n = unix_wait(r->fd, POLLIN, clock_mono_us(&clock_system) + PATIENCE_US) ? read(r->fd, bytes, sizeof bytes) : 0;
        if (n <= 0)
            return NULL;
        for (ssize_t i = 0; i < n; i++)
            r->n_wrong += bytes[i] != (char) (r->n++ * 31 >> 8);
    }
}

static char *stream_make(void)
{
    char *bytes = malloc(MORE_THAN_A_SOCKET_HOLDS);
    CU_ASSERT_FATAL(bytes != NULL);
    for (size_t i = 0; i < MORE_THAN_A_SOCKET_HOLDS; i++)
        bytes[i] = (char) (i * 31 >> 8);
    return bytes;
}

static void all_is_sent_to_a_peer_that_reads_slower_than_it_comes(void)
{
    char *bytes = stream_make();
    int fds[2];
    pthread_t thread;
    pair_make(fds);
    struct reading r = {.fd = fds[1]};
    CU_ASSERT_FATAL(pthread_create(&thread, NULL, read_all, &r) == 0);
    CU_ASSERT(unix_send(fds[0], (struct str){bytes, MORE_THAN_A_SOCKET_HOLDS}, clock_mono_us(&clock_system) + PATIENCE_US));
    close(fds[0]);
    pthread_join(thread, NULL);
    CU_ASSERT_EQUAL(r.n, MORE_THAN_A_SOCKET_HOLDS);
    CU_ASSERT_EQUAL(r.n_wrong, 0);
    close(fds[1]);
    free(bytes);
}

static void a_peer_that_does_not_read_or_has_gone_is_given_up(void)
{
    char *bytes = stream_make();
    int fds[2];
    pair_make(fds);
    CU_ASSERT_FALSE(unix_send(fds[0], (struct str){bytes, MORE_THAN_A_SOCKET_HOLDS}, clock_mono_us(&clock_system) + 10 * 1000));
    CU_ASSERT_EQUAL(errno, EAGAIN);
    close(fds[1]);
    CU_ASSERT_FALSE(unix_send(fds[0], STR("x"), clock_mono_us(&clock_system) + PATIENCE_US));
    CU_ASSERT_EQUAL(errno, EPIPE);
    close(fds[0]);
    free(bytes);
}

void test_unix_peer_register(void)
{
    CU_pSuite s = CU_add_suite("unix_peer", NULL, NULL);
    CU_add_test(s, "a socket that cannot be there is refused with its reason", a_socket_that_cannot_be_there_is_refused_with_its_reason);
    CU_add_test(s, "all is sent to a peer that reads slower than it comes", all_is_sent_to_a_peer_that_reads_slower_than_it_comes);
    CU_add_test(s, "a peer that does not read, or has gone, is given up", a_peer_that_does_not_read_or_has_gone_is_given_up);
}
