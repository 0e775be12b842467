/* Rate limits where memory is refused: nobody is refused for it, nothing half made is left. */
#include <CUnit/CUnit.h>
#include <pthread.h>

#include "common/rate/script.h"
#include "common/rate/shares.h"
#include "tests/unit/refuse_memory.h"

static const struct rate_params one = {1, 1, 60000};

static bool store_refused(void *arg, size_t n)
{
    struct rate_store *s = NULL;
    struct err e;

    (void) arg;
    err_clear(&e);
    refuse_memory(n);
    const bool ok = rate_store_new(&s, 1000, &e), refused = refuse_memory_end();
    CU_ASSERT(ok == !refused && ok == (s != NULL) && (ok || e.code == ERR_NO_MEMORY));
    rate_store_free(&s);
    return refused;
}

static void stores(void)
{
    CU_ASSERT(refuse_memory_everywhere(store_refused, NULL) >= 3);
}

static struct rate_call call_of(const struct rate_name *name, struct rate_subject subject)
{
    return (struct rate_call){.params = &one, .name = name, .subject = subject, .enforce = true};
}

/* The next call of the same key finds memory, and is counted as the first one. */
static void keys(void)
{
    struct rate_store *s = NULL;
    struct rate_subject subject;
    struct rate_name *name;
    struct arena a;
    struct err e;

    err_clear(&e);
    arena_init(&a, 4096, 0);
    name = ARENA_NEW(&a, struct rate_name);
    CU_ASSERT_FATAL(name != NULL && rate_name_make(&one, STR("rule"), &a, name) && rate_subject_hash(STR("subject"), &subject));
    CU_ASSERT_FATAL(rate_store_new(&s, 1000, &e));
    for (int i = 0; i < 2; i++) {
        struct rate_call call = call_of(name, subject);

        refuse_memory(0);
        rate_store_check(s, &call, 1, 1000);
        CU_ASSERT(refuse_memory_end() && call.counted == RATE_UNTRACKED && call.verdict.allowed);
    }
    for (int i = 0; i < 2; i++) {
        struct rate_call call = call_of(name, subject);

        rate_store_check(s, &call, 1, 1000);
        CU_ASSERT(call.counted == RATE_COUNTED && call.verdict.allowed == (i == 0));
    }
    rate_store_free(&s);
    arena_release(&a);
}

static bool shares_refused(void *arg, size_t n)
{
    static const struct str ids[] = {STR("a"), STR("b")};
    struct rate_shares *s = NULL;
    struct err e;

    (void) arg;
    err_clear(&e);
    refuse_memory(n);
    const bool made = rate_shares_new(&s, 1000, &e), ok = made && rate_shares_set(s, ids, 2, &e), refused = refuse_memory_end();
    CU_ASSERT(ok == !refused && made == (s != NULL) && (ok || e.code == ERR_NO_MEMORY));
    if (made && !ok) {
        CU_ASSERT_EQUAL(rate_shares_n_keys(s), 0);
        CU_ASSERT(rate_shares_set(s, ids, 2, &e));
    }
    rate_shares_free(&s);
    return refused;
}

static void shares(void)
{
    CU_ASSERT(refuse_memory_everywhere(shares_refused, NULL) >= 6);
}

/* In a thread of its own, which has no context of digests yet. */
static void *hash_apart(void *arg)
{
    struct rate_subject subject;
    bool *ok = arg;

    for (size_t n = 0; n < 3; n++) {
        refuse_memory_of_ours(n);
        *ok = *ok && !rate_subject_hash(STR("subject"), &subject) && refuse_memory_end();
    }
    *ok = *ok && rate_subject_hash(STR("subject"), &subject);
    return NULL;
}

static void digests(void)
{
    pthread_t thread;
    char sha1[41] = "";
    bool ok = true;

    CU_ASSERT_FATAL(pthread_create(&thread, NULL, hash_apart, &ok) == 0);
    pthread_join(thread, NULL);
    CU_ASSERT(ok);
    refuse_memory(0);
    CU_ASSERT(!rate_script_sha1(sha1));
    CU_ASSERT(refuse_memory_end() && sha1[0] == '\0');
}

void test_rate_memory_register(void)
{
    CU_pSuite s = CU_add_suite("rate_memory", NULL, NULL);
    CU_add_test(s, "a store is made whole or not at all", stores);
    CU_add_test(s, "a key that finds no memory passes, is told as uncounted, and is counted once there is some", keys);
    CU_add_test(s, "local shares are set whole or not at all, and can be set again", shares);
    CU_add_test(s, "a subject that finds no memory has no digest, nor has the script", digests);
}
