/* The hash map. */
#include <CUnit/CUnit.h>
#include <stdio.h>

#include "common/base/map.h"

enum { N_KEYS = 5000 };

static void every_key_is_found_and_no_other(void)
{
    static int values[N_KEYS];
    struct arena a;
    struct map m;
    void *existing = &m;

    arena_init(&a, 4096, 0);
    map_init(&m, &a);
    CU_ASSERT(map_get(&m, STR("key0")) == NULL);
    for (int i = 0; i < N_KEYS; i++) {
        char text[32];
        struct str key;

        snprintf(text, sizeof(text), "key%d", i);
        CU_ASSERT_FATAL(arena_copy_str(&a, str_of(text), &key));
        CU_ASSERT(map_add(&m, key, &values[i], &existing) && existing == NULL);
    }
    CU_ASSERT(m.n == N_KEYS);
    for (int i = 0; i < N_KEYS; i++) {
        char text[32];

        snprintf(text, sizeof(text), "key%d", i);
        CU_ASSERT(map_get(&m, str_of(text)) == &values[i]);
        snprintf(text, sizeof(text), "kex%d", i);
        CU_ASSERT(map_get(&m, str_of(text)) == NULL);
    }
    arena_release(&a);
}

static void keys_are_bytes_of_any_length(void)
{
    char bytes[40] = {0};
    int values[sizeof(bytes) + 1];
    struct arena a;
    struct map m;
    void *existing;

    arena_init(&a, 4096, 0);
    map_init(&m, &a);
    /* NULs only: the length alone tells these keys apart. */
    for (size_t len = 0; len <= sizeof(bytes); len++)
        CU_ASSERT(map_add(&m, (struct str){bytes, len}, &values[len], &existing) && existing == NULL);
    for (size_t len = 0; len <= sizeof(bytes); len++)
        CU_ASSERT(map_get(&m, (struct str){bytes, len}) == &values[len]);
    CU_ASSERT(map_get(&m, STR_NONE) == &values[0]);
    arena_release(&a);
}

static void a_key_given_twice_keeps_its_first_value(void)
{
    int first = 1, second = 2;
    struct arena a;
    struct map m;
    void *existing;

    arena_init(&a, 4096, 0);
    map_init(&m, &a);
    CU_ASSERT(map_add(&m, STR("id"), &first, &existing) && existing == NULL);
    CU_ASSERT(map_add(&m, STR("id"), &second, &existing) && existing == &first);
    CU_ASSERT(map_get(&m, STR("id")) == &first && m.n == 1);
    arena_release(&a);
}

static void seeds_differ(void)
{
    struct map one, two;

    map_init(&one, NULL);
    map_init(&two, NULL);
    CU_ASSERT(memcmp(one.seed, two.seed, sizeof(one.seed)) != 0);
}

static void refused_memory_leaves_the_map_as_it_was(void)
{
    char keys[64];
    int value = 0;
    struct arena a;
    struct map m;
    void *existing;
    size_t n = 0;

    arena_init(&a, 4096, 1024);
    map_init(&m, &a);
    memset(keys, 'k', sizeof(keys));
    while (n < sizeof(keys) && map_add(&m, (struct str){keys, n + 1}, &value, &existing))
        n++;
    CU_ASSERT(n > 0 && n < sizeof(keys) && m.n == n);
    for (size_t i = 0; i < n; i++)
        CU_ASSERT(map_get(&m, (struct str){keys, i + 1}) == &value);
    arena_release(&a);
}

void test_map_register(void)
{
    CU_pSuite s = CU_add_suite("map", NULL, NULL);

    CU_add_test(s, "every key is found, and no key that was not added", every_key_is_found_and_no_other);
    CU_add_test(s, "keys are bytes of any length, empty and NUL included", keys_are_bytes_of_any_length);
    CU_add_test(s, "a key given twice keeps its first value", a_key_given_twice_keeps_its_first_value);
    CU_add_test(s, "security: two maps have different seeds", seeds_differ);
    CU_add_test(s, "refused memory leaves the map as it was", refused_memory_leaves_the_map_as_it_was);
}
