/* The sockets that the launcher and its children write their lines to, read on the launcher's loop. */
#ifndef SPOA_LAUNCHER_SOURCES_H
#define SPOA_LAUNCHER_SOURCES_H

#include <ev.h>

#include "common/base/err.h"

struct source;

/* Main thread only. */
struct sources {
    struct ev_loop *loop;
    void (*pass)(void *ctx, struct str line);
    void *ctx;
    struct source *first;
};

/* pass: gets each line, without its newline. */
void sources_init(struct sources *s, struct ev_loop *loop, void (*pass)(void *ctx, struct str line), void *ctx);
/* A new socket. *write_fd, close-on-exec, is the caller's: it goes to a child as standard output and error and is closed then. Made non-blocking it takes
 * a write of up to 32 KiB as a whole or not at all. The source lives until every writer has closed its end; what has no newline then is a line, too, unless it
 * begins with '{': that is a torn one, and one line on standard error says so. */
MUSTUSE bool sources_open(struct sources *s, int *write_fd, struct err *e);
/* Passes on what has been written so far, so that a child's last words stand before what is said about its end. */
void sources_read(struct sources *s);
/* sources_read, then closes all. */
void sources_release(struct sources *s);

#endif
