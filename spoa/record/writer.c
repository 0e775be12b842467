/* Two buffers: one fills while the other is being written, so a line costs a copy and a short lock. */
#include "spoa/record/writer.h"

#include <stdlib.h>
#include <time.h>

#include "common/base/clock.h"
#include "common/base/log.h"

/* The thread's own; the line about a failure goes to standard error. */
static void write_lines(struct writer *w, struct str lines, size_t n_lines)
{
    const bool was_failing = w->sink.error != 0;
    const size_t n_lost = line_sink_write(&w->sink, lines);
    atomic_fetch_add_explicit(&w->n_lines, n_lines - n_lost, memory_order_relaxed);
    atomic_fetch_add_explicit(&w->n_dropped, n_lost, memory_order_relaxed);
    if (n_lost > 0 && !was_failing)
        log_event(LOG_LEVEL_ERROR, "access_log_failed", "access records cannot be written: %s; they are lost, and counted, until it works again",
                  strerror(w->sink.error));
}

/* Lines that come within this time are written together. */
enum { LINGER_MS = 5 };

/* Called and left with the lock held. Ends early when the writer stops. */
static void linger(struct writer *w)
{
    struct timespec until;
    clock_deadline_in_ms(LINGER_MS, &until);
    while (!w->stopping && pthread_cond_timedwait(&w->stopped, &w->lock, &until) == 0)
        continue;
}

/* Called and left with the lock held. False when nothing was queued. */
static bool write_queued(struct writer *w)
{
    char *full = w->queue;
    const size_t len = w->queued;
    if (len == 0)
        return false;
    w->queue = w->spare;
    w->spare = full;
    w->queued = 0;
    w->n_writing = w->n_queued;
    w->n_queued = 0;
    pthread_mutex_unlock(&w->lock);
    write_lines(w, (struct str){full, len}, w->n_writing);
    pthread_mutex_lock(&w->lock);
    w->n_writing = 0;
    return true;
}

static void *writer_run(void *arg)
{
    struct writer *w = arg;
    pthread_mutex_lock(&w->lock);
    for (;;) {
        while (w->queued == 0 && !w->stopping)
            pthread_cond_wait(&w->filled, &w->lock);
        if (w->queued == 0)
            break;
        /* As long as lines come, none of them has to wake this thread. */
        do
            linger(w);
        while (write_queued(w));
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

bool writer_start(struct writer *w, int fd, struct err *e)
{
    memset(w, 0, sizeof *w);
    w->sink = (struct line_sink){.fd = fd};
    w->queue = calloc(1, WRITER_QUEUE_BYTES);
    w->spare = calloc(1, WRITER_QUEUE_BYTES);
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->filled, NULL);
    pthread_cond_init(&w->stopped, NULL);
    if (w->queue == NULL || w->spare == NULL) {
        writer_stop(w);
        return err_set(e, ERR_NO_MEMORY, "", "no memory for the access log's buffers");
    }
    int rc = pthread_create(&w->thread, NULL, writer_run, w);
    if (rc != 0) {
        writer_stop(w);
        return err_set(e, ERR_IO, "", "cannot start the access log's thread: %s", strerror(rc));
    }
    pthread_setname_np(w->thread, "edge-log");
    w->started = true;
    return true;
}

void writer_put(struct writer *w, struct str line)
{
    pthread_mutex_lock(&w->lock);
    bool fits = line.len < WRITER_QUEUE_BYTES - w->queued;
    if (fits) {
        memcpy(w->queue + w->queued, line.p, line.len);
        w->queue[w->queued + line.len] = '\n';
        if (w->queued == 0)
            pthread_cond_signal(&w->filled);
        w->queued += line.len + 1;
        w->n_queued++;
    }
    pthread_mutex_unlock(&w->lock);
    if (!fits)
        atomic_fetch_add_explicit(&w->n_dropped, 1, memory_order_relaxed);
}

/* Those of the write under way may have been read in part. */
static void say_unread(struct writer *w)
{
    pthread_mutex_lock(&w->lock);
    size_t n_lines = w->n_writing + w->n_queued;
    pthread_mutex_unlock(&w->lock);
    log_event(LOG_LEVEL_ERROR, "access_log_unread", "the reader of the access log does not read: up to %zu lines are lost with the end of this process",
              n_lines);
}

/* False: it is still in a write. */
static bool writer_join(struct writer *w)
{
    struct timespec until;
    pthread_mutex_lock(&w->lock);
    w->stopping = true;
    pthread_cond_signal(&w->filled);
    pthread_cond_signal(&w->stopped);
    pthread_mutex_unlock(&w->lock);
    clock_deadline_in_ms(WRITER_STOP_MS, &until);
    w->started = pthread_timedjoin_np(w->thread, NULL, &until) != 0;
    return !w->started;
}

void writer_stop(struct writer *w)
{
    if (w->started && !writer_join(w)) {
        say_unread(w);
        return;
    }
    pthread_mutex_destroy(&w->lock);
    pthread_cond_destroy(&w->filled);
    pthread_cond_destroy(&w->stopped);
    free(w->queue);
    free(w->spare);
    w->queue = w->spare = NULL;
}
