/* Both ends of a hand-over. */
#include "spoa/record/handover.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "spoa/wire/unix_peer.h"

static const struct str mark = STR("handover 1 ");

union fd_control {
    struct cmsghdr align;
    char bytes[CMSG_SPACE(sizeof(int))];
};

static bool is_this_user(const struct ucred *peer)
{
    return peer->uid == geteuid();
}

static bool peer_of(int fd, struct ucred *out)
{
    socklen_t len = sizeof *out;
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, out, &len) == 0;
}

int handover_connect(const char *path)
{
    struct ucred listener;
    int fd = unix_connect(path);
    /* The kernel keeps who called listen(): a file's owner or name says nothing about who reads. */
    if (fd < 0 || (peer_of(fd, &listener) && listener.pid != getpid() && is_this_user(&listener)))
        return fd;
    close(fd);
    return -1;
}

/* fd below 0: none. */
static ssize_t send_with(int to, struct str head, struct str rest, int fd)
{
    union {
        const char *in;
        void *out;
    } head_p = {head.p}, rest_p = {rest.p};
    struct iovec parts[] = {{head_p.out, head.len}, {rest_p.out, rest.len}};
    union fd_control control = {0};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
    if (fd >= 0) {
        message.msg_control = control.bytes;
        message.msg_controllen = sizeof control.bytes;
        struct cmsghdr *part = CMSG_FIRSTHDR(&message);
        part->cmsg_level = SOL_SOCKET;
        part->cmsg_type = SCM_RIGHTS;
        part->cmsg_len = CMSG_LEN(sizeof fd);
        memcpy(CMSG_DATA(part), &fd, sizeof fd);
    }
    return sendmsg(to, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

bool handover_send(int to, int fd, struct str rest, uint64_t end_us)
{
    char head[HANDOVER_HEAD_MAX];
    int head_len = snprintf(head, sizeof head, "%.*s%zu ", STR_ARG(mark), rest.len);
    struct str left = {head, (size_t) head_len};
    while (left.len + rest.len > 0) {
        ssize_t n = send_with(to, left, rest, fd);
        if (n > 0) {
            fd = -1;
            size_t of_head = (size_t) n < left.len ? (size_t) n : left.len;
            str_skip(&left, of_head);
            str_skip(&rest, (size_t) n - of_head);
        } else if ((errno != EAGAIN && errno != EWOULDBLOCK) || !unix_wait(to, POLLOUT, end_us)) {
            return false;
        }
    }
    return true;
}

bool handover_begins(struct str in)
{
    return in.p[0] == mark.p[0];
}

enum handover handover_parse(struct str in, struct str *rest)
{
    size_t n_mark = in.len < mark.len ? in.len : mark.len, len = 0, i = mark.len;
    if (!str_eq(str_sub(in, 0, n_mark), str_sub(mark, 0, n_mark)))
        return HANDOVER_BAD;
    for (; i < in.len && ascii_is_digit(in.p[i]); i++) {
        len = len * 10 + (size_t) (in.p[i] - '0');
        if (len > HANDOVER_REST_MAX || i - mark.len >= 5)
            return HANDOVER_BAD;
    }
    if (i >= in.len)
        return HANDOVER_PART;
    if (in.p[i] != ' ' || i == mark.len || in.len - i - 1 > len)
        return HANDOVER_BAD;
    *rest = str_sub(in, i + 1, in.len);
    return rest->len == len ? HANDOVER_WHOLE : HANDOVER_PART;
}

ssize_t handover_recv(int from, char *at, size_t room, int *passed)
{
    struct iovec part = {at, room};
    union fd_control control;
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = CMSG_LEN(sizeof *passed)};
    *passed = -1;
    ssize_t n = recvmsg(from, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (n < 0)
        return n;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(&message); c != NULL; c = CMSG_NXTHDR(&message, c))
        if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS && c->cmsg_len == CMSG_LEN(sizeof *passed))
            memcpy(passed, CMSG_DATA(c), sizeof *passed);
    /* The kernel has closed those that the room did not hold. */
    if ((message.msg_flags & MSG_CTRUNC) == 0)
        return n;
    if (*passed >= 0)
        close(*passed);
    *passed = -1;
    errno = EPROTO;
    return -1;
}

static bool option_is(int fd, int option, int wanted)
{
    int value;
    socklen_t len = sizeof value;
    return getsockopt(fd, SOL_SOCKET, option, &value, &len) == 0 && value == wanted;
}

bool handover_is_fit(int from, int passed)
{
    struct ucred sender;
    return passed >= 0 && peer_of(from, &sender) && is_this_user(&sender) && option_is(passed, SO_DOMAIN, AF_UNIX) &&
           option_is(passed, SO_TYPE, SOCK_STREAM) && option_is(passed, SO_ACCEPTCONN, 0);
}
