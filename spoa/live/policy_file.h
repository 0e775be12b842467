/* The policy feed of POLICY_FILE: compiles the file on a thread of its own, at start and on request, and publishes what is valid. */
#ifndef SPOA_LIVE_POLICY_FILE_H
#define SPOA_LIVE_POLICY_FILE_H

#include <ev.h>
#include <pthread.h>

#include "spoa/live/lease.h"

enum { POLICY_TROUBLE_MAX = ERR_PATH_MAX + ERR_TEXT_MAX + 128 };

struct policy_file {
    const char *path;
    struct policy_options options;
    struct lease_slot *const *slots; /* one a worker */
    size_t n_slots;
    bool (*before)(void *ctx, const struct policy *policy, struct guard **guard, struct err *e);
    void (*published)(void *ctx);                          /* wake the workers */
    void *ctx;

    struct lease_source source;
    struct ev_loop *loop;
    struct ev_async reload, reap, stop;
    pthread_t thread;
    bool started;

    pthread_mutex_t lock;
    char trouble[POLICY_TROUBLE_MAX]; /* under the lock */

    /* Read by any thread. */
    _Atomic int64_t version; /* of the published policy; 0 = none yet */
    _Atomic uint64_t n_loaded, n_refused;
    _Atomic uint64_t n_in_memory; /* the one in force and older ones that requests still hold */
};

/* path, slots and the deployment of options must outlive the feed; the time of options is that of each load. before and published are called
 * with ctx, on whichever thread loads. before: a policy is about to be published, make its guard (which the feed takes over) and room for its state; false,
 * and nothing has changed: the policy is refused for what e says. */
MUSTUSE bool policy_file_init(struct policy_file *f, const char *path, const struct policy_options *options,
                              struct lease_slot *const *slots, size_t n_slots, bool (*before)(void *ctx, const struct policy *policy, struct guard **guard, struct err *e),
                              void (*published)(void *ctx), void *ctx, struct err *e);
/* Loads once on the caller's thread (faults are logged; false when the file was refused), then starts the thread. */
bool policy_file_load(struct policy_file *f);
MUSTUSE bool policy_file_start(struct policy_file *f, struct err *e);
/* Any thread; returns at once. A file with faults is refused, each fault is logged and the policy in force stays. */
void policy_file_reload(struct policy_file *f);
/* Any thread: why the file was refused when it was read last, "" when it was not. Names no path of this machine. */
void policy_file_trouble(struct policy_file *f, char out[static POLICY_TROUBLE_MAX]);
/* Ends the thread; the workers must have released their slots by the time release is called. */
void policy_file_stop(struct policy_file *f);
void policy_file_release(struct policy_file *f);

#endif
