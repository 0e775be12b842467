/* A command socket of HAProxy, as far as tests need one: each connection asks once and gets the next answer. */
#ifndef TESTS_UNIT_CTL_SERVER_H
#define TESTS_UNIT_CTL_SERVER_H

#include <pthread.h>
#include <stddef.h>

enum { CTL_ANSWERS_MAX = 4 };

struct ctl_server {
    char path[64]; /* of the socket */
    int listen_fd;
    const char *answers[CTL_ANSWERS_MAX]; /* NULL: never answered, and the last one */
    size_t n_answers;
    char asked[CTL_ANSWERS_MAX][128];
    int open_fd;
    pthread_t thread;
};

/* Listens at a path of its own from here on; as many connections must come as there are answers. */
void ctl_server_open(struct ctl_server *s, const char *const *answers, size_t n);
/* Waits until the last one is answered. */
void ctl_server_close(struct ctl_server *s);

#endif
