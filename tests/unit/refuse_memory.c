/* The linker leads calls of the functions below to __wrap_NAME, and __real_NAME is the function itself. */
#include "tests/unit/refuse_memory.h"

#include <dirent.h>
#include <errno.h>
#include <ev.h>
#include <jansson.h>
#include <openssl/evp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "common/base/arena.h"
#include "common/rate/rate.h"

/* A program that never comes to an end is one of the faults looked for. */
enum { REQUESTS_MAX = 1000000 };

static _Thread_local bool armed, refused;
static _Thread_local size_t left;

static bool refuses(void)
{
    if (!armed || left-- > 0)
        return false;
    armed = false;
    refused = true;
    return true;
}

#define WRAPPED(type, name, parameters, arguments, nothing) \
    type __real_##name parameters;                          \
    type __wrap_##name parameters;                          \
    type __wrap_##name parameters                           \
    {                                                       \
        return refuses() ? (nothing) : __real_##name arguments; \
    }

WRAPPED(void *, calloc, (size_t n, size_t size), (n, size), NULL)
WRAPPED(void *, arena_take, (struct arena *a, size_t size), (a, size), NULL)
WRAPPED(void *, arena_take_n, (struct arena *a, size_t n, size_t size), (a, n, size), NULL)
WRAPPED(char *, arena_take_bytes, (struct arena *a, size_t len), (a, len), NULL)
WRAPPED(bool, arena_take_buf, (struct arena *a, size_t len, struct buf *out), (a, len, out), false)
WRAPPED(bool, arena_copy_str, (struct arena *a, struct str s, struct str *out), (a, s, out), false)
WRAPPED(bool, arena_copy_lower, (struct arena *a, struct str s, struct str *out), (a, s, out), false)
WRAPPED(bool, arena_on_release, (struct arena *a, void (*fn)(void *arg), void *arg), (a, fn, arg), false)
WRAPPED(pcre2_compile_context *, pcre2_compile_context_create_8, (pcre2_general_context *general), (general), NULL)
WRAPPED(pcre2_match_context *, pcre2_match_context_create_8, (pcre2_general_context *general), (general), NULL)
WRAPPED(pcre2_match_data *, pcre2_match_data_create_8, (uint32_t n, pcre2_general_context *general), (n, general), NULL)
WRAPPED(bool, rate_subject_hash, (struct str text, struct rate_subject *out), (text, out), false)
WRAPPED(int, EVP_Digest, (const void *data, size_t len, unsigned char *out, unsigned *out_len, const EVP_MD *md, ENGINE *engine),
        (data, len, out, out_len, md, engine), 0)
WRAPPED(EVP_MD_CTX *, EVP_MD_CTX_new, (void), (), NULL)
WRAPPED(void *, aligned_alloc, (size_t align, size_t size), (align, size), NULL)
WRAPPED(FILE *, fdopen, (int fd, const char *mode), (fd, mode), NULL)
WRAPPED(DIR *, fdopendir, (int fd), (fd), NULL)
WRAPPED(void *, realloc, (void *p, size_t size), (p, size), NULL)
WRAPPED(struct ev_loop *, ev_loop_new, (unsigned flags), (flags), NULL)
WRAPPED(int, pthread_create, (pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *), void *arg), (thread, attr, run, arg), EAGAIN)
WRAPPED(int, pthread_setspecific, (pthread_key_t key, const void *value), (key, value), -1)

/* jansson lives in a library of its own, where the linker leads nothing elsewhere. */
static void *json_take(size_t size)
{
    return refuses() ? NULL : malloc(size);
}

void refuse_memory_of_ours(size_t n)
{
    left = n;
    refused = false;
    armed = true;
}

void refuse_memory(size_t n)
{
    json_set_alloc_funcs(json_take, free);
    refuse_memory_of_ours(n);
}

bool refuse_memory_end(void)
{
    armed = false;
    json_set_alloc_funcs(malloc, free);
    return refused;
}

size_t refuse_memory_everywhere(bool (*attempt)(void *arg, size_t n), void *arg)
{
    size_t n = 0;

    while (n < REQUESTS_MAX && attempt(arg, n))
        n++;
    return n;
}
