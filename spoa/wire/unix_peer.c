/* Connecting and sending with a deadline. */
#include "spoa/wire/unix_peer.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/base/clock.h"

int unix_connect(const char *path)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    const size_t len = strlen(path);
    if (len >= sizeof name.sun_path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    memcpy(name.sun_path, path, len);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, (const struct sockaddr *) &name, sizeof name) != 0) {
        const int failure = errno;
        close(fd);
        errno = failure;
        return -1;
    }
    return fd;
}

bool unix_wait(int fd, short events, uint64_t end_us)
{
    for (;;) {
        const uint64_t now_us = clock_mono_us(&clock_system);
        struct pollfd p = {.fd = fd, .events = events};
        if (now_us >= end_us) {
            errno = EAGAIN;
            return false;
        }
        if (poll(&p, 1, (int) ((end_us - now_us) / 1000) + 1) > 0)
            return true;
    }
}

bool unix_send(int fd, struct str bytes, uint64_t end_us)
{
    while (bytes.len > 0) {
        const ssize_t n = send(fd, bytes.p, bytes.len, MSG_NOSIGNAL);
        if (n >= 0)
            str_skip(&bytes, (size_t) n);
        else if (errno != EINTR && (errno != EAGAIN || !unix_wait(fd, POLLOUT, end_us)))
            return false;
    }
    return true;
}
