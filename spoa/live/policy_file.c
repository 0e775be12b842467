/* Loads POLICY_FILE and publishes it to the workers. */
#include "spoa/live/policy_file.h"

#include "common/base/clock.h"
#include "common/base/log.h"

static void log_faults(const char *path, const struct errlist *list, enum log_level level, const char *event)
{
    for (size_t i = 0; i < list->n; i++)
        log_err(level, event, &list->items[i]);
    if (list->n_dropped > 0)
        log_event(level, event, "%s: %zu more", path, list->n_dropped);
}

static void reap(struct policy_file *f)
{
    lease_reap(&f->source);
    atomic_store(&f->n_in_memory, lease_n_published(&f->source));
}

static const char *what_stays(const struct policy_file *f)
{
    return atomic_load(&f->version) != 0 ? "the policy in force stays" : "no policy is in force, every request is refused";
}

/* Takes the policy over, also where it can't be published. */
static bool publish(struct policy_file *f, struct policy *policy, struct errlist *errors)
{
    int64_t version = policy->version;
    struct guard *guard = NULL;
    struct err e;
    err_clear(&e);
    bool ok = f->before(f->ctx, policy, &guard, &e);
    if (ok && !lease_publish(&f->source, f->slots, f->n_slots, policy, guard))
        ok = err_set(&e, ERR_NO_MEMORY, "", "no memory to publish it");
    if (!ok) {
        errlist_add_err(errors, &e);
        guard_free(&guard);
        policy_free(&policy);
        return false;
    }
    atomic_store(&f->version, version);
    reap(f);
    f->published(f->ctx);
    log_event(LOG_LEVEL_INFO, "policy_loaded", "%s: version %lld is in force", f->path, (long long) version);
    return true;
}

/* The first fault; one that is about the file begins with its path, which is nobody's business but the log's. */
static void describe(const struct policy_file *f, const struct errlist *errors, char out[static POLICY_TROUBLE_MAX])
{
    if (errors->n == 0) {
        snprintf(out, POLICY_TROUBLE_MAX, "there was no memory to load it");
        return;
    }
    const struct err *e = &errors->items[0];
    char place[64] = "";
    if (e->line != 0)
        snprintf(place, sizeof place, "line %u, column %u: ", e->line, e->column);
    const bool names_file = str_starts(str_of(e->text), str_of(f->path));
    snprintf(out, POLICY_TROUBLE_MAX, "fault 1 of %zu: %s%s%s%s%s", errors->n + errors->n_dropped, e->path, e->path[0] != '\0' ? ": " : "",
             place, names_file ? "the file" : "", e->text + (names_file ? strlen(f->path) : 0));
}

static void remember(struct policy_file *f, bool ok, const struct errlist *errors)
{
    char text[POLICY_TROUBLE_MAX] = "";
    if (!ok)
        describe(f, errors, text);
    pthread_mutex_lock(&f->lock);
    memcpy(f->trouble, text, sizeof text);
    pthread_mutex_unlock(&f->lock);
}

void policy_file_trouble(struct policy_file *f, char out[static POLICY_TROUBLE_MAX])
{
    pthread_mutex_lock(&f->lock);
    memcpy(out, f->trouble, POLICY_TROUBLE_MAX);
    pthread_mutex_unlock(&f->lock);
}

bool policy_file_load(struct policy_file *f)
{
    struct errlist errors, warnings;
    if (!errlist_init(&errors, 0))
        return false;
    if (!errlist_init(&warnings, 0)) {
        errlist_release(&errors);
        return false;
    }
    struct policy_options options = f->options;
    options.now_ms = (int64_t) clock_real_ms(&clock_system);
    struct policy *policy = NULL;
    bool ok = policy_load(f->path, &options, &policy, &errors, &warnings);
    log_faults(f->path, &warnings, LOG_LEVEL_WARN, "policy_warning");
    ok = ok && publish(f, policy, &errors);
    if (!ok) {
        const size_t n_faults = errors.n + errors.n_dropped;
        log_faults(f->path, &errors, LOG_LEVEL_ERROR, "policy_error");
        log_event(LOG_LEVEL_ERROR, "policy_refused", "%s: %zu fault%s; %s", f->path, n_faults, n_faults == 1 ? "" : "s", what_stays(f));
    }
    remember(f, ok, &errors);
    atomic_fetch_add(ok ? &f->n_loaded : &f->n_refused, 1);
    errlist_release(&errors);
    errlist_release(&warnings);
    return ok;
}

static void on_reload(struct ev_loop *loop, struct ev_async *watcher, int events)
{
    (void) loop;
    (void) events;
    policy_file_load(watcher->data);
}

static void on_reap(struct ev_loop *loop, struct ev_async *watcher, int events)
{
    (void) loop;
    (void) events;
    reap(watcher->data);
}

static void on_stop(struct ev_loop *loop, struct ev_async *watcher, int events)
{
    (void) watcher;
    (void) events;
    ev_break(loop, EVBREAK_ALL);
}

static void released(void *ctx)
{
    struct policy_file *f = ctx;
    ev_async_send(f->loop, &f->reap);
}

static void async_start(struct policy_file *f, struct ev_async *watcher, void (*fn)(struct ev_loop *, struct ev_async *, int))
{
    ev_async_init(watcher, fn);
    watcher->data = f;
    ev_async_start(f->loop, watcher);
}

bool policy_file_init(struct policy_file *f, const char *path, const struct policy_options *options,
                      struct lease_slot *const *slots, size_t n_slots, bool (*before)(void *ctx, const struct policy *policy, struct guard **guard, struct err *e),
                      void (*published)(void *ctx), void *ctx, struct err *e)
{
    memset(f, 0, sizeof *f);
    pthread_mutex_init(&f->lock, NULL);
    f->path = path;
    f->options = *options;
    f->slots = slots;
    f->n_slots = n_slots;
    f->before = before;
    f->published = published;
    f->ctx = ctx;
    f->source = (struct lease_source){.released = released, .ctx = f};
    f->loop = ev_loop_new(EVFLAG_NOENV | EVFLAG_NOSIGMASK);
    if (f->loop == NULL)
        return err_set(e, ERR_IO, "", "cannot create an event loop");
    async_start(f, &f->reload, on_reload);
    async_start(f, &f->reap, on_reap);
    async_start(f, &f->stop, on_stop);
    return true;
}

static void *feed_run(void *arg)
{
    struct policy_file *f = arg;
    ev_run(f->loop, 0);
    return NULL;
}

bool policy_file_start(struct policy_file *f, struct err *e)
{
    int rc = pthread_create(&f->thread, NULL, feed_run, f);
    if (rc != 0)
        return err_set(e, ERR_IO, "", "cannot start the policy feed: %s", strerror(rc));
    pthread_setname_np(f->thread, "edge-policy");
    f->started = true;
    return true;
}

void policy_file_reload(struct policy_file *f)
{
    ev_async_send(f->loop, &f->reload);
}

void policy_file_stop(struct policy_file *f)
{
    if (!f->started)
        return;
    ev_async_send(f->loop, &f->stop);
    pthread_join(f->thread, NULL);
    f->started = false;
}

void policy_file_release(struct policy_file *f)
{
    lease_reap(&f->source);
    ev_loop_destroy(f->loop);
    pthread_mutex_destroy(&f->lock);
}
