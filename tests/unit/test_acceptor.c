/* Accepting while the process has no descriptor left: it rests instead of trying again and again, and says so once. */
#include <CUnit/CUnit.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/base/err.h"
#include "spoa/wire/acceptor.h"
#include "spoa/wire/server.h"

struct rig {
    char folder[32], path[64];
    struct ev_loop *loop;
    struct acceptor acceptor;
    int listener, client, taken;
    int log_fd, stderr_fd; /* what is logged goes into a file */
    struct rlimit limit;
};

static void on_connection(void *ctx, int fd)
{
    struct rig *r = ctx;
    r->taken = fd;
}

static void rig_begin(struct rig *r)
{
    char at[128];
    struct sockaddr_un sun = {.sun_family = AF_UNIX};
    struct err e;
    err_clear(&e);
    r->taken = -1;
    snprintf(r->folder, sizeof r->folder, "/tmp/edge-acceptor-XXXXXX");
    CU_ASSERT_FATAL(mkdtemp(r->folder) != NULL);
    snprintf(r->path, sizeof r->path, "%s/s", r->folder);
    snprintf(at, sizeof at, "unix@%s", r->path);
    CU_ASSERT_FATAL(spop_listen(str_of(at), &r->listener, &e));
    r->loop = ev_loop_new(EVFLAG_NOENV | EVFLAG_NOSIGMASK);
    CU_ASSERT_FATAL(r->loop != NULL);
    acceptor_start(&r->acceptor, r->loop, r->listener, on_connection, r);
    ev_run(r->loop, EVRUN_NOWAIT);
    r->client = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    snprintf(sun.sun_path, sizeof sun.sun_path, "%s", r->path);
    CU_ASSERT_FATAL(connect(r->client, (struct sockaddr *) &sun, sizeof sun) == 0);
    r->log_fd = open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    r->stderr_fd = dup(STDERR_FILENO);
    CU_ASSERT_FATAL(r->log_fd >= 0 && r->stderr_fd >= 0 && dup2(r->log_fd, STDERR_FILENO) >= 0);
}

static void rig_end(struct rig *r)
{
    dup2(r->stderr_fd, STDERR_FILENO);
    close(r->stderr_fd);
    close(r->log_fd);
    acceptor_stop(&r->acceptor);
    ev_loop_destroy(r->loop);
    close(r->client);
    close(r->listener);
    unlink(r->path);
    CU_ASSERT_EQUAL(rmdir(r->folder), 0);
}

/* From now on no descriptor can be opened. */
static void no_descriptors(struct rig *r)
{
    struct rlimit none;
    int next = dup(STDIN_FILENO);
    CU_ASSERT_FATAL(next >= 0 && getrlimit(RLIMIT_NOFILE, &r->limit) == 0);
    close(next);
    none = (struct rlimit){.rlim_cur = (rlim_t) next, .rlim_max = r->limit.rlim_max};
    CU_ASSERT_FATAL(setrlimit(RLIMIT_NOFILE, &none) == 0);
}

static void descriptors_again(const struct rig *r)
{
    CU_ASSERT_FATAL(setrlimit(RLIMIT_NOFILE, &r->limit) == 0);
}

static size_t lines_logged(const struct rig *r)
{
    char text[4096];
    ssize_t n = pread(r->log_fd, text, sizeof text, 0);
    size_t n_lines = 0;
    CU_ASSERT_FATAL(n >= 0);
    for (ssize_t i = 0; i < n; i++)
        n_lines += text[i] == '\n';
    return n_lines;
}

static void without_descriptors_it_rests_and_takes_the_connection_later(void)
{
    struct rig r;
    rig_begin(&r);
    no_descriptors(&r);
    for (int i = 0; i < 5; i++)
        ev_run(r.loop, EVRUN_NOWAIT);
    CU_ASSERT_EQUAL(atomic_load(&r.acceptor.n_failures), 1);
    CU_ASSERT(!ev_is_active(&r.acceptor.io) && ev_is_active(&r.acceptor.rest));
    /* The loop's only event now is the end of the rest, which tries again. */
    while (atomic_load(&r.acceptor.n_failures) < 3)
        ev_run(r.loop, EVRUN_ONCE);
    CU_ASSERT_EQUAL(lines_logged(&r), 1);
    descriptors_again(&r);
    while (r.taken < 0)
        ev_run(r.loop, EVRUN_ONCE);
    CU_ASSERT_EQUAL(atomic_load(&r.acceptor.n_failures), 3);
    CU_ASSERT_EQUAL(fcntl(r.taken, F_GETFL) & O_NONBLOCK, O_NONBLOCK);
    close(r.taken);
    rig_end(&r);
}

static void stop_while_it_rests(void)
{
    struct rig r;
    rig_begin(&r);
    no_descriptors(&r);
    ev_run(r.loop, EVRUN_NOWAIT);
    descriptors_again(&r);
    acceptor_stop(&r.acceptor);
    ev_run(r.loop, 0); /* returns, since nothing is watched any more */
    CU_ASSERT_EQUAL(r.taken, -1);
    rig_end(&r);
}

void test_acceptor_register(void)
{
    CU_pSuite s = CU_add_suite("acceptor", NULL, NULL);
    CU_add_test(s, "without descriptors it rests, says so once, and takes the connection later",
                without_descriptors_it_rests_and_takes_the_connection_later);
    CU_add_test(s, "it can be stopped while it rests", stop_while_it_rests);
}
