/* The server's thread answers one connection after the other. */
#include "tests/unit/ctl_server.h"

#include <CUnit/CUnit.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static void answer(struct ctl_server *s, const char *text, char *asked, size_t cap)
{
    size_t len = 0;
    ssize_t n = 0;

    s->open_fd = accept(s->listen_fd, NULL, NULL);
    while (len < cap - 1 && (len == 0 || asked[len - 1] != '\n') && (n = read(s->open_fd, asked + len, cap - 1 - len)) > 0)
        len += (size_t)n;
    asked[len] = '\0';
    if (text == NULL)
        return;
    (void)send(s->open_fd, text, strlen(text), MSG_NOSIGNAL);
    close(s->open_fd);
    s->open_fd = -1;
}

static void *serve(void *arg)
{
    struct ctl_server *s = arg;

    for (size_t i = 0; i < s->n_answers; i++)
        answer(s, s->answers[i], s->asked[i], sizeof(s->asked[i]));
    return NULL;
}

void ctl_server_open(struct ctl_server *s, const char *const *answers, size_t n)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};

    *s = (struct ctl_server){.path = "/tmp/edge-unit-XXXXXX", .n_answers = n, .open_fd = -1};
    CU_ASSERT_FATAL(n <= CTL_ANSWERS_MAX);
    memcpy(s->answers, answers, n * sizeof(answers[0]));
    CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(s->path));
    memcpy(s->path + strlen(s->path), "/s", sizeof("/s"));
    memcpy(name.sun_path, s->path, sizeof(s->path));
    s->listen_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CU_ASSERT_FATAL(bind(s->listen_fd, (const struct sockaddr *)&name, sizeof(name)) == 0 && listen(s->listen_fd, 1) == 0);
    CU_ASSERT_FATAL(pthread_create(&s->thread, NULL, serve, s) == 0);
}

void ctl_server_close(struct ctl_server *s)
{
    pthread_join(s->thread, NULL);
    if (s->open_fd >= 0)
        close(s->open_fd);
    close(s->listen_fd);
    unlink(s->path);
    s->path[strlen(s->path) - 2] = '\0';
    CU_ASSERT_EQUAL(rmdir(s->path), 0);
}
