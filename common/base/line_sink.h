/* Lines written to a descriptor that may fail: counts those that did not come out whole, and goes on at the start of a line. */
#ifndef COMMON_BASE_LINE_SINK_H
#define COMMON_BASE_LINE_SINK_H

#include "common/base/str.h"

/* {.fd = fd} begins one; fd stays the caller's. One thread at a time. */
struct line_sink {
    int fd;
    int error; /* errno of the last write, 0 when it worked */
    /* Where it stands: inside a line that is fine so far; behind a piece of a lost one, which still needs its end; in lines handed
     * over whose beginning is lost, so that the rest of it is, too. */
    bool is_inside, is_torn, is_skipping;
};

/* Writes bytes, which may begin and end anywhere in a line; blocks as the descriptor does, and where it does not, too. Returns how many
 * lines were lost: those that begin or go on in what could not be written. The rest of the last of them may come with a later call;
 * it is dropped then and not counted again. */
MUSTUSE size_t line_sink_write(struct line_sink *s, struct str bytes);
/* Loses bytes without an attempt, as if writing them had failed. */
MUSTUSE size_t line_sink_drop(struct line_sink *s, struct str bytes);
/* Writes a whole line (with its newline) before whatever comes next; only where the last write failed, or at the start of a line.
 * False when it did not come out whole. */
MUSTUSE bool line_sink_insert(struct line_sink *s, struct str line);

#endif
