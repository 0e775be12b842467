/* The internal HTTP listener: our own bound socket, libmicrohttpd's thread behind it, a table of fixed paths. */
#include "common/base/httpd.h"

#include <errno.h>
#include <microhttpd.h>
#include <netdb.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

enum { MAX_CONNECTIONS = 32, IDLE_S = 10, CONNECTION_MEMORY_BYTES = 32 * 1024, BACKLOG = 64 };

struct httpd {
    struct MHD_Daemon *daemon;
    const struct httpd_route *routes;
    void *ctx;
    uint16_t port;
};

static struct MHD_Response *response_new(struct httpd_reply *reply)
{
    struct MHD_Response *response = MHD_create_response_from_buffer(
        reply->body_len, reply->body, reply->body == NULL ? MHD_RESPMEM_PERSISTENT : MHD_RESPMEM_MUST_FREE);

    if (response == NULL)
        free(reply->body);
    return response;
}

static struct MHD_Response *text_response(struct httpd_reply *reply, int status, const char *text)
{
    reply->status = status;
    reply->content_type = "text/plain; charset=utf-8";
    /* The text is a literal that libmicrohttpd only reads; its prototype lacks the const. */
    return MHD_create_response_from_buffer(strlen(text), (void *)(uintptr_t)text, MHD_RESPMEM_PERSISTENT);
}

static struct MHD_Response *answer(const struct httpd *h, const char *method, const char *url,
                                   struct httpd_reply *reply)
{
    if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 && strcmp(method, MHD_HTTP_METHOD_HEAD) != 0)
        return text_response(reply, MHD_HTTP_METHOD_NOT_ALLOWED, "only GET and HEAD are served here\n");
    for (const struct httpd_route *route = h->routes; route->path != NULL; route++)
        if (strcmp(url, route->path) == 0) {
            route->handle(h->ctx, reply);
            return response_new(reply);
        }
    return text_response(reply, MHD_HTTP_NOT_FOUND, "there is no such page here\n");
}

/* Called once the headers are read. Answering right then, before any body, makes libmicrohttpd leave the body unread. */
static enum MHD_Result on_request(void *cls, struct MHD_Connection *connection, const char *url, const char *method,
                                  const char *version, const char *upload_data, size_t *upload_data_size,
                                  void **request_ctx)
{
    struct httpd_reply reply = {.status = MHD_HTTP_INTERNAL_SERVER_ERROR, .content_type = "text/plain; charset=utf-8"};
    struct MHD_Response *response = answer(cls, method, url, &reply);
    enum MHD_Result result;

    (void)version, (void)upload_data, (void)upload_data_size, (void)request_ctx;
    if (response == NULL)
        return MHD_NO;
    result = MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, reply.content_type) == MHD_YES &&
                     MHD_add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store") == MHD_YES &&
                     MHD_add_response_header(response, "X-Content-Type-Options", "nosniff") == MHD_YES &&
                     MHD_add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close") == MHD_YES &&
                     (reply.status != MHD_HTTP_METHOD_NOT_ALLOWED ||
                      MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, "GET, HEAD") == MHD_YES)
                 ? MHD_queue_response(connection, (unsigned)reply.status, response)
                 : MHD_NO;
    MHD_destroy_response(response);
    return result;
}

/* A listening socket, or -1 with errno. All addresses: one IPv6 socket that serves IPv4 too. */
static int listen_on(const struct addrinfo *at, bool all)
{
    int on = 1, v6_only = !all, saved;
    int fd = socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0)
        return -1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    /* While a daemon is exchanged for a new one, both listen. */
    setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on));
    if (at->ai_family == AF_INET6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &v6_only, sizeof(v6_only));
    if (bind(fd, at->ai_addr, at->ai_addrlen) == 0 && listen(fd, BACKLOG) == 0)
        return fd;
    saved = errno;
    close(fd);
    errno = saved;
    return -1;
}

static int open_socket(struct listen_addr at, struct err *e)
{
    const struct addrinfo hints = {
        .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
    const bool all = at.host.len == 0;
    char host[256], port[8];
    struct addrinfo *list;
    int why, fd = -1;
    struct buf b;

    buf_init(&b, port, sizeof(port) - 1);
    buf_put_u64(&b, at.port);
    port[b.len] = '\0';
    if (at.host.len >= sizeof(host)) {
        err_set(e, ERR_SETTING, "", "the host to listen on is longer than a name can be");
        return -1;
    }
    if (!all)
        memcpy(host, at.host.p, at.host.len);
    host[at.host.len] = '\0';
    why = getaddrinfo(all ? NULL : host, port, &hints, &list);
    if (why != 0) {
        err_set(e, ERR_IO, "", "cannot listen on %s:%s: %s", host, port, gai_strerror(why));
        return -1;
    }
    /* For all addresses IPv6 goes first, as it serves both; a kernel without it leaves IPv4. */
    for (const struct addrinfo *item = list; all && item != NULL && fd < 0; item = item->ai_next)
        if (item->ai_family == AF_INET6)
            fd = listen_on(item, all);
    for (const struct addrinfo *item = list; item != NULL && fd < 0; item = item->ai_next)
        fd = listen_on(item, all);
    if (fd < 0)
        err_set(e, ERR_IO, "", "cannot listen on %s:%s: %s", host, port, strerror(errno));
    freeaddrinfo(list);
    return fd;
}

static uint16_t port_of(int fd)
{
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } addr = {.any.sa_family = AF_UNSPEC};
    socklen_t len = sizeof(addr);

    getsockname(fd, &addr.any, &len);
    return ntohs(addr.any.sa_family == AF_INET6 ? addr.v6.sin6_port : addr.v4.sin_port);
}

/* The daemon's signals are for its main thread: libmicrohttpd's thread inherits a mask that blocks all. MHD_USE_ITC: a stop
 * reaches it also while its connections are used up and the listening socket is not watched. */
static struct MHD_Daemon *start(struct httpd *h, int fd)
{
    struct MHD_Daemon *daemon;
    sigset_t all, before;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    daemon = MHD_start_daemon(MHD_USE_AUTO | MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_ITC, 0, NULL, NULL, on_request,
                              h, MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_LIMIT, (unsigned)MAX_CONNECTIONS,
                              MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)IDLE_S, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
                              (size_t)CONNECTION_MEMORY_BYTES, MHD_OPTION_END);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return daemon;
}

bool httpd_new(struct httpd **out, struct listen_addr at, const struct httpd_route *routes, void *ctx, struct err *e)
{
    struct httpd *h = calloc(1, sizeof(*h));
    int fd;

    if (h == NULL)
        return err_set(e, ERR_NO_MEMORY, "", "no memory for a listener");
    *h = (struct httpd){.routes = routes, .ctx = ctx};
    fd = open_socket(at, e);
    if (fd < 0) {
        free(h);
        return false;
    }
    h->port = port_of(fd);
    h->daemon = start(h, fd);
    if (h->daemon == NULL) {
        /* libmicrohttpd may have closed fd or not: closing it here could hit another file. */
        free(h);
        return err_set(e, ERR_IO, "", "cannot start the internal HTTP listener: %s", strerror(errno));
    }
    *out = h;
    return true;
}

uint16_t httpd_port(const struct httpd *h)
{
    return h->port;
}

void httpd_free(struct httpd **h)
{
    if (*h == NULL)
        return;
    MHD_stop_daemon((*h)->daemon);
    free(*h);
    *h = NULL;
}
