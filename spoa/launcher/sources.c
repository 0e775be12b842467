/* The sockets that the launcher and its children write their lines to, read on the launcher's loop. */
#include "spoa/launcher/sources.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/log.h"
#include "spoa/launcher/lines.h"

enum { READ_BYTES = 64 * 1024 };

struct source {
    ev_io readable;
    struct lines lines;
    struct sources *owner;
    struct source *next, **link; /* link: what points here */
};

void sources_init(struct sources *s, struct ev_loop *loop, void (*pass)(void *ctx, struct str line), void *ctx)
{
    *s = (struct sources){.loop = loop, .pass = pass, .ctx = ctx};
}

static void pass_on(void *ctx, struct str line)
{
    const struct source *source = ctx;

    source->owner->pass(source->owner->ctx, line);
}

/* What stands there without an end. The beginning of a JSON line, of a process that was killed in the middle of a write, is left out: no reader could
 * take it. */
static void end_lines(struct lines *l)
{
    if (l->len > 0 && l->p[0] == '{')
        log_event(LOG_LEVEL_WARN, "line_torn", "a process ended in the middle of a line; the %zu bytes that it had written are left out", l->len);
    else
        lines_end(l);
}

static void close_source(struct source *source)
{
    ev_io_stop(source->owner->loop, &source->readable);
    close(source->readable.fd);
    end_lines(&source->lines);
    lines_release(&source->lines);
    *source->link = source->next;
    if (source->next != NULL)
        source->next->link = source->link;
    free(source);
}

/* One read. True when there may be more; the source may be gone after false. */
static bool read_source(struct source *source)
{
    char bytes[READ_BYTES];
    ssize_t n;

    do
        n = read(source->readable.fd, bytes, sizeof(bytes));
    while (n < 0 && errno == EINTR);
    if (n > 0) {
        lines_feed(&source->lines, (struct str){bytes, (size_t)n});
        return true;
    }
    if (n == 0 || errno != EAGAIN)
        close_source(source);
    return false;
}

static void on_readable(struct ev_loop *loop, ev_io *w, int events)
{
    (void)loop;
    (void)events;
    (void)read_source((struct source *)w); /* its first member */
}

bool sources_open(struct sources *s, int *write_fd, struct err *e)
{
    struct source *source = calloc(1, sizeof(*source));
    int fds[2] = {-1, -1};

    if (source == NULL || !lines_init(&source->lines, pass_on, source)) {
        free(source);
        return err_set(e, ERR_NO_MEMORY, "", "no memory for a child's lines");
    }
    /* Not a pipe: HAProxy writes each line at once, without waiting and without a second try, and of one above PIPE_BUF bytes a pipe that is nearly
     * full takes a part. A stream socket of Linux takes up to 32 KiB as a whole or not at all. */
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0 || fcntl(fds[0], F_SETFL, O_NONBLOCK) != 0) {
        (void)err_set(e, ERR_IO, "", "cannot make a socket for a child's lines: %s", strerror(errno));
        for (size_t i = 0; i < 2 && fds[i] >= 0; i++)
            close(fds[i]);
        lines_release(&source->lines);
        free(source);
        return false;
    }
    source->owner = s;
    source->next = s->first;
    source->link = &s->first;
    if (source->next != NULL)
        source->next->link = &source->next;
    s->first = source;
    ev_io_init(&source->readable, on_readable, fds[0], EV_READ);
    ev_io_start(s->loop, &source->readable);
    *write_fd = fds[1];
    return true;
}

void sources_read(struct sources *s)
{
    for (struct source *source = s->first, *next; source != NULL; source = next) {
        next = source->next;
        /* Bounded: a child that writes without end must not hold up the loop. */
        for (int i = 0; i < 16 && read_source(source); i++) {
        }
    }
}

void sources_release(struct sources *s)
{
    sources_read(s);
    while (s->first != NULL)
        close_source(s->first);
}
