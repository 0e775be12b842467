/* The resolver: addresses that need no look-up, answers of the look-up thread, names that stop resolving, and its end. */
#include <CUnit/CUnit.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>

#include "spoa/store/resolver.h"

/* What the name servers of a test say. */
static struct {
    sem_t asked, answer; /* a look-up has begun; it may go on */
    _Atomic int n;       /* addresses it finds */
} names;

static size_t look_up(const char *host, char out[static RESOLVER_ADDRESSES_MAX][RESOLVER_TEXT_MAX])
{
    const int n = atomic_load(&names.n);

    CU_ASSERT_STRING_EQUAL(host, "valkey.example");
    sem_post(&names.asked);
    while (sem_wait(&names.answer) != 0)
        continue;
    for (int i = 0; i < n; i++)
        snprintf(out[i], RESOLVER_TEXT_MAX, "192.0.2.%d", n * 10 + i);
    return (size_t)n;
}

static void begin(struct resolver *r, int n)
{
    struct err e = {0};

    CU_ASSERT_EQUAL_FATAL(sem_init(&names.asked, 0, 0), 0);
    CU_ASSERT_EQUAL_FATAL(sem_init(&names.answer, 0, 0), 0);
    atomic_store(&names.n, n);
    CU_ASSERT_TRUE_FATAL(resolver_init(r, "valkey.example", &e));
    r->look_up = look_up;
    CU_ASSERT_TRUE_FATAL(resolver_start(r, &e));
}

static void wait_for_question(void)
{
    while (sem_wait(&names.asked) != 0)
        continue;
}

/* The thread waits for its period only once it has kept the answer. */
static void hurry(struct resolver *r)
{
    pthread_mutex_lock(&r->lock);
    pthread_cond_signal(&r->wake);
    pthread_mutex_unlock(&r->lock);
}

static void numeric_needs_no_thread(void)
{
    static const char *const hosts[] = {"127.0.0.1", "::1", "2001:db8::1"};
    char address[RESOLVER_TEXT_MAX];
    struct resolver r;
    struct err e = {0};

    for (size_t i = 0; i < 3; i++) {
        CU_ASSERT_TRUE_FATAL(resolver_init(&r, hosts[i], &e));
        CU_ASSERT_TRUE(r.is_numeric);
        CU_ASSERT_TRUE(resolver_start(&r, &e));
        CU_ASSERT_FALSE(r.started);
        CU_ASSERT_TRUE(resolver_get(&r, 7, address));
        CU_ASSERT_STRING_EQUAL(address, hosts[i]);
        resolver_stop(&r);
    }
}

static void bad_names_are_refused(void)
{
    char name[300];
    struct resolver r;
    struct err e = {0};

    CU_ASSERT_FALSE(resolver_init(&r, "", &e));
    CU_ASSERT_EQUAL(e.code, ERR_BAD_VALUE);
    snprintf(name, sizeof(name), "%0256d", 0);
    err_clear(&e);
    CU_ASSERT_FALSE(resolver_init(&r, name, &e));
    name[255] = '\0';
    CU_ASSERT_TRUE(resolver_init(&r, name, &e));
}

static void addresses_go_round(void)
{
    char address[RESOLVER_TEXT_MAX];
    struct resolver r;

    begin(&r, 3);
    CU_ASSERT_FALSE(resolver_get(&r, 0, address));
    sem_post(&names.answer);
    wait_for_question();
    while (!resolver_get(&r, 0, address))
        sched_yield();
    CU_ASSERT_STRING_EQUAL(address, "192.0.2.30");
    CU_ASSERT_TRUE(resolver_get(&r, 4, address));
    CU_ASSERT_STRING_EQUAL(address, "192.0.2.31");
    CU_ASSERT_TRUE(resolver_get(&r, SIZE_MAX, address));
    resolver_stop(&r);
}

static void last_addresses_are_kept(void)
{
    char address[RESOLVER_TEXT_MAX];
    struct resolver r;

    begin(&r, 1);
    wait_for_question();
    atomic_store(&names.n, 0);
    sem_post(&names.answer);
    while (!resolver_get(&r, 0, address))
        sched_yield();
    hurry(&r);
    wait_for_question();
    atomic_store(&names.n, 2);
    sem_post(&names.answer);
    /* It asks again sooner than after a success. */
    wait_for_question();
    CU_ASSERT_EQUAL(r.n_failures, 1);
    CU_ASSERT_TRUE(resolver_get(&r, 0, address));
    CU_ASSERT_STRING_EQUAL(address, "192.0.2.10");
    sem_post(&names.answer);
    while (resolver_get(&r, 0, address) && strcmp(address, "192.0.2.20") != 0)
        sched_yield();
    resolver_stop(&r);
}

/* A second of waiting for a look-up that hangs is what the contract promises. */
static void stop_does_not_wait_for_a_look_up_that_hangs(void)
{
    static struct resolver r; /* stays in memory, as the contract asks */

    begin(&r, 1);
    wait_for_question();
    resolver_stop(&r);
    sem_post(&names.answer);
}

static void system_look_up(void)
{
    char found[RESOLVER_ADDRESSES_MAX][RESOLVER_TEXT_MAX];

    CU_ASSERT_TRUE_FATAL(resolver_look_up("localhost", found) > 0);
    CU_ASSERT_TRUE(strcmp(found[0], "127.0.0.1") == 0 || strcmp(found[0], "::1") == 0);
    /* A label of more than 63 bytes: refused on this machine, no name server is asked. */
    CU_ASSERT_EQUAL(resolver_look_up("a0123456789012345678901234567890123456789012345678901234567890123", found), 0);
}

void test_resolver_register(void)
{
    CU_pSuite s = CU_add_suite("resolver", NULL, NULL);
    CU_add_test(s, "a numeric address is known at once, without a thread", numeric_needs_no_thread);
    CU_add_test(s, "a name that is empty or too long is refused", bad_names_are_refused);
    CU_add_test(s, "the addresses of a name are given out in turn, none before the first answer", addresses_go_round);
    CU_add_test(s, "a name that no longer resolves keeps its last addresses, and is asked again soon",
                last_addresses_are_kept);
    CU_add_test(s, "a stop does not wait for a look-up that hangs", stop_does_not_wait_for_a_look_up_that_hangs);
    CU_add_test(s, "the system's look-up gives addresses that connect without another", system_look_up);
}
