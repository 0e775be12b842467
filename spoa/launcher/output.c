/* Standard output of an edge: a ring of whole lines between whoever writes a line and the one thread that may block. */
#include "spoa/launcher/output.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/line_sink.h"

enum { WRITE_MAX_BYTES = 64 * 1024, NOTE_MAX_BYTES = 320 };

struct output {
    struct line_sink sink; /* the thread's own; so is n_lost */
    int stderr_fd;         /* what standard error was before the launcher's own lines were sent through here */
    uint64_t n_lost;       /* lines that could not be written since the last note */
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed; /* lines came in, or the end was asked for, or has come */
    char *ring;
    size_t cap, head, len; /* head: oldest byte */
    uint64_t n_dropped;    /* lines since the last note */
    bool stopping, ended;
    bool abandoned; /* nobody waits any more: the thread lets go of everything itself */
};

static void ring_put(struct output *o, struct str bytes)
{
    const size_t at = (o->head + o->len) % o->cap;
    const size_t first = bytes.len < o->cap - at ? bytes.len : o->cap - at;

    if (first > 0)
        memcpy(o->ring + at, bytes.p, first);
    if (first < bytes.len)
        memcpy(o->ring, bytes.p + first, bytes.len - first);
    o->len += bytes.len;
}

static struct str render_note(char *note, uint64_t n_lines, const char *why)
{
    char now[25];
    struct buf b;

    clock_format_utc(clock_real_ms(&clock_system), now);
    buf_init(&b, note, NOTE_MAX_BYTES);
    buf_printf(&b,
               "{\"time\":\"%s\",\"level\":\"warn\",\"component\":\"launcher\",\"event\":\"output_dropped\",\"lines\":%ju,"
               "\"message\":\"%ju lines were dropped because standard output %s\"}\n",
               now, (uintmax_t)n_lines, (uintmax_t)n_lines, why);
    return buf_str(&b);
}

/* The buffer is half empty again: say what is missing at the place where it is missing. */
static void note_dropped(struct output *o)
{
    char note[NOTE_MAX_BYTES];

    ring_put(o, render_note(note, o->n_dropped, "was read too slowly"));
    o->n_dropped = 0;
}

/* Writes the note that is owed for lines that could not be written. False: it can't be written either. */
static bool note_lost(struct output *o)
{
    char note[NOTE_MAX_BYTES];

    if (o->n_lost == 0)
        return true;
    if (!line_sink_insert(&o->sink, render_note(note, o->n_lost, "could not be written")))
        return false;
    o->n_lost = 0;
    return true;
}

/* Standard output can't say that it fails. When standard error can't either, there is nobody left to tell. */
static void say_failing(const struct output *o)
{
    char now[25], line[NOTE_MAX_BYTES];
    struct buf b;

    clock_format_utc(clock_real_ms(&clock_system), now);
    buf_init(&b, line, sizeof(line));
    buf_printf(&b,
               "{\"time\":\"%s\",\"level\":\"error\",\"component\":\"launcher\",\"event\":\"output_failed\",\"message\":"
               "\"standard output cannot be written: %s; lines are lost, and counted, until it works again\"}\n",
               now, strerror(o->sink.error));
    (void)!write(o->stderr_fd, b.p, b.len);
}

/* Whatever of it the descriptor takes; the edge goes on. After a failure nothing comes before the note about it. */
static void write_out(struct output *o, struct str bytes)
{
    const bool was_failing = o->sink.error != 0;

    o->n_lost += note_lost(o) ? line_sink_write(&o->sink, bytes) : line_sink_drop(&o->sink, bytes);
    if (o->sink.error != 0 && !was_failing)
        say_failing(o);
}

static void destroy(struct output *o)
{
    pthread_cond_destroy(&o->changed);
    pthread_mutex_destroy(&o->lock);
    if (o->sink.fd >= 0)
        close(o->sink.fd);
    if (o->stderr_fd >= 0)
        close(o->stderr_fd);
    free(o->ring);
    free(o);
}

