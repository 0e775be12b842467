/* Writing lines, whatever part of them the descriptor takes. */
#include "common/base/line_sink.h"

#include <errno.h>
#include <poll.h>
#include <unistd.h>

/* Takes off bytes what was written. False, with s->error set, when the descriptor fails. */
static bool write_all(struct line_sink *s, struct str *bytes)
{
    while (bytes->len > 0) {
        const ssize_t n = write(s->fd, bytes->p, bytes->len);

        if (n > 0) {
            s->is_inside = bytes->p[n - 1] != '\n';
            *bytes = str_sub(*bytes, (size_t)n, bytes->len);
        } else if (n < 0 && errno == EAGAIN) {
            struct pollfd ready = {.fd = s->fd, .events = POLLOUT};

            /* Another holder of this open file made it non-blocking. */
            (void)poll(&ready, 1, -1);
        } else if (n == 0 || errno != EINTR) {
            s->error = n == 0 ? EIO : errno;
            return false;
        }
    }
    s->error = 0;
    return true;
}

/* Ends the piece of a lost line that came out. */
static bool mend(struct line_sink *s)
{
    struct str newline = STR("\n");

    s->is_torn = s->is_torn && !write_all(s, &newline);
    return !s->is_torn;
}

size_t line_sink_drop(struct line_sink *s, struct str bytes)
{
    size_t n_lines = 0;

    if (bytes.len == 0)
        return 0;
    for (size_t i = 0; i < bytes.len; i++)
        n_lines += bytes.p[i] == '\n';
    n_lines += bytes.p[bytes.len - 1] != '\n';
    if (s->is_skipping)
        n_lines--; /* counted when its beginning was lost */
    s->is_torn = s->is_torn || s->is_inside;
    s->is_inside = false;
    s->is_skipping = bytes.p[bytes.len - 1] != '\n';
    return n_lines;
}

size_t line_sink_write(struct line_sink *s, struct str bytes)
{
    if (s->is_skipping) {
        const size_t end = str_find_byte(bytes, '\n');

        if (end == SIZE_MAX)
            return 0;
        bytes = str_sub(bytes, end + 1, bytes.len);
        s->is_skipping = false;
    }
    if (bytes.len == 0 || (mend(s) && write_all(s, &bytes)))
        return 0;
    return line_sink_drop(s, bytes);
}

bool line_sink_insert(struct line_sink *s, struct str line)
{
    if (mend(s) && write_all(s, &line))
        return true;
    s->is_torn = s->is_torn || s->is_inside;
    s->is_inside = false;
    return false;
}
