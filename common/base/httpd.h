/* The internal HTTP listener of a daemon: a few fixed GET paths on a private address (libmicrohttpd, its own thread). */
#ifndef COMMON_BASE_HTTPD_H
#define COMMON_BASE_HTTPD_H

#include "common/base/err.h"
#include "common/base/parse.h"

struct httpd;

/* What a handler answers: body is malloc'd and owned by httpd from then on. As handed to the handler it is an empty 500,
 * which one that leaves it alone thus answers. */
struct httpd_reply {
    int status;
    const char *content_type;
    char *body;
    size_t body_len;
};

/* Called on the listener's thread; may block briefly. */
struct httpd_route {
    const char *path;
    void (*handle)(void *ctx, struct httpd_reply *reply);
};

/* routes end with a NULL path and must outlive the listener. Other paths get 404, other methods 405 (HEAD works as GET).
 * At most 32 connections, 10 s idle, one request a connection (a body is never read); every answer is no-store.
 * host empty = all addresses; port 0 = any free one; of a name's addresses the first that can be bound is taken. A port
 * may be shared with another listener of this kind of the same user: a new daemon takes over from an old one. */
MUSTUSE bool httpd_new(struct httpd **out, struct listen_addr at, const struct httpd_route *routes, void *ctx,
                       struct err *e);
uint16_t httpd_port(const struct httpd *h);
void httpd_free(struct httpd **h);

#endif
