/* The loop of a worker and the mailbox that other threads reach it by. */
#include "spoa/worker.h"

#include <unistd.h>

#include "common/base/clock.h"

static enum spop_status availability(void *ctx)
{
    const struct worker *w = ctx;
    return w->requests.lease_slot.current == NULL ? SPOP_STATUS_RESOURCE : SPOP_STATUS_NORMAL;
}

static bool leaving(void *ctx)
{
    const struct worker *w = ctx;
    return atomic_load_explicit(&w->draining, memory_order_relaxed);
}

static void adopt_fds(struct worker *w)
{
    int fds[WORKER_FDS_MAX];
    pthread_mutex_lock(&w->fds_lock);
    size_t n = w->n_fds;
    memcpy(fds, w->fds, n * sizeof fds[0]);
    w->n_fds = 0;
    pthread_mutex_unlock(&w->fds_lock);
    for (size_t i = 0; i < n; i++)
        spop_server_adopt(&w->server, fds[i]);
}

static void on_wake(struct ev_loop *loop, struct ev_async *watcher, int events)
{
    (void) loop;
    (void) events;
    struct worker *w = watcher->data;
    lease_refresh(&w->requests.lease_slot);
    adopt_fds(w);
    if (atomic_load(&w->stopping))
        spop_server_stop(&w->server);
}

static void *worker_run(void *arg)
{
    struct worker *w = arg;
    while (!atomic_load(&w->stopping) || !spop_server_idle(&w->server))
        ev_run(w->loop, EVRUN_ONCE);
    return NULL;
}

bool worker_init(struct worker *w, const struct request_settings *settings, struct valkey_node *node, size_t peers_max, struct err *e)
{
    memset(w, 0, sizeof *w);
    w->loop = ev_loop_new(EVFLAG_NOENV | EVFLAG_NOSIGMASK);
    if (w->loop == NULL)
        return err_set(e, ERR_IO, "", "cannot create an event loop");
    pthread_mutex_init(&w->fds_lock, NULL);
    request_context_init(&w->requests, settings);
    const struct spop_handler handler = {.notify = request_notify, .availability = availability, .leaving = leaving, .ctx = w};
    spop_server_init(&w->server, w->loop, &handler, &w->spop_counters, peers_max);
    ev_async_init(&w->wake, on_wake);
    w->wake.data = w;
    ev_async_start(w->loop, &w->wake);
    return node == NULL || valkey_new(&w->requests.valkey, w->loop, node, settings->clock, &w->valkey_counters, e);
}

bool worker_start(struct worker *w, struct err *e)
{
    int rc = pthread_create(&w->thread, NULL, worker_run, w);
    if (rc != 0)
        return err_set(e, ERR_IO, "", "cannot start a worker thread: %s", strerror(rc));
    pthread_setname_np(w->thread, "edge-worker");
    w->started = true;
    return true;
}

void worker_give(struct worker *w, int fd)
{
    pthread_mutex_lock(&w->fds_lock);
    bool taken = w->n_fds < WORKER_FDS_MAX;
    if (taken)
        w->fds[w->n_fds++] = fd;
    pthread_mutex_unlock(&w->fds_lock);
    if (taken) {
        ev_async_send(w->loop, &w->wake);
    } else {
        atomic_fetch_add_explicit(&w->spop_counters.n_refused, 1, memory_order_relaxed);
        close(fd);
    }
}

void worker_wake(struct worker *w)
{
    ev_async_send(w->loop, &w->wake);
}

void worker_drain(struct worker *w)
{
    atomic_store(&w->draining, true);
}

void worker_stop(struct worker *w)
{
    atomic_store(&w->stopping, true);
    ev_async_send(w->loop, &w->wake);
}

bool worker_join(struct worker *w, uint64_t wait_ms)
{
    if (!w->started)
        return true;
    struct timespec until;
    clock_deadline_in_ms(wait_ms, &until);
    w->started = pthread_timedjoin_np(w->thread, NULL, &until) != 0;
    return !w->started;
}

void worker_release(struct worker *w)
{
    adopt_fds(w);
    /* Requests that still wait for Valkey are answered into the void: nobody asks any more. */
    spop_server_release(&w->server);
    valkey_free(&w->requests.valkey);
    request_context_release(&w->requests);
    ev_async_stop(w->loop, &w->wake);
    ev_loop_destroy(w->loop);
    pthread_mutex_destroy(&w->fds_lock);
}
