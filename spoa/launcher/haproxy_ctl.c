/* HAProxy's command socket. */
#include "spoa/launcher/haproxy_ctl.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "spoa/wire/unix_peer.h"

bool haproxy_ctl_listens(const char *path)
{
    const int fd = unix_connect(path);

    if (fd >= 0)
        close(fd);
    return fd >= 0;
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
        else if (errno != EINTR && (errno != EAGAIN || !unix_wait(fd, POLLIN, end_us)))
            return false;
    }
}

bool haproxy_ctl(const char *path, const char *command, char *storage, size_t cap, struct str *out, struct err *e)
{
    const uint64_t end_us = clock_mono_us(&clock_system) + HAPROXY_CTL_TIMEOUT_MS * 1000;
    const int fd = unix_connect(path);
    struct buf b;
    bool ok;

    if (fd < 0)
        return err_set(e, ERR_IO, "", "cannot connect to HAProxy's command socket %s: %s", path, strerror(errno));
    buf_init(&b, storage, cap);
    /* The master's socket waits for more commands until it is told that there are none. */
    ok = unix_send(fd, str_of(command), end_us) && unix_send(fd, STR("\n"), end_us) && shutdown(fd, SHUT_WR) == 0 &&
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
