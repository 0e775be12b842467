/* The choice by hash: the vectors that other implementations are held against. */
#include <CUnit/CUnit.h>
#include <pthread.h>

#include "common/base/digest.h"
#include "common/base/parse.h"
#include "tests/unit/refuse_memory.h"

static const struct {
    const char *text;
    unsigned share;
} vectors[] = {
#define SAMPLING_VECTOR(text, share) {text, share},
#include "schemas/sampling_vectors.def"
#undef SAMPLING_VECTOR
};

static void each_text_falls_where_its_vector_says(void)
{
    for (size_t i = 0; i < sizeof vectors / sizeof vectors[0]; i++) {
        unsigned share = RATE_WHOLE;
        CU_ASSERT(digest_share(str_of(vectors[i].text), RATE_WHOLE, &share));
        CU_ASSERT_EQUAL(share, vectors[i].share);
    }
}

static bool attempt(void *arg, size_t n)
{
    const unsigned before = 12345;
    unsigned share = before;
    bool *ended_well = arg;
    refuse_memory_of_ours(n);
    bool ok = digest_share(STR("id"), RATE_WHOLE, &share);
    const bool refused = refuse_memory_end();
    *ended_well = *ended_well && ok == !refused && (ok || share == before);
    return refused;
}

struct in_a_thread {
    bool ended_well;
    size_t n_refused;
};

static void *share_in_a_new_thread(void *arg)
{
    struct in_a_thread *t = arg;
    t->n_refused = refuse_memory_everywhere(attempt, &t->ended_well);
    return NULL;
}

/* Whose context is not there yet. */
static void without_memory_a_new_thread_gets_no_share_and_with_it_the_same_as_others(void)
{
    struct in_a_thread t = {.ended_well = true};
    pthread_t thread;
    CU_ASSERT_FATAL(pthread_create(&thread, NULL, share_in_a_new_thread, &t) == 0);
    pthread_join(thread, NULL);
    CU_ASSERT(t.ended_well);
    CU_ASSERT_EQUAL(t.n_refused, 2);
}

void test_digest_register(void)
{
    CU_pSuite s = CU_add_suite("digest", NULL, NULL);
    CU_add_test(s, "each text falls where its vector says", each_text_falls_where_its_vector_says);
    CU_add_test(s, "without memory a new thread gets no share, and with it the same as others",
                without_memory_a_new_thread_gets_no_share_and_with_it_the_same_as_others);
}
