/* Guards: what a policy takes over from the one before, without memory, under threads, and with a million clients. */
#include <CUnit/CUnit.h>
#include <pthread.h>

#include "spoa/live/lease.h"
#include "tests/unit/policy_cases.h"
#include "tests/unit/refuse_memory.h"

enum { WORKERS = 4, PUBLICATIONS = 200, BURST = 5000, CLIENTS = 1000000, CLIENT_BYTES_MAX = 220, EMPTY_ENTRY_BYTES_MAX = 10 };

static struct policy *policy_with(json_int_t limit)
{
    json_t *row = limit == 0 ? json_pack("{s:s, s:{}}", "base", "minimal", "set")
                             : json_pack("{s:s, s:{s:{s:I, s:s, s:i, s:i}}}", "base", "minimal", "set", "/global/backstop", "limit", limit, "period", "24h",
                                         "burst", BURST, "max_entries", 1000);
    struct policy *p = policy_case_compile(row);
    json_decref(row);
    return p;
}

static bool guard_refused(void *arg, size_t n)
{
    static const struct addr client = {{0}};
    const struct guard *before = arg;
    struct policy *alike = policy_with(1), *other = policy_with(2);
    struct guard *shares = NULL, *own = NULL;
    struct rate_verdict v;
    struct err e;

    err_clear(&e);
    refuse_memory(n);
    const bool ok = guard_new(&shares, alike, before, &e) && guard_new(&own, other, before, &e), refused = refuse_memory_end();
    CU_ASSERT(ok == !refused && (ok || e.code == ERR_NO_MEMORY));
    CU_ASSERT(ok == (own != NULL) && (!ok || own->backstop != before->backstop));
    CU_ASSERT(shares == NULL || shares->backstop == before->backstop);
    guard_free(&shares);
    guard_free(&own);
    CU_ASSERT_EQUAL(backstop_check(before->backstop, &client, 1, &v), RATE_COUNTED);
    policy_free(&alike);
    policy_free(&other);
    return refused;
}

static void a_guard_is_made_whole_or_not_at_all(void)
{
    struct policy *p = policy_with(1);
    struct guard *before = NULL;
    struct err e;

    err_clear(&e);
    CU_ASSERT_FATAL(guard_new(&before, p, NULL, &e));
    CU_ASSERT(refuse_memory_everywhere(guard_refused, before) >= 6);
    guard_free(&before);
    policy_free(&p);
}

static void a_policy_without_anything_to_keep_has_an_empty_guard(void)
{
    struct policy *p = policy_with(0);
    struct guard *g = NULL;
    struct err e;

    err_clear(&e);
    CU_ASSERT_FATAL(guard_new(&g, p, NULL, &e));
    CU_ASSERT(g->backstop == NULL && g->locales == NULL);
    guard_free(&g);
    CU_ASSERT_PTR_NULL(g);
    guard_free(&g);
    policy_free(&p);
}

/* The later guard may outlive the earlier one, and the other way round. */
static void a_shared_part_lives_as_long_as_any_guard_that_has_it(void)
{
    static const struct addr client = {{0}};

    for (int order = 0; order < 2; order++) {
        struct policy *p = policy_with(1);
        struct guard *guards[2] = {NULL, NULL};
        struct rate_verdict v;
        struct err e;

        err_clear(&e);
        CU_ASSERT_FATAL(guard_new(&guards[0], p, NULL, &e) && guard_new(&guards[1], p, guards[0], &e));
        CU_ASSERT_PTR_EQUAL(guards[0]->backstop, guards[1]->backstop);
        (void) backstop_check(guards[0]->backstop, &client, 1, &v);
        guard_free(&guards[order]);
        CU_ASSERT_EQUAL(backstop_check(guards[1 - order]->backstop, &client, 1, &v), RATE_COUNTED);
        CU_ASSERT_EQUAL(v.remaining, BURST - 2);
        guard_free(&guards[1 - order]);
        policy_free(&p);
    }
}

struct race {
    struct lease_slot slot;
    _Atomic bool *stop;
    uint64_t n_allowed;
    bool ok;
};

static void *race_worker(void *arg)
{
    static const struct addr client = {{0}};
    struct race *r = arg;
    r->ok = true;
    while (!atomic_load(r->stop)) {
        struct rate_verdict v;
        lease_refresh(&r->slot);
        struct lease *lease = lease_take(&r->slot);
        if (lease == NULL)
            continue;
        if (lease->guard->backstop != NULL) {
            r->ok &= backstop_check(lease->guard->backstop, &client, 1, &v) == RATE_COUNTED;
            r->n_allowed += v.allowed;
        }
        lease_put(lease);
    }
    lease_slot_release(&r->slot);
    return NULL;
}

static void released(void *ctx)
{
    (void) ctx;
}

static void publish(struct lease_source *source, struct lease_slot *const slots[], json_int_t limit)
{
    struct policy *p = policy_with(limit);
    struct guard *guard = NULL;
    struct err e;

    err_clear(&e);
    CU_ASSERT_FATAL(guard_new(&guard, p, lease_newest_guard(source), &e) && lease_publish(source, slots, WORKERS, p, guard));
    if (guard->backstop != NULL)
        (void) backstop_sweep(guard->backstop, 1);
    lease_reap(source);
}

