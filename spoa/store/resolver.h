/* The feed that turns a host name into addresses: a thread of its own asks the system, workers read the last answer. A name that no longer
 * resolves keeps its last addresses. */
#ifndef SPOA_STORE_RESOLVER_H
#define SPOA_STORE_RESOLVER_H

#include <pthread.h>

#include "common/base/err.h"

enum { RESOLVER_ADDRESSES_MAX = 8, RESOLVER_TEXT_MAX = 46, RESOLVER_PERIOD_MS = 5000, RESOLVER_RETRY_MS = 500 };

/* How a name is looked up: addresses as text into out, 0 when there is none. May block. */
typedef size_t resolver_look_up_fn(const char *host, char out[static RESOLVER_ADDRESSES_MAX][RESOLVER_TEXT_MAX]);
/* The system's answer. */
resolver_look_up_fn resolver_look_up;

struct resolver {
    resolver_look_up_fn *look_up; /* set by init to the system's; may be changed before start */
    char host[256];
    bool is_numeric; /* no thread: the answer is known */
    pthread_mutex_t lock;
    pthread_cond_t wake;
    char addresses[RESOLVER_ADDRESSES_MAX][RESOLVER_TEXT_MAX];
    size_t n_addresses;
    bool stopping, started;
    pthread_t thread;
    uint64_t n_failures; /* lookups that failed; under lock */
};

MUSTUSE bool resolver_init(struct resolver *r, const char *host, struct err *e);
MUSTUSE bool resolver_start(struct resolver *r, struct err *e);
/* The nth address, counted round (a worker moves on with each attempt), as text that connects without any lookup. False: none is known yet.
 * Any thread; short lock, for connects only. */
bool resolver_get(struct resolver *r, size_t nth, char out[static RESOLVER_TEXT_MAX]);
/* How many addresses there are to count round. Any thread; short lock. */
size_t resolver_n(struct resolver *r);
/* Returns once the thread has ended, or after a second without it: a lookup can hang for long, and the process is ending. Then the resolver must
 * stay in memory (it belongs to the process). */
void resolver_stop(struct resolver *r);

#endif
