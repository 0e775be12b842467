/* Standard output of an edge: lines go into a bounded buffer, one thread writes them. */
#ifndef SPOA_LAUNCHER_OUTPUT_H
#define SPOA_LAUNCHER_OUTPUT_H

#include "common/base/err.h"

struct output;

enum { OUTPUT_BUFFER_BYTES = 4 * 1024 * 1024 };

/* Starts the thread, which writes to a duplicate of fd and may block in it: that is somebody else's open file, shared with
 * who knows whom, so it can't be made non-blocking, and poll says "writable" to every writer of a pipe that has room for one.
 * When writing fails, lines are lost until it works again: their number is written first then, and the failure is said once on what
 * is standard error now. buffer_bytes: at least 4,096. */
MUSTUSE bool output_start(struct output **out, int fd, size_t buffer_bytes, struct err *e);
/* Takes line, which has no newline; never blocks. What does not fit is dropped and counted, and so is everything after it
 * until half of the buffer is written; then one line says how many. Any thread. */
void output_line(struct output *o, struct str line);
/* Waits up to patience_ms for the buffer to be written, then gives up on the rest and leaves the thread, should
 * it wait for its reader, to itself. NULL is fine. */
void output_stop(struct output **o, unsigned patience_ms);

#endif
