/* Arenas. */
#include <CUnit/CUnit.h>

#include "common/base/arena.h"

static void memory_is_aligned_zeroed_and_distinct(void)
{
    struct arena a;
    char *before = NULL;

    arena_init(&a, 256, 0);
    for (size_t size = 0; size < 200; size++) {
        char *bytes = arena_take_bytes(&a, 1);
        char *p = arena_take(&a, size);
        size_t n_zero = 0;

        CU_ASSERT_FATAL(p != NULL && bytes != NULL);
        CU_ASSERT((uintptr_t)p % _Alignof(max_align_t) == 0);
        while (n_zero < size && p[n_zero] == 0)
            n_zero++;
        CU_ASSERT(n_zero == size && p != before && bytes != p);
        memset(p, 0xff, size);
        before = p;
    }
    arena_release(&a);
}

static void the_limit_bounds_what_is_handed_out(void)
{
    struct arena a;

    arena_init(&a, 64, 256);
    CU_ASSERT(arena_take(&a, 257) == NULL);
    CU_ASSERT(arena_take(&a, SIZE_MAX) == NULL);
    CU_ASSERT(arena_take(&a, SIZE_MAX - 64) == NULL);
    CU_ASSERT(arena_take_bytes(&a, 256) != NULL);
    CU_ASSERT(a.used_bytes == 256);
    CU_ASSERT(arena_take_bytes(&a, 1) == NULL);
    CU_ASSERT(arena_take(&a, 0) == NULL);
    arena_release(&a);
    CU_ASSERT(a.used_bytes == 0 && a.head == NULL);
    CU_ASSERT(arena_take_bytes(&a, 256) != NULL);
    arena_release(&a);
    arena_release(&a);
}

static void counts_that_overflow_are_refused(void)
{
    struct arena a;
    uint64_t *items;

    arena_init(&a, 64, SIZE_MAX);
    CU_ASSERT(arena_take_n(&a, SIZE_MAX / 8 + 2, 8) == NULL);
    CU_ASSERT(arena_take_bytes(&a, SIZE_MAX) == NULL);
    items = ARENA_NEW_N(&a, 20, uint64_t);
    CU_ASSERT_FATAL(items != NULL);
    items[19] = 1;
    arena_release(&a);
}

static void a_large_allocation_does_not_waste_the_block(void)
{
    struct arena a;
    char *small, *large, *next;

    arena_init(&a, 128, 0);
    large = arena_take_bytes(&a, 1000);
    small = arena_take_bytes(&a, 10);
    CU_ASSERT_FATAL(large != NULL && small != NULL);
    memset(large, 1, 1000);
    CU_ASSERT(arena_take_bytes(&a, 1000) != NULL);
    next = arena_take_bytes(&a, 10);
    CU_ASSERT(next == small + 10);
    arena_release(&a);
}

static void reset_keeps_the_first_block(void)
{
    struct arena a;
    struct arena_block *first;
    char *p;

    arena_init(&a, 128, 0);
    p = arena_take(&a, 16);
    first = a.first;
    CU_ASSERT_FATAL(p != NULL && first != NULL);
    memset(p, 0xff, 16);
    for (int i = 0; i < 10; i++)
        CU_ASSERT(arena_take(&a, 100) != NULL && arena_take(&a, 500) != NULL);
    arena_reset(&a);
    CU_ASSERT(a.first == first && a.head == first && a.used_bytes == 0);
    CU_ASSERT(arena_take(&a, 16) == p && p[0] == 0);
    arena_release(&a);
    arena_reset(&a);
    CU_ASSERT(a.first == NULL);
}

static void a_copy_ends_with_nul(void)
{
    struct arena a;
    struct str copy = STR("untouched"), source = STR("a\0b");

    arena_init(&a, 16, 32);
    CU_ASSERT(arena_copy_str(&a, source, &copy));
    CU_ASSERT(str_eq(copy, source) && copy.p != source.p && copy.p[3] == '\0');
    CU_ASSERT(arena_copy_str(&a, STR_NONE, &copy) && copy.len == 0 && copy.p[0] == '\0');
    copy = source;
    CU_ASSERT(!arena_copy_str(&a, (struct str){"", SIZE_MAX}, &copy));
    CU_ASSERT(!arena_copy_str(&a, (struct str){"0123456789012345678901234567890123456789", 40}, &copy));
    CU_ASSERT(copy.p == source.p);
    arena_release(&a);
}

struct order {
    char seen[8];
    size_t n;
};

struct step {
    struct order *order;
    char name;
};

static void note(void *arg)
{
    struct step *step = arg;

    step->order->seen[step->order->n++] = step->name;
}

static void clean_ups_run_newest_first_and_once(void)
{
    struct order order = {.n = 0};
    struct step steps[] = {{&order, 'a'}, {&order, 'b'}, {&order, 'c'}};
    struct arena a;

    arena_init(&a, 64, 1024);
    for (size_t i = 0; i < 3; i++)
        CU_ASSERT(arena_on_release(&a, note, &steps[i]));
    arena_reset(&a);
    CU_ASSERT(order.n == 3 && memcmp(order.seen, "cba", 3) == 0);
    CU_ASSERT(arena_on_release(&a, note, &steps[1]));
    arena_release(&a);
    CU_ASSERT(order.n == 4 && order.seen[3] == 'b');
    arena_release(&a);
    CU_ASSERT(order.n == 4);

    arena_init(&a, 64, 8);
    CU_ASSERT(!arena_on_release(&a, note, &steps[0]));
    arena_release(&a);
    CU_ASSERT(order.n == 4);
}

static void lower_copies_and_buffers(void)
{
    struct arena a;
    struct str copy = STR("untouched"), source = STR("A-z\xc3\x89[");
    struct buf b = {.len = 7};

    arena_init(&a, 16, 32);
    CU_ASSERT(arena_copy_lower(&a, source, &copy));
    CU_ASSERT(str_eq(copy, STR("a-z\xc3\x89[")) && copy.p != source.p);
    copy = source;
    CU_ASSERT(!arena_copy_lower(&a, (struct str){"0123456789012345678901234567890123456789", 40}, &copy));
    CU_ASSERT(copy.p == source.p);
    CU_ASSERT(!arena_take_buf(&a, 40, &b) && b.len == 7);
    CU_ASSERT(arena_take_buf(&a, 4, &b) && b.len == 0 && b.cap == 4 && !b.full);
    arena_release(&a);
}

void test_arena_register(void)
{
    CU_pSuite s = CU_add_suite("arena", NULL, NULL);

    CU_add_test(s, "memory is aligned, zeroed and shared with no other allocation",
                memory_is_aligned_zeroed_and_distinct);
    CU_add_test(s, "security: the limit bounds what an arena hands out", the_limit_bounds_what_is_handed_out);
    CU_add_test(s, "security: a count whose size overflows is refused", counts_that_overflow_are_refused);
    CU_add_test(s, "a large allocation leaves the current block in use", a_large_allocation_does_not_waste_the_block);
    CU_add_test(s, "a reset keeps the first block and hands it out zeroed again", reset_keeps_the_first_block);
    CU_add_test(s, "a copied string ends with a NUL that its length leaves out", a_copy_ends_with_nul);
    CU_add_test(s, "a copy in lower case changes ASCII letters only, and without memory it and a buffer are left as they were", lower_copies_and_buffers);
    CU_add_test(s, "clean-ups run newest first and once", clean_ups_run_newest_first_and_once);
}
