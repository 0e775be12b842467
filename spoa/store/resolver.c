/* Names to addresses on a thread of its own, because getaddrinfo blocks for as long as the name servers like. */
#include "spoa/store/resolver.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <stdio.h>

#include "common/base/clock.h"

enum { STOP_WAIT_MS = 1000 };

static bool to_text(const struct addrinfo *a, char out[static RESOLVER_TEXT_MAX])
{
    return getnameinfo(a->ai_addr, a->ai_addrlen, out, RESOLVER_TEXT_MAX, NULL, 0, NI_NUMERICHOST) == 0;
}

size_t resolver_look_up(const char *host, char out[static RESOLVER_ADDRESSES_MAX][RESOLVER_TEXT_MAX])
{
    const struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    size_t n = 0;

    if (getaddrinfo(host, NULL, &hints, &found) != 0)
        return 0;
    for (const struct addrinfo *a = found; a != NULL && n < RESOLVER_ADDRESSES_MAX; a = a->ai_next)
        n += to_text(a, out[n]) ? 1 : 0;
    freeaddrinfo(found);
    return n;
}

static bool is_address(const char *host)
{
    struct in6_addr any;

    return inet_pton(AF_INET, host, &any) == 1 || inet_pton(AF_INET6, host, &any) == 1;
}

bool resolver_init(struct resolver *r, const char *host, struct err *e)
{
    const size_t len = strlen(host);

    *r = (struct resolver){.look_up = resolver_look_up};
    if (len == 0 || len >= sizeof(r->host))
        return err_set(e, ERR_BAD_VALUE, "", "a host name has 1 to %zu bytes", sizeof(r->host) - 1);
    memcpy(r->host, host, len + 1);
    if (pthread_mutex_init(&r->lock, NULL) != 0)
        return err_set(e, ERR_NO_MEMORY, "", "out of memory for the resolver");
    if (pthread_cond_init(&r->wake, NULL) != 0) {
        pthread_mutex_destroy(&r->lock);
        return err_set(e, ERR_NO_MEMORY, "", "out of memory for the resolver");
    }
    r->is_numeric = is_address(host);
    if (r->is_numeric) {
        (void)snprintf(r->addresses[0], RESOLVER_TEXT_MAX, "%s", host);
        r->n_addresses = 1;
    }
    return true;
}

static void *resolve(void *ctx)
{
    struct resolver *r = ctx;
    char found[RESOLVER_ADDRESSES_MAX][RESOLVER_TEXT_MAX];
    struct timespec next;
    size_t n;

    pthread_mutex_lock(&r->lock);
    while (!r->stopping) {
        pthread_mutex_unlock(&r->lock);
        n = r->look_up(r->host, found);
        pthread_mutex_lock(&r->lock);
        if (n > 0) {
            memcpy(r->addresses, found, n * sizeof(found[0]));
            r->n_addresses = n;
        } else {
            r->n_failures++;
        }
        clock_deadline_in_ms(n > 0 ? RESOLVER_PERIOD_MS : RESOLVER_RETRY_MS, &next);
        if (!r->stopping)
            (void)pthread_cond_timedwait(&r->wake, &r->lock, &next);
    }
    pthread_mutex_unlock(&r->lock);
    return NULL;
}

bool resolver_start(struct resolver *r, struct err *e)
{
    if (r->is_numeric || r->started)
        return true;
    if (pthread_create(&r->thread, NULL, resolve, r) != 0)
        return err_set(e, ERR_NO_MEMORY, "", "the system refuses a thread for the resolver");
    r->started = true;
    return true;
}

bool resolver_get(struct resolver *r, size_t nth, char out[static RESOLVER_TEXT_MAX])
{
    bool known;

    pthread_mutex_lock(&r->lock);
    known = r->n_addresses > 0;
    if (known)
        memcpy(out, r->addresses[nth % r->n_addresses], RESOLVER_TEXT_MAX);
    pthread_mutex_unlock(&r->lock);
    return known;
}

size_t resolver_n(struct resolver *r)
{
    pthread_mutex_lock(&r->lock);
    size_t n = r->n_addresses;
    pthread_mutex_unlock(&r->lock);
    return n;
}

void resolver_stop(struct resolver *r)
{
    struct timespec deadline;

    if (!r->started)
        return;
    pthread_mutex_lock(&r->lock);
    r->stopping = true;
    pthread_cond_signal(&r->wake);
    pthread_mutex_unlock(&r->lock);
    clock_deadline_in_ms(STOP_WAIT_MS, &deadline);
    if (pthread_timedjoin_np(r->thread, NULL, &deadline) != 0)
        pthread_detach(r->thread);
    r->started = false;
}
