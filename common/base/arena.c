/* Arenas: a list of blocks, allocations cut from the newest, oversized ones in blocks of their own. */
#include "common/base/arena.h"

#include <sanitizer/asan_interface.h>
#include <stdlib.h>

enum { ALIGN = _Alignof(max_align_t) };

struct arena_block {
    struct arena_block *next; /* older */
    size_t used, cap;
    _Alignas(max_align_t) char bytes[];
};

struct arena_cleanup {
    struct arena_cleanup *next;
    void (*fn)(void *arg);
    void *arg;
};

void arena_init(struct arena *a, size_t block_bytes, size_t limit_bytes)
{
    *a = (struct arena){
        .block_bytes = block_bytes,
        .limit_bytes = limit_bytes == 0 ? (size_t)1 << 30 : limit_bytes,
    };
}

static void run_cleanups(struct arena *a)
{
    struct arena_cleanup *c = a->cleanups;

    a->cleanups = NULL;
    for (; c != NULL; c = c->next)
        c->fn(c->arg);
}

/* What is not handed out is poisoned, so AddressSanitizer sees a use after reset although no memory is freed. */
static struct arena_block *block_new(size_t cap)
{
    struct arena_block *block;

    if (cap > SIZE_MAX - sizeof(*block))
        return NULL;
    block = malloc(sizeof(*block) + cap);
    if (block == NULL)
        return NULL;
    *block = (struct arena_block){.cap = cap};
    ASAN_POISON_MEMORY_REGION(block->bytes, cap);
    return block;
}

/* align: a power of two. */
static size_t align_up(size_t size, size_t align)
{
    return (size + align - 1) & ~(align - 1);
}

/* A block with room for size bytes at its end, or NULL. */
static struct arena_block *block_for(struct arena *a, size_t size, size_t align)
{
    struct arena_block *block = a->head;

    if (block != NULL) {
        size_t start = align_up(block->used, align);

        if (start <= block->cap && size <= block->cap - start)
            return block;
    }
    if (block == NULL || size <= a->block_bytes) {
        /* The first block is an ordinary one even when the first allocation is large: reset keeps it. */
        block = block_new(a->block_bytes);
        if (block == NULL)
            return NULL;
        block->next = a->head;
        a->head = block;
        if (a->first == NULL)
            a->first = block;
    }
    if (size <= a->block_bytes)
        return block;
    /* Large: behind the head, which keeps serving small ones. */
    block = block_new(size);
    if (block == NULL)
        return NULL;
    block->next = a->head->next;
    a->head->next = block;
    return block;
}

static char *take(struct arena *a, size_t size, size_t align)
{
    struct arena_block *block;
    char *p;

    if (size > a->limit_bytes - a->used_bytes)
        return NULL;
    block = block_for(a, size, align);
    if (block == NULL)
        return NULL;
    block->used = align_up(block->used, align);
    p = block->bytes + block->used;
    block->used += size;
    a->used_bytes += size;
    ASAN_UNPOISON_MEMORY_REGION(p, size);
    return p;
}

void *arena_take(struct arena *a, size_t size_bytes)
{
    void *p;

    if (size_bytes > SIZE_MAX - ALIGN)
        return NULL;
    /* A whole unit even for size 0: two allocations never share an address. */
    size_bytes = size_bytes == 0 ? ALIGN : align_up(size_bytes, ALIGN);
    p = take(a, size_bytes, ALIGN);
    if (p != NULL)
        memset(p, 0, size_bytes);
    return p;
}

void *arena_take_n(struct arena *a, size_t n, size_t size_bytes)
{
    size_t total;

    if (__builtin_mul_overflow(n, size_bytes, &total))
        return NULL;
    return arena_take(a, total);
}

char *arena_take_bytes(struct arena *a, size_t len)
{
    return take(a, len, 1);
}

bool arena_take_buf(struct arena *a, size_t len, struct buf *out)
{
    char *storage = arena_take_bytes(a, len);

    if (storage != NULL)
        buf_init(out, storage, len);
    return storage != NULL;
}

bool arena_copy_str(struct arena *a, struct str s, struct str *out)
{
    char *p;

    if (s.len == SIZE_MAX)
        return false;
    p = arena_take_bytes(a, s.len + 1);
    if (p == NULL)
        return false;
    if (s.len > 0)
        memcpy(p, s.p, s.len);
    p[s.len] = '\0';
    *out = (struct str){p, s.len};
    return true;
}

bool arena_copy_lower(struct arena *a, struct str s, struct str *out)
{
    char *p = arena_take_bytes(a, s.len);

    if (p == NULL)
        return false;
    for (size_t i = 0; i < s.len; i++)
        p[i] = ascii_lower(s.p[i]);
    *out = (struct str){p, s.len};
    return true;
}

bool arena_on_release(struct arena *a, void (*fn)(void *arg), void *arg)
{
    struct arena_cleanup *c = ARENA_NEW(a, struct arena_cleanup);

    if (c == NULL)
        return false;
    *c = (struct arena_cleanup){.next = a->cleanups, .fn = fn, .arg = arg};
    a->cleanups = c;
    return true;
}

void arena_release(struct arena *a)
{
    arena_reset(a);
    free(a->first);
    a->first = a->head = NULL;
}

void arena_reset(struct arena *a)
{
    struct arena_block *block = a->head;

    run_cleanups(a);
    while (block != NULL) {
        struct arena_block *next = block->next;

        if (block != a->first)
            free(block);
        block = next;
    }
    if (a->first != NULL) {
        a->first->next = NULL;
        a->first->used = 0;
        ASAN_POISON_MEMORY_REGION(a->first->bytes, a->first->cap);
    }
    a->head = a->first;
    a->used_bytes = 0;
}
