/* HAProxy's command socket. */
#include "spoa/launcher/haproxy_ctl.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/base/clock.h"

/* A connected non-blocking socket, or -1 and errno. Connecting to a UNIX socket succeeds or fails at once. */
static int connect_unix(const char *path)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    const size_t len = strlen(path);
    int fd;

    if (len >= sizeof(name.sun_path)) {
        errno = ENAMETOOLONG;
        return -1;
    }
    memcpy(name.sun_path, path, len);
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, (const struct sockaddr *)&name, sizeof(name)) != 0) {
        const int failure = errno;

        close(fd);
        errno = failure;
        return -1;
    }
    return fd;
}

bool haproxy_ctl_listens(const char *path)
{
    const int fd = connect_unix(path);

    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

/* Waits for events; false at end_us. */
static bool wait_for(int fd, short events, uint64_t end_us)
{
    for (;;) {
        const uint64_t now_us = clock_mono_us(&clock_system);
        struct pollfd p = {.fd = fd, .events = events};

        if (now_us >= end_us)
            return false;
        if (poll(&p, 1, (int)((end_us - now_us) / 1000) + 1) > 0)
            return true;
    }
}

static bool send_all(int fd, struct str text, uint64_t end_us)
{
    while (text.len > 0) {
        const ssize_t n = send(fd, text.p, text.len, MSG_NOSIGNAL);

        if (n >= 0)
            text = str_sub(text, (size_t)n, text.len);
        else if (errno != EINTR && (errno != EAGAIN || !wait_for(fd, POLLOUT, end_us)))
            return false;
    }
    return true;
}

/* To the end of the stream; what is longer than b is left out. */
static bool receive_all(int fd, struct buf *b, uint64_t end_us)
{
    char bytes[1024];

    for (;;) {
        const ssize_t n = recv(fd, bytes, sizeof(bytes), 0);

        if (n == 0)
            return true;
        if (n > 0)
            buf_put(b, str_sub((struct str){bytes, (size_t)n}, 0, b->cap - b->len));
        else if (errno != EINTR && (errno != EAGAIN || !wait_for(fd, POLLIN, end_us)))
            return false;
    }
}

bool haproxy_ctl(const char *path, const char *command, char *storage, size_t cap, struct str *out, struct err *e)
{
    const uint64_t end_us = clock_mono_us(&clock_system) + HAPROXY_CTL_TIMEOUT_MS * 1000;
    const int fd = connect_unix(path);
    struct buf b;
    bool ok;

    if (fd < 0)
        return err_set(e, ERR_IO, "", "cannot connect to HAProxy's command socket %s: %s", path, strerror(errno));
    buf_init(&b, storage, cap);
    /* The master's socket waits for more commands until it is told that there are none. */
    ok = send_all(fd, str_of(command), end_us) && send_all(fd, STR("\n"), end_us) && shutdown(fd, SHUT_WR) == 0 &&
         receive_all(fd, &b, end_us);
    close(fd);
    if (!ok)
        return err_set(e, ERR_IO, "", "HAProxy did not answer \"%s\" within %d ms", command, HAPROXY_CTL_TIMEOUT_MS);
    *out = str_trim(buf_str(&b));
    return true;
}

bool haproxy_ctl_set_ready(const char *path, bool is_ready, struct err *e)
{
    char storage[512];
    struct str answer;

    if (!haproxy_ctl(path,
                     is_ready ? "set server ready_flag/flag state ready" : "set server ready_flag/flag state maint",
                     storage, sizeof(storage), &answer, e))
        return false;
    /* Silence is consent. */
    return answer.len == 0 || err_set(e, ERR_PROTOCOL, "", "HAProxy refused to change /readyz: %.*s", STR_ARG(answer));
}