/* Workers ask for one client while policies are published, whose limits take turns. Returns the requests that passed. */
static uint64_t race(const json_int_t *limits, size_t n_limits, bool (*is_enough)(const struct lease_source *source))
{
    static struct race workers[WORKERS];
    struct lease_source source = {.released = released};
    struct lease_slot *slots[WORKERS];
    pthread_t threads[WORKERS];
    _Atomic bool stop = false;
    uint64_t n_allowed = 0;

    memset(workers, 0, sizeof workers);
    for (size_t i = 0; i < WORKERS; i++) {
        lease_slot_init(&workers[i].slot);
        workers[i].stop = &stop;
        slots[i] = &workers[i].slot;
    }
    for (size_t i = 0; i < WORKERS; i++)
        CU_ASSERT_FATAL(pthread_create(&threads[i], NULL, race_worker, &workers[i]) == 0);
    for (size_t i = 0; i < PUBLICATIONS || !is_enough(&source); i++)
        publish(&source, slots, limits[i % n_limits]);
    atomic_store(&stop, true);
    for (size_t i = 0; i < WORKERS; i++) {
        pthread_join(threads[i], NULL);
        CU_ASSERT(workers[i].ok);
        n_allowed += workers[i].n_allowed;
    }
    lease_reap(&source);
    CU_ASSERT_EQUAL(lease_n_published(&source), 0);
    return n_allowed;
}

static uint64_t n_looks_passed;

/* Spent, so that more would pass if a swap had forgotten anything. Looking takes a token, too. */
static bool is_spent(const struct lease_source *source)
{
    static const struct addr client = {{0}};
    struct rate_verdict v;
    (void) backstop_check(lease_newest_guard(source)->backstop, &client, 1, &v);
    n_looks_passed += v.allowed;
    return !v.allowed;
}

static bool always(const struct lease_source *source)
{
    (void) source;
    return true;
}

static void policies_that_set_it_alike_let_exactly_burst_pass_together(void)
{
    static const json_int_t alike[] = {1};
    n_looks_passed = 0;
    CU_ASSERT_EQUAL(race(alike, 1, is_spent) + n_looks_passed, BURST);
}

static void workers_and_publisher_never_meet_a_freed_table(void)
{
    static const json_int_t changing[] = {1, 1, 2, 0, 2, 2};
    (void) race(changing, sizeof changing / sizeof changing[0], always);
}

static struct addr client_of(uint32_t n)
{
    const uint8_t b[4] = {100, (uint8_t) (n >> 16), (uint8_t) (n >> 8), (uint8_t) n};
    return addr_from_v4(b);
}

static void a_million_clients_take_bounded_memory(void)
{
    const struct backstop_settings settings = {.params = {.limit = 1, .burst = 1, .period_ms = 60000}, .max_entries = CLIENTS};
    struct backstop *b = NULL;
    struct rate_store_stats stats;
    struct rate_verdict v;
    struct err e;
    uint32_t n_counted = 0, n_untracked = 0;

    err_clear(&e);
    CU_ASSERT_FATAL(backstop_new(&b, &settings, &e));
    backstop_stats(b, &stats);
    CU_ASSERT(stats.memory_bytes < (size_t) CLIENTS * EMPTY_ENTRY_BYTES_MAX);
    for (uint32_t i = 0; i < CLIENTS + 1000; i++) {
        const struct addr client = client_of(i);
        enum rate_counted counted = backstop_check(b, &client, 1, &v);
        n_counted += counted == RATE_COUNTED;
        n_untracked += counted == RATE_UNTRACKED && v.allowed;
    }
    backstop_stats(b, &stats);
    CU_ASSERT(n_counted == CLIENTS && n_untracked == 1000);
    CU_ASSERT(stats.n_keys == CLIENTS && stats.max_keys == CLIENTS);
    CU_ASSERT(stats.memory_bytes < (size_t) CLIENTS * CLIENT_BYTES_MAX);
    backstop_free(&b);
    CU_ASSERT_PTR_NULL(b);
    backstop_free(&b);
}

void test_guard_register(void)
{
    CU_pSuite s = CU_add_suite("guard", NULL, NULL);
    CU_add_test(s, "a guard is made whole or not at all, and what it would have shared goes on", a_guard_is_made_whole_or_not_at_all);
    CU_add_test(s, "a policy without anything to keep has an empty guard", a_policy_without_anything_to_keep_has_an_empty_guard);
    CU_add_test(s, "a shared part lives as long as any guard that has it", a_shared_part_lives_as_long_as_any_guard_that_has_it);
    CU_add_test(s, "policies that set it alike let exactly burst pass together", policies_that_set_it_alike_let_exactly_burst_pass_together);
    CU_add_test(s, "workers and publisher never meet a freed table", workers_and_publisher_never_meet_a_freed_table);
    CU_add_test(s, "a million clients take bounded memory, and the next ones pass uncounted", a_million_clients_take_bounded_memory);
}
