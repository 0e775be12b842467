/* HAProxy's command socket, against a server that answers once. */
#include <CUnit/CUnit.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "spoa/launcher/haproxy_ctl.h"
#include "spoa/launcher/server_state.h"

struct server {
    char path[64];
    int listen_fd;
    const char *answer; /* NULL: never answers */
    char asked[128];
    int open_fd;
    pthread_t thread;
};

static void *serve(void *arg)
{
    struct server *s = arg;
    size_t len = 0;
    ssize_t n = 0;

    s->open_fd = accept(s->listen_fd, NULL, NULL);
    while (len < sizeof(s->asked) - 1 && (len == 0 || s->asked[len - 1] != '\n') &&
           (n = read(s->open_fd, s->asked + len, sizeof(s->asked) - 1 - len)) > 0)
        len += (size_t)n;
    s->asked[len] = '\0';
    if (s->answer != NULL) {
        (void)send(s->open_fd, s->answer, strlen(s->answer), MSG_NOSIGNAL);
        close(s->open_fd);
    }
    return NULL;
}

static void server_open(struct server *s, const char *answer)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};

    *s = (struct server){.path = "/tmp/edge-unit-XXXXXX", .answer = answer};
    CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(s->path));
    memcpy(s->path + strlen(s->path), "/s", sizeof("/s"));
    memcpy(name.sun_path, s->path, sizeof(s->path));
    s->listen_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CU_ASSERT_FATAL(bind(s->listen_fd, (const struct sockaddr *)&name, sizeof(name)) == 0 &&
                    listen(s->listen_fd, 1) == 0);
    CU_ASSERT_FATAL(pthread_create(&s->thread, NULL, serve, s) == 0);
}

static void server_close(struct server *s)
{
    pthread_join(s->thread, NULL);
    if (s->answer == NULL)
        close(s->open_fd);
    close(s->listen_fd);
    unlink(s->path);
    s->path[strlen(s->path) - 2] = '\0';
    CU_ASSERT_EQUAL(rmdir(s->path), 0);
}

static void flag_is_set(void)
{
    struct server s;
    struct err e;

    err_clear(&e);
    server_open(&s, "\n");
    CU_ASSERT(haproxy_ctl_set_ready(s.path, false, &e));
    server_close(&s);
    CU_ASSERT_STRING_EQUAL(s.asked, "set server ready_flag/flag state maint\n");
    server_open(&s, "\n");
    CU_ASSERT(haproxy_ctl_set_ready(s.path, true, &e));
    server_close(&s);
    CU_ASSERT_STRING_EQUAL(s.asked, "set server ready_flag/flag state ready\n");
}

static void flag_is_refused(void)
{
    struct server s;
    struct err e;

    err_clear(&e);
    server_open(&s, "No such server.\n\n");
    CU_ASSERT(!haproxy_ctl_set_ready(s.path, true, &e));
    CU_ASSERT_EQUAL(e.code, ERR_PROTOCOL);
    CU_ASSERT_PTR_NOT_NULL(strstr(e.text, "No such server."));
    server_close(&s);
}

static void no_answer(void)
{
    struct server s;
    struct err e;

    err_clear(&e);
    server_open(&s, NULL);
    CU_ASSERT(!haproxy_ctl_set_ready(s.path, true, &e));
    CU_ASSERT_EQUAL(e.code, ERR_IO);
    CU_ASSERT_PTR_NOT_NULL(strstr(e.text, "did not answer"));
    server_close(&s);
}

static void long_answer(void)
{
    char storage[16];
    struct server s;
    struct str out;
    struct err e;

    err_clear(&e);
    server_open(&s, "a long answer is cut\n");
    CU_ASSERT_FATAL(haproxy_ctl(s.path, "help", storage, sizeof(storage), &out, &e));
    server_close(&s);
    CU_ASSERT(str_eq(out, STR("a long answer is")));
    CU_ASSERT_STRING_EQUAL(s.asked, "help\n");
}

static void nobody_there(void)
{
    char long_path[200];
    struct err e;

    memset(long_path, 'a', sizeof(long_path) - 1);
    long_path[sizeof(long_path) - 1] = '\0';
    err_clear(&e);
    CU_ASSERT(!haproxy_ctl_set_ready(long_path, true, &e));
    CU_ASSERT_PTR_NOT_NULL(strstr(e.text, "too long"));
    err_clear(&e);
    CU_ASSERT(!haproxy_ctl_set_ready("/nonexistent/socket", true, &e));
    CU_ASSERT_EQUAL(e.code, ERR_IO);
    CU_ASSERT(!haproxy_ctl_listens("/nonexistent/socket"));
}

static void listening(void)
{
    struct server s;

    server_open(&s, "\n");
    CU_ASSERT(haproxy_ctl_listens(s.path));
    server_close(&s);
}

/* Saves what the answer says over a file that was begun; leaves the file's text in content. */
static bool saved(const char *answer, char *content, size_t cap, struct err *e)
{
    char path[] = "/tmp/edge-unit-XXXXXX";
    const int fd = mkstemp(path);
    struct server s;
    ssize_t n;
    bool ok;

    CU_ASSERT_FATAL(fd >= 0 && server_state_begin(path, e));
    close(fd);
    server_open(&s, answer);
    ok = server_state_save(s.path, path, e);
    server_close(&s);
    CU_ASSERT_STRING_EQUAL(s.asked, "show servers state\n");
    FILE *f = fopen(path, "re");
    CU_ASSERT_PTR_NOT_NULL_FATAL(f);
    n = (ssize_t)fread(content, 1, cap - 1, f);
    content[n] = '\0';
    fclose(f);
    unlink(path);
    return ok;
}

static void state_is_saved(void)
{
    char content[128];
    struct err e;

    err_clear(&e);
    CU_ASSERT(saved("1\n# be_id be_name\n3 plain 1 upstream 127.0.0.2\n\n", content, sizeof(content), &e));
    CU_ASSERT_STRING_EQUAL(content, "1\n# be_id be_name\n3 plain 1 upstream 127.0.0.2\n");
}

static void state_is_not_replaced(void)
{
    static char too_long[SERVER_STATE_MAX + 1];
    const char *const answers[] = {"Unknown command.\n", "", "10\n", NULL, too_long};
    char content[128];

    memset(too_long, 'x', sizeof(too_long) - 1);
    memcpy(too_long, "1\n", 2);
    for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
        struct err e;

        err_clear(&e);
        CU_ASSERT(!saved(answers[i], content, sizeof(content), &e));
        CU_ASSERT_STRING_EQUAL(content, "1\n");
        CU_ASSERT_NOT_EQUAL(e.text[0], '\0');
    }
}

void test_haproxy_ctl_register(void)
{
    CU_pSuite s = CU_add_suite("haproxy_ctl", NULL, NULL);

    CU_add_test(s, "the flag behind /readyz is set and taken back by command", flag_is_set);
    CU_add_test(s, "a command that HAProxy refuses is an error with its words", flag_is_refused);
    CU_add_test(s, "a HAProxy that does not answer holds nobody up", no_answer);
    CU_add_test(s, "a socket that is not there is an error", nobody_there);
    CU_add_test(s, "an answer longer than its storage is cut", long_answer);
    CU_add_test(s, "the state of HAProxy's servers is saved as it tells it", state_is_saved);
    CU_add_test(s, "an answer that is no state of servers, or none, leaves the file as it was", state_is_not_replaced);
    CU_add_test(s, "a socket that takes connections is one that listens", listening);
}
