/* Remembered locales: 16 hash tables of fixed size, each behind its own short lock, with their headers one behind the other in a piece of memory that
 * is only ever emptied as a whole. */
#include "spoa/guard/locales.h"

#include <pthread.h>
#include <stdlib.h>

#include "common/base/siphash.h"

enum {
    SHARDS = 16,
    SHARD_HEADERS = LOCALES_MAX / SHARDS,
    SHARD_BYTES = LOCALES_BYTES_MAX / SHARDS,
    SHARD_PLACES = 2 * SHARD_HEADERS, /* half of them stay free, so that a search ends soon */
    RENEW_MS = 60000,
    CACHE_LINE = 64
};

struct entry {
    uint64_t hash;
    uint32_t at; /* of the shard's bytes */
    uint16_t len, chosen;
};

struct shard {
    _Alignas(CACHE_LINE) pthread_mutex_t lock;
    size_t n_entries, n_bytes;
    uint64_t begun_ms;              /* when its first header came */
    uint16_t places[SHARD_PLACES];  /* 1 + index of entries; 0: free */
    struct entry entries[SHARD_HEADERS];
    char bytes[SHARD_BYTES];        /* untouched pages of it take no memory */
};

struct locale_cache {
    uint64_t seed[2]; /* secret: nobody can choose headers that meet in one place */
    struct shard shards[SHARDS];
};

_Static_assert((SHARD_PLACES & (SHARD_PLACES - 1)) == 0 && SHARD_HEADERS < UINT16_MAX, "places are found by a mask and hold an index");

bool locale_cache_new(struct locale_cache **out, struct err *e)
{
    struct locale_cache *c = aligned_alloc(CACHE_LINE, sizeof *c);
    if (c == NULL)
        return err_set(e, ERR_NO_MEMORY, "", "no memory to remember locales");
    siphash_seed(c->seed);
    for (size_t i = 0; i < SHARDS; i++) {
        struct shard *s = &c->shards[i];
        s->n_entries = s->n_bytes = 0;
        s->begun_ms = 0;
        memset(s->places, 0, sizeof s->places);
        pthread_mutex_init(&s->lock, NULL); /* with default attributes it can't fail on Linux */
    }
    *out = c;
    return true;
}

void locale_cache_free(struct locale_cache **c)
{
    if (*c == NULL)
        return;
    for (size_t i = 0; i < SHARDS; i++)
        pthread_mutex_destroy(&(*c)->shards[i].lock);
    free(*c);
    *c = NULL;
}

/* The header's place, or the free one where it belongs. */
static uint16_t *find_place(struct shard *s, uint64_t hash, struct str header)
{
    size_t i = (hash / SHARDS) & (SHARD_PLACES - 1);
    for (; s->places[i] != 0; i = (i + 1) & (SHARD_PLACES - 1)) {
        const struct entry *entry = &s->entries[s->places[i] - 1];
        if (entry->hash == hash && str_eq((struct str){s->bytes + entry->at, entry->len}, header))
            break;
    }
    return &s->places[i];
}

static bool recall(struct shard *s, uint64_t hash, struct str header, size_t *chosen)
{
    pthread_mutex_lock(&s->lock);
    const uint16_t place = *find_place(s, hash, header);
    if (place != 0)
        *chosen = s->entries[place - 1].chosen;
    pthread_mutex_unlock(&s->lock);
    return place != 0;
}

static bool has_room(const struct shard *s, struct str header)
{
    return s->n_entries < SHARD_HEADERS && header.len <= SHARD_BYTES - s->n_bytes;
}

static void keep(struct shard *s, uint64_t hash, struct str header, uint16_t chosen, uint64_t now_ms)
{
    pthread_mutex_lock(&s->lock);
    /* Another thread may have begun it later than this one has looked at its clock. */
    if (!has_room(s, header) && now_ms >= s->begun_ms + RENEW_MS) {
        memset(s->places, 0, sizeof s->places);
        s->n_entries = s->n_bytes = 0;
    }
    uint16_t *place = find_place(s, hash, header);
    if (*place == 0 && has_room(s, header)) {
        if (s->n_entries == 0)
            s->begun_ms = now_ms;
        s->entries[s->n_entries] = (struct entry){hash, (uint32_t) s->n_bytes, (uint16_t) header.len, chosen};
        memcpy(s->bytes + s->n_bytes, header.p, header.len);
        s->n_bytes += header.len;
        *place = (uint16_t) ++s->n_entries;
    }
    pthread_mutex_unlock(&s->lock);
}

size_t locale_cache_choose(struct locale_cache *c, const struct locale_matcher *m, struct str header, uint64_t now_ms, bool *hit)
{
    size_t chosen;

    *hit = true;
    if (header.len == 0 || header.len > ACCEPT_LANGUAGE_MAX)
        return locale_choose(m, STR_NONE);
    const uint64_t hash = siphash(c->seed, header);
    struct shard *s = &c->shards[hash % SHARDS];
    if (recall(s, hash, header, &chosen))
        return chosen;
    *hit = false;
    chosen = locale_choose(m, header);
    keep(s, hash, header, (uint16_t) chosen, now_ms);
    return chosen;
}
