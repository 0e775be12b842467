/* Writes lines to a descriptor from a thread of its own; when the reader is slow or writing fails, lines are dropped and counted. */
#ifndef SPOA_RECORD_WRITER_H
#define SPOA_RECORD_WRITER_H

#include <pthread.h>
#include <stdatomic.h>

#include "common/base/err.h"
#include "common/base/line_sink.h"

enum {
    WRITER_QUEUE_BYTES = 4 * 1024 * 1024,
    WRITER_STOP_MS = 2000, /* for the last lines */
};

struct writer {
    struct line_sink sink; /* the thread's own */
    pthread_t thread;
    bool started;
    pthread_mutex_t lock;
    pthread_cond_t filled, stopped;
    char *queue, *spare; /* filled by writer_put; swapped with what the thread is writing */
    size_t queued;       /* bytes in queue */
    size_t n_queued, n_writing; /* lines in queue; lines in spare that the thread has not written, or not all of them */
    bool stopping;
    /* Neither ever goes down. */
    _Atomic uint64_t n_lines;   /* written */
    _Atomic uint64_t n_dropped; /* not taken, or lost */
};

/* fd stays the caller's. When writing begins to fail, one line says so on standard error. */
MUSTUSE bool writer_start(struct writer *w, int fd, struct err *e);
/* line without its newline. Any thread; never blocks on the reader. */
void writer_put(struct writer *w, struct str line);
/* Writes what is queued, or loses it where that fails, then ends the thread. Where the reader does not read within WRITER_STOP_MS, one line tells how
 * much of it is lost, the thread stays in its write, and w must stay where it is for the rest of the process; another call tries again. */
void writer_stop(struct writer *w);

#endif
