/* Child processes on the launcher's loop. */
#include <CUnit/CUnit.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "spoa/launcher/children.h"
#include "spoa/launcher/output.h"

static void pass_line(void *ctx, struct str line)
{
    output_line(ctx, line);
}

/* Far beyond what anything here takes: a test that reaches it fails. */
enum { LIMIT_MS = 20000 };

#define SHELL "/bin/sh"
static char shell_name[] = "sh", shell_flag[] = "-c";

struct rig {
    struct ev_loop *loop;
    struct output *output;
    struct sources sources;
    struct child child;
    int read_fd, write_fd;
    int status;
    unsigned n_reports;
    bool late;
    double patience_s;
    ev_timer limit;
};

static void on_exit_of(struct child *c, int status)
{
    struct rig *r = c->owner;

    r->status = status;
    ev_break(r->loop, EVBREAK_ALL);
}

static void on_limit(struct ev_loop *loop, ev_timer *w, int events)
{
    struct rig *r = w->data;

    (void)events;
    r->late = true;
    ev_break(loop, EVBREAK_ALL);
}

static void rig_open(struct rig *r)
{
    int fds[2];
    struct err e;

    err_clear(&e);
    *r = (struct rig){.loop = ev_default_loop(EVFLAG_AUTO), .status = -1};
    CU_ASSERT_FATAL(r->loop != NULL && pipe2(fds, O_CLOEXEC) == 0);
    r->read_fd = fds[0];
    r->write_fd = fds[1];
    CU_ASSERT_FATAL(output_start(&r->output, r->write_fd, 65536, &e));
    sources_init(&r->sources, r->loop, pass_line, r->output);
    r->child = (struct child){.owner = r, .on_exit = on_exit_of};
    ev_timer_init(&r->limit, on_limit, LIMIT_MS / 1000.0, 0);
    r->limit.data = r;
    ev_timer_start(r->loop, &r->limit);
}

static void rig_close(struct rig *r, const char *want)
{
    char text[4096];
    ssize_t n;

    CU_ASSERT(!r->late);
    ev_timer_stop(r->loop, &r->limit);
    sources_release(&r->sources);
    output_line(r->output, STR("end"));
    output_stop(&r->output, LIMIT_MS);
    n = read(r->read_fd, text, sizeof(text));
    CU_ASSERT(n > 0 && str_eq((struct str){text, (size_t)n}, str_of(want)));
    close(r->read_fd);
    close(r->write_fd);
}

static void start(struct rig *r, char *script, const struct ready_pipe *ready)
{
    char variable[40], path_variable[] = "PATH=/usr/bin:/bin";
    char *const argv[] = {shell_name, shell_flag, script, NULL}, *const envp[] = {path_variable, variable, NULL};
    struct err e;

    err_clear(&e);
    snprintf(variable, sizeof(variable), "EDGE_READY_FD=%d", ready->write_fd);
    CU_ASSERT_FATAL(child_start(&r->child, r->loop, &r->sources, SHELL, argv, envp, *ready, SIGKILL, &e));
}

static const struct ready_pipe no_ready_pipe = {-1, -1};

/* The child stays until it has been heard. */
static void stop_when_reported(struct child *c)
{
    struct rig *r = c->owner;

    r->n_reports++;
    child_stop(c, SIGTERM, r->patience_s);
}

static void hear(struct rig *r, char *script)
{
    struct ready_pipe ready;
    struct err e;

    err_clear(&e);
    rig_open(r);
    r->child.on_report = stop_when_reported;
    r->patience_s = LIMIT_MS;
    CU_ASSERT_FATAL(child_ready_pipe(&ready, &e));
    start(r, script, &ready);
    ev_run(r->loop, 0);
    CU_ASSERT_EQUAL(r->n_reports, 1);
}

#define UNTIL_TOLD "trap 'echo bye; exit 5' TERM; echo listening; "
#define WAIT       "while :; do sleep 0.01; done"

