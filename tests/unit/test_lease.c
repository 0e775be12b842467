/* Leases: a policy lives exactly as long as a worker or one of its requests needs it. */
#include <CUnit/CUnit.h>
#include <pthread.h>

#include "spoa/live/lease.h"
#include "tests/unit/refuse_memory.h"

static const char file[] = "tests/cases/request/policy.json";

static _Atomic size_t n_released;

static void released(void *ctx)
{
    (void) ctx;
    n_released++;
}

static struct policy *load(void)
{
    struct errlist errors, warnings;
    struct policy *p = NULL;
    CU_ASSERT_FATAL(errlist_init(&errors, 0) && errlist_init(&warnings, 0));
    CU_ASSERT_FATAL(policy_load(file, &policy_options_any, &p, &errors, &warnings));
    errlist_release(&errors);
    errlist_release(&warnings);
    return p;
}

static bool publish(struct lease_source *source, struct lease_slot *const slots[], size_t n, struct policy *policy)
{
    struct guard *guard = NULL;
    struct err e;
    err_clear(&e);
    return guard_new(&guard, policy, lease_newest_guard(source), &e) && lease_publish(source, slots, n, policy, guard);
}

static void before_the_first_policy_there_is_no_lease(void)
{
    struct lease_slot slot;
    lease_slot_init(&slot);
    CU_ASSERT_PTR_NULL(lease_take(&slot));
    lease_slot_release(&slot);
}

static void a_request_keeps_its_policy_while_newer_ones_come(void)
{
    struct lease_source source = {.released = released};
    struct lease_slot slot, *const slots[] = {&slot};
    lease_slot_init(&slot);
    struct policy *first = load(), *second = load();
    CU_ASSERT(publish(&source, slots, 1, first));
    CU_ASSERT(lease_refresh(&slot));
    struct lease *held = lease_take(&slot);
    CU_ASSERT_PTR_EQUAL(held->policy, first);

    CU_ASSERT(publish(&source, slots, 1, second));
    CU_ASSERT(lease_refresh(&slot));
    lease_reap(&source);
    CU_ASSERT_EQUAL(lease_n_published(&source), 2);
    struct lease *later = lease_take(&slot);
    CU_ASSERT_PTR_EQUAL(later->policy, second);
    CU_ASSERT_EQUAL(held->policy->version, 1);

    n_released = 0;
    lease_put(held);
    CU_ASSERT_EQUAL(n_released, 1);
    lease_reap(&source);
    CU_ASSERT_EQUAL(lease_n_published(&source), 1);
    lease_put(later);
    lease_slot_release(&slot);
    lease_reap(&source);
    CU_ASSERT_EQUAL(lease_n_published(&source), 0);
}

static void a_policy_that_no_worker_picked_up_is_let_go(void)
{
    struct lease_source source = {.released = released};
    struct lease_slot a, b, *const slots[] = {&a, &b};
    lease_slot_init(&a);
    lease_slot_init(&b);
    CU_ASSERT(publish(&source, slots, 2, load()));
    CU_ASSERT(publish(&source, slots, 2, load()));
    lease_reap(&source);
    CU_ASSERT_EQUAL(lease_n_published(&source), 1);
    lease_slot_release(&a);
    lease_slot_release(&b);
    lease_reap(&source);
    CU_ASSERT_EQUAL(lease_n_published(&source), 0);
}

static void without_memory_the_lease_in_force_stays(void)
{
    struct lease_source source = {.released = released};
    struct lease_slot slot, *const slots[] = {&slot};
    lease_slot_init(&slot);
    struct policy *first = load(), *second = load();
    struct guard *guard = NULL;
    struct err e;
    err_clear(&e);
    CU_ASSERT(publish(&source, slots, 1, first) && lease_refresh(&slot));
    CU_ASSERT_FATAL(guard_new(&guard, second, lease_newest_guard(&source), &e));
    refuse_memory(0);
    CU_ASSERT(!lease_publish(&source, slots, 1, second, guard) && refuse_memory_end());
    CU_ASSERT(lease_n_published(&source) == 1 && lease_refresh(&slot) && slot.current->policy == first);

    CU_ASSERT(lease_publish(&source, slots, 1, second, guard));
    refuse_memory(0);
    CU_ASSERT(!lease_refresh(&slot) && refuse_memory_end());
    CU_ASSERT_PTR_EQUAL(slot.current->policy, first);
    CU_ASSERT(lease_refresh(&slot));
    CU_ASSERT_PTR_EQUAL(slot.current->policy, second);
    lease_slot_release(&slot);
    lease_reap(&source);
    CU_ASSERT_EQUAL(lease_n_published(&source), 0);
}

enum { WORKERS = 4, PUBLICATIONS = 200 };

struct race {
    struct lease_slot slot;
    _Atomic bool *stop;
    bool ok;
};

static void *race_worker(void *arg)
{
    struct race *r = arg;
    r->ok = true;
    while (!atomic_load(r->stop)) {
        lease_refresh(&r->slot);
        struct lease *lease = lease_take(&r->slot);
        if (lease == NULL)
            continue;
        r->ok &= lease->policy->n_config_rules == 4;
        lease_put(lease);
    }
    lease_slot_release(&r->slot);
    return NULL;
}

static void workers_and_publisher_never_meet_a_freed_policy(void)
{
    struct lease_source source = {.released = released};
    static struct race workers[WORKERS];
    struct lease_slot *slots[WORKERS];
    pthread_t threads[WORKERS];
    _Atomic bool stop = false;
    for (size_t i = 0; i < WORKERS; i++) {
        lease_slot_init(&workers[i].slot);
        workers[i].stop = &stop;
        slots[i] = &workers[i].slot;
    }
    CU_ASSERT_FATAL(publish(&source, slots, WORKERS, load()));
    for (size_t i = 0; i < WORKERS; i++)
        CU_ASSERT_FATAL(pthread_create(&threads[i], NULL, race_worker, &workers[i]) == 0);
    for (int i = 0; i < PUBLICATIONS; i++) {
        CU_ASSERT(publish(&source, slots, WORKERS, load()));
        lease_reap(&source);
    }
    atomic_store(&stop, true);
    for (size_t i = 0; i < WORKERS; i++) {
        pthread_join(threads[i], NULL);
        CU_ASSERT(workers[i].ok);
    }
    lease_reap(&source);
    CU_ASSERT_EQUAL(lease_n_published(&source), 0);
}

void test_lease_register(void)
{
    CU_pSuite s = CU_add_suite("lease", NULL, NULL);
    CU_add_test(s, "before the first policy there is no lease", before_the_first_policy_there_is_no_lease);
    CU_add_test(s, "a request keeps its policy while newer ones come", a_request_keeps_its_policy_while_newer_ones_come);
    CU_add_test(s, "a policy that no worker picked up is let go", a_policy_that_no_worker_picked_up_is_let_go);
    CU_add_test(s, "without memory for the next one the lease in force stays", without_memory_the_lease_in_force_stays);
    CU_add_test(s, "workers and publisher never meet a freed policy", workers_and_publisher_never_meet_a_freed_policy);
}