static void *write_lines(void *arg)
{
    struct output *o = arg;
    bool abandoned;

    pthread_mutex_lock(&o->lock);
    for (;;) {
        size_t n;

        while (o->len == 0 && o->n_dropped == 0 && !o->stopping)
            pthread_cond_wait(&o->changed, &o->lock);
        if (o->n_dropped > 0 && o->len <= o->cap / 2)
            note_dropped(o);
        if (o->len == 0 || o->abandoned)
            break;
        n = o->len < o->cap - o->head ? o->len : o->cap - o->head;
        if (n > WRITE_MAX_BYTES)
            n = WRITE_MAX_BYTES;
        /* New lines go behind what is being written, so it may be read without the lock. */
        pthread_mutex_unlock(&o->lock);
        write_out(o, (struct str){o->ring + o->head, n});
        pthread_mutex_lock(&o->lock);
        o->head = (o->head + n) % o->cap;
        o->len -= n;
    }
    /* Whether it works again shows only when it is tried. */
    if (!o->abandoned) {
        pthread_mutex_unlock(&o->lock);
        (void)note_lost(o);
        pthread_mutex_lock(&o->lock);
    }
    o->ended = true;
    abandoned = o->abandoned;
    pthread_cond_broadcast(&o->changed);
    pthread_mutex_unlock(&o->lock);
    if (abandoned)
        destroy(o);
    return NULL;
}

static bool init_locks(struct output *o)
{
    pthread_condattr_t attr;
    bool ok;

    if (pthread_mutex_init(&o->lock, NULL) != 0)
        return false;
    if (pthread_condattr_init(&attr) != 0) {
        pthread_mutex_destroy(&o->lock);
        return false;
    }
    ok = pthread_condattr_setclock(&attr, CLOCK_MONOTONIC) == 0 && pthread_cond_init(&o->changed, &attr) == 0;
    pthread_condattr_destroy(&attr);
    if (!ok)
        pthread_mutex_destroy(&o->lock);
    return ok;
}

/* Signals belong to the main thread's loop. */
static bool start_thread(struct output *o)
{
    sigset_t all, before;
    bool ok;

    sigfillset(&all);
    if (pthread_sigmask(SIG_SETMASK, &all, &before) != 0)
        return false;
    ok = pthread_create(&o->thread, NULL, write_lines, o) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return ok;
}

bool output_start(struct output **out, int fd, size_t buffer_bytes, struct err *e)
{
    struct output *o = calloc(1, sizeof(*o));

    if (o != NULL)
        o->ring = malloc(buffer_bytes);
    if (o == NULL || o->ring == NULL || !init_locks(o)) {
        free(o == NULL ? NULL : o->ring);
        free(o);
        return err_set(e, ERR_NO_MEMORY, "", "no memory for the buffer of standard output");
    }
    o->cap = buffer_bytes;
    o->sink.fd = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    o->stderr_fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    if (o->sink.fd < 0 || o->stderr_fd < 0 || !start_thread(o)) {
        destroy(o);
        return err_set(e, ERR_IO, "", "cannot start the thread that writes standard output");
    }
    *out = o;
    return true;
}

void output_line(struct output *o, struct str line)
{
    pthread_mutex_lock(&o->lock);
    if (o->n_dropped > 0 || line.len + 1 > o->cap - o->len) {
        o->n_dropped++;
    } else {
        ring_put(o, line);
        ring_put(o, STR("\n"));
    }
    pthread_cond_broadcast(&o->changed);
    pthread_mutex_unlock(&o->lock);
}

void output_stop(struct output **out, unsigned patience_ms)
{
    struct output *o = *out;
    uint64_t end_us;
    struct timespec end;
    int waited = 0;
    bool ended;

    if (o == NULL)
        return;
    end_us = clock_mono_us(&clock_system) + (uint64_t)patience_ms * 1000;
    end = (struct timespec){.tv_sec = (time_t)(end_us / 1000000), .tv_nsec = (long)(end_us % 1000000 * 1000)};
    pthread_mutex_lock(&o->lock);
    o->stopping = true;
    pthread_cond_broadcast(&o->changed);
    while (!o->ended && waited == 0)
        waited = pthread_cond_timedwait(&o->changed, &o->lock, &end);
    ended = o->ended;
    o->abandoned = !ended;
    /* A thread that waits in a write for a reader can't be called back. */
    if (!ended)
        pthread_detach(o->thread);
    pthread_mutex_unlock(&o->lock);
    if (ended) {
        pthread_join(o->thread, NULL);
        destroy(o);
    }
    *out = NULL;
}