static void says_ready(void)
{
    char script[] = UNTIL_TOLD "echo ready > /proc/self/fd/$EDGE_READY_FD; " WAIT;
    struct rig r;

    hear(&r, script);
    CU_ASSERT(r.child.is_ready);
    CU_ASSERT_EQUAL(r.child.pid, 0);
    CU_ASSERT(WIFEXITED(r.status) && WEXITSTATUS(r.status) == 5);
    rig_close(&r, "listening\nbye\nend\n");
}

static void says_something_else(void)
{
    char script[] = UNTIL_TOLD "echo readily > /proc/self/fd/$EDGE_READY_FD; " WAIT;
    struct rig r;

    hear(&r, script);
    CU_ASSERT(!r.child.is_ready);
    rig_close(&r, "listening\nbye\nend\n");
}

static void stops(void)
{
    char script[] = UNTIL_TOLD "echo ready > /proc/self/fd/$EDGE_READY_FD; " WAIT;
    struct rig r;

    hear(&r, script);
    CU_ASSERT(WIFEXITED(r.status) && r.child.was_stopped && !r.child.was_killed);
    rig_close(&r, "listening\nbye\nend\n");
}

static void is_killed(void)
{
    char script[] = "trap '' TERM; echo ready > /proc/self/fd/$EDGE_READY_FD; " WAIT;
    struct ready_pipe ready;
    struct rig r;
    struct err e;

    err_clear(&e);
    rig_open(&r);
    r.child.on_report = stop_when_reported;
    r.patience_s = 0.02;
    CU_ASSERT_FATAL(child_ready_pipe(&ready, &e));
    start(&r, script, &ready);
    ev_run(r.loop, 0);
    CU_ASSERT(WIFSIGNALED(r.status) && WTERMSIG(r.status) == SIGKILL && r.child.was_killed);
    child_stop(&r.child, SIGTERM, 1);
    CU_ASSERT(!ev_is_active(&r.child.patience));
    rig_close(&r, "end\n");
}

static void ends_by_itself(void)
{
    char script[] = "echo words; exit 3";
    struct rig r;

    rig_open(&r);
    start(&r, script, &no_ready_pipe);
    ev_run(r.loop, 0);
    CU_ASSERT(WIFEXITED(r.status) && WEXITSTATUS(r.status) == 3 && !r.child.was_stopped);
    CU_ASSERT_EQUAL(r.n_reports, 0);
    rig_close(&r, "words\nend\n");
}

static void child_not_started(void)
{
    char *const argv[] = {shell_name, NULL}, *const envp[] = {NULL};
    struct ready_pipe ready;
    struct rig r;
    struct err e;

    err_clear(&e);
    rig_open(&r);
    CU_ASSERT_FATAL(child_ready_pipe(&ready, &e));
    CU_ASSERT(!child_start(&r.child, r.loop, &r.sources, "/nonexistent", argv, envp, ready, SIGKILL, &e));
    CU_ASSERT(fcntl(ready.read_fd, F_GETFD) < 0 && fcntl(ready.write_fd, F_GETFD) < 0);
    err_clear(&e);
    CU_ASSERT(!child_start(&r.child, r.loop, &r.sources, "/nonexistent", argv, envp, no_ready_pipe, SIGKILL, &e));
    CU_ASSERT_EQUAL(r.child.pid, 0);
    child_signal(&r.child, SIGTERM); /* of nothing: would else be the whole group's */
    rig_close(&r, "end\n");
}

void test_children_register(void)
{
    CU_pSuite s = CU_add_suite("children", NULL, NULL);

    CU_add_test(s, "a child's ready line is heard, and its words and status are passed on", says_ready);
    CU_add_test(s, "another line than ready is not taken for it", says_something_else);
    CU_add_test(s, "a child that is told to end may do so in its own way", stops);
    CU_add_test(s, "a child that does not end in time is killed", is_killed);
    CU_add_test(s, "a child that ends by itself is known to have done so", ends_by_itself);
    CU_add_test(s, "a child that can't be started leaves nothing open", child_not_started);
}
