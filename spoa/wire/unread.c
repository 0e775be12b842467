/* Counts what a peer may have unread, by what was written and what the kernel says is left of it. */
#include "spoa/wire/unread.h"

#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

/* tune.bufsize of haproxy.cfg is one more, and one is the barrier's. */
enum { UNREAD_MAX = 65534, LENGTH_BYTES = 4 };

static size_t frame_bytes(const char *p)
{
    const unsigned char *b = (const unsigned char *)p;
    return LENGTH_BYTES + ((size_t)b[0] << 24 | (size_t)b[1] << 16 | (size_t)b[2] << 8 | b[3]);
}

bool unread_is_much(const struct unread *u, struct str out)
{
    return u->bytes > 0 && u->bytes + out.len > UNREAD_MAX / 2;
}

static bool put_barrier(int fd, int barrier_fd, struct str out)
{
    struct iovec byte = {.iov_base = (char *)(uintptr_t)out.p, .iov_len = 1};
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(sizeof(int))];
    } control = {.header = {.cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS}};
    const struct msghdr message = {.msg_iov = &byte, .msg_iovlen = 1, .msg_control = control.room, .msg_controllen = barrier_fd < 0 ? 0 : sizeof(control.room)};

    memcpy(CMSG_DATA(&control.header), &barrier_fd, sizeof(barrier_fd));
    return sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT) == 1;
}

bool unread_look(struct unread *u, int fd, int barrier_fd, struct str out)
{
    int waiting;

    if (ioctl(fd, SIOCOUTQ, &waiting) != 0 || waiting != 0 || !put_barrier(fd, barrier_fd, out))
        return false;
    unread_add(u, out, 1);
    u->bytes = u->part;
    return true;
}

size_t unread_room(const struct unread *u, struct str out)
{
    if (u->bytes + out.len <= UNREAD_MAX)
        return out.len;
    /* For the rest of a frame there was room when it was begun. */
    size_t len = u->rest;
    while (len < out.len && u->bytes + len + frame_bytes(out.p + len) <= UNREAD_MAX)
        len += frame_bytes(out.p + len);
    return len > 0 || u->bytes > 0 ? len : frame_bytes(out.p);
}

void unread_add(struct unread *u, struct str out, size_t n)
{
    u->bytes += n;
    if (n < u->rest) {
        u->part += n;
        u->rest -= n;
        return;
    }
    size_t at = u->rest;
    while (at < n && at + frame_bytes(out.p + at) <= n)
        at += frame_bytes(out.p + at);
    u->part = n - at;
    u->rest = u->part > 0 ? frame_bytes(out.p + at) - u->part : 0;
}
