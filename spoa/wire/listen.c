/* Listening sockets for SPOP. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/base/parse.h"
#include "spoa/wire/server.h"

enum { BACKLOG = 1024, UNIX_MODE = 0660 };

static bool io_failed(const char *what, struct str at, struct err *e)
{
    return err_set(e, ERR_IO, "", "%s %.*s: %s", what, STR_ARG(at), strerror(errno));
}

static int stream_socket(int family)
{
    return socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
}

/* Nobody can connect before listen, so the mode is right from the first connection on. */
static bool bind_and_rename(int fd, const struct sockaddr_un *temporary, const char *path, struct str at, struct err *e)
{
    (void)unlink(temporary->sun_path);
    if (bind(fd, (const struct sockaddr *)temporary, sizeof(*temporary)) != 0)
        return io_failed("cannot bind", at, e);
    if (chmod(temporary->sun_path, UNIX_MODE) == 0 && listen(fd, BACKLOG) == 0 &&
        rename(temporary->sun_path, path) == 0)
        return true;
    (void)io_failed("cannot listen on", at, e);
    (void)unlink(temporary->sun_path);
    return false;
}

static bool listen_unix(struct str path, int *out_fd, struct err *e)
{
    struct sockaddr_un temporary = {.sun_family = AF_UNIX};
    char name[sizeof(temporary.sun_path)];
    int fd, len = snprintf(temporary.sun_path, sizeof(temporary.sun_path), "%.*s.%ld", STR_ARG(path), (long)getpid());

    if (path.len == 0 || path.p[0] != '/' || memchr(path.p, '\0', path.len) != NULL)
        return err_set(e, ERR_BAD_VALUE, "", "\"unix@%.*s\" must name a socket by its absolute path", STR_ARG(path));
    if (len < 0 || (size_t)len >= sizeof(temporary.sun_path))
        return err_set(e, ERR_BAD_VALUE, "",
                       "socket path %.*s is too long: with \".\" and a process id it must stay below %zu bytes",
                       STR_ARG(path), sizeof(temporary.sun_path));
    memcpy(name, path.p, path.len);
    name[path.len] = '\0';
    fd = stream_socket(AF_UNIX);
    if (fd < 0)
        return io_failed("no socket for", path, e);
    if (!bind_and_rename(fd, &temporary, name, path, e)) {
        close(fd);
        return false;
    }
    *out_fd = fd;
    return true;
}

union any_sockaddr {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
};

static socklen_t fill_sockaddr(const struct addr *a, uint16_t port, union any_sockaddr *out)
{
    memset(out, 0, sizeof(*out));
    if (addr_is_v4(a)) {
        out->v4.sin_family = AF_INET;
        out->v4.sin_port = htons(port);
        memcpy(&out->v4.sin_addr, a->b + 12, 4);
        return sizeof(out->v4);
    }
    out->v6.sin6_family = AF_INET6;
    out->v6.sin6_port = htons(port);
    memcpy(&out->v6.sin6_addr, a->b, 16);
    return sizeof(out->v6);
}

static bool listen_tcp(struct str at, int *out_fd, struct err *e)
{
    const int on = 1;
    struct listen_addr where;
    struct addr address;
    union any_sockaddr name;
    socklen_t name_len;
    int fd;

    if (!parse_listen(at, &where, "", e))
        return false;
    if (!addr_parse(where.host, &address))
        return err_set(e, ERR_BAD_VALUE, "",
                       "\"tcp@%.*s\" must begin with a numeric address, as in \"tcp@127.0.0.1:9000\"", STR_ARG(at));
    name_len = fill_sockaddr(&address, where.port, &name);
    fd = stream_socket(name.any.sa_family);
    if (fd < 0)
        return io_failed("no socket for", at, e);
    if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) != 0 || bind(fd, &name.any, name_len) != 0 ||
        listen(fd, BACKLOG) != 0) {
        (void)io_failed("cannot listen on", at, e);
        close(fd);
        return false;
    }
    *out_fd = fd;
    return true;
}

bool spop_listen(struct str at, int *out_fd, struct err *e)
{
    const struct str unix_prefix = STR("unix@"), tcp_prefix = STR("tcp@");

    if (str_starts(at, unix_prefix))
        return listen_unix(str_sub(at, unix_prefix.len, at.len), out_fd, e);
    if (str_starts(at, tcp_prefix))
        return listen_tcp(str_sub(at, tcp_prefix.len, at.len), out_fd, e);
    return err_set(e, ERR_BAD_VALUE, "", "\"%.*s\" must be \"unix@/path\" or \"tcp@address:port\"", STR_ARG(at));
}
