/* Arenas: memory with one lifetime (process, policy or request), released at once. */
#ifndef COMMON_BASE_ARENA_H
#define COMMON_BASE_ARENA_H

#include "common/base/str.h"

struct arena_block;
struct arena_cleanup;

/* Not thread-safe: one thread uses an arena at a time. */
struct arena {
    struct arena_block *head;       /* block that allocations come from */
    struct arena_block *first;      /* kept by arena_reset */
    struct arena_cleanup *cleanups; /* newest first */
    size_t used_bytes;              /* handed out since init or reset */
    size_t limit_bytes;             /* allocation beyond it fails */
    size_t block_bytes;
};

/* block_bytes: size of an ordinary block, the first one is taken at the first allocation. limit_bytes: 0 = 1 GiB. */
void arena_init(struct arena *a, size_t block_bytes, size_t limit_bytes);
/* Runs clean-ups newest first, then frees everything; the arena can be used again. */
void arena_release(struct arena *a);
/* As release, but keeps the first block: a request arena costs no malloc from its second request on. */
void arena_reset(struct arena *a);

/* Aligned for any type and zeroed. NULL when the limit or the system refuses. size 0 gives a valid pointer. */
MUSTUSE void *arena_take(struct arena *a, size_t size_bytes);
/* n * size_bytes with overflow check. */
MUSTUSE void *arena_take_n(struct arena *a, size_t n, size_t size_bytes);
/* Unaligned, not zeroed: for bytes. */
MUSTUSE char *arena_take_bytes(struct arena *a, size_t len);
/* An empty buffer over len such bytes. False when memory is refused; *out untouched. */
MUSTUSE bool arena_take_buf(struct arena *a, size_t len, struct buf *out);
/* A copy with a NUL behind it (not counted in len). False when memory is refused; *out untouched. */
MUSTUSE bool arena_copy_str(struct arena *a, struct str s, struct str *out);
/* A copy with ASCII letters in lower case, without a NUL. False when memory is refused; *out untouched. */
MUSTUSE bool arena_copy_lower(struct arena *a, struct str s, struct str *out);
/* Calls fn(arg) at release or reset: for foreign objects. False when memory is refused; fn is not called then. */
MUSTUSE bool arena_on_release(struct arena *a, void (*fn)(void *arg), void *arg);

#define ARENA_NEW(a, type) ((type *) arena_take((a), sizeof(type)))
#define ARENA_NEW_N(a, n, type) ((type *) arena_take_n((a), (n), sizeof(type)))

#endif
