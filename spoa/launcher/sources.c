/* The pipes that the launcher and its children write their lines to, read on the launcher's loop. */
#include "spoa/launcher/sources.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

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

static void close_source(struct source *source)
{
    ev_io_stop(source->owner->loop, &source->readable);
    close(source->readable.fd);
    lines_end(&source->lines);
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
    int fds[2];

    if (source == NULL || !lines_init(&source->lines, pass_on, source)) {
        free(source);
        return err_set(e, ERR_NO_MEMORY, "", "no memory for a pipe's lines");
    }
    if (pipe2(fds, O_CLOEXEC) != 0 || fcntl(fds[0], F_SETFL, O_NONBLOCK) != 0) {
        (void)err_set(e, ERR_IO, "", "cannot make a pipe: %s", strerror(errno));
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
