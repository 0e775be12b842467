/* Counters in this process's memory: up to 64 hash tables, each behind its own short lock, whose entries come in small pieces of memory. */
#include "common/rate/rate.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/random.h>

enum {
    SHARDS_MAX = 64,
    SHARD_KEYS_MIN = 128, /* a store of few keys has fewer shards: each takes a piece of memory with its first key */
    CHUNK_ENTRIES = 64,   /* one piece of memory: 3 KiB, so taking one under the lock is short */
    SWEEP_ENTRIES = 8,    /* looked at per insert: more than one, so that forgetting outruns inserting */
    CACHE_LINE = 64
};

/* What a counter is filed under: rule and subject mixed. Both are digests, so that nobody can choose the one to meet the other; or the store has one name
 * only, and the subjects are what they are. */
struct rate_key {
    uint8_t b[16];
};

/* Entries of a shard are numbered from 1; 0 means none. */
struct entry {
    struct rate_key key;
    struct rate_state state;
    uint64_t forget_at_ms; /* the bucket is full again from here on */
    uint32_t next;         /* in the hash chain, or in the free list */
    bool in_use;
};

struct shard {
    _Alignas(CACHE_LINE) pthread_mutex_t lock;
    uint32_t *heads;       /* first entry of each chain */
    struct entry **chunks; /* n_chunks are there, of chunks_max */
    uint32_t n_chunks, chunks_max;
    uint32_t n_numbered;   /* entries 1..n_numbered have been used at some time */
    uint32_t free_head;
    uint32_t sweep_at;     /* the entry that the next sweep looks at first */
    uint64_t n_untracked, n_expired;
};

struct rate_store {
    _Alignas(CACHE_LINE) _Atomic size_t n_keys;
    _Alignas(CACHE_LINE) size_t max_keys;
    uint32_t n_shards; /* a power of two */
    uint32_t n_heads;  /* of each shard; a power of two */
    uint64_t seed[2];  /* secret: a client that picks its keys can't aim at one chain */
    uint32_t *heads;   /* of all shards; untouched pages of it take no memory */
    struct entry **chunks;
    struct shard shards[];
};

static uint64_t hash_of(const struct rate_store *s, const struct rate_key *key)
{
    uint64_t half[2];
    memcpy(half, key->b, sizeof half);
    unsigned __int128 product = (unsigned __int128) (half[0] ^ s->seed[0]) * (half[1] ^ s->seed[1]);
    return (uint64_t) product ^ (uint64_t) (product >> 64);
}

static uint32_t *head_of(const struct rate_store *s, struct shard *sh, uint64_t hash)
{
    return &sh->heads[(hash >> 6) & (s->n_heads - 1)];
}

static struct entry *entry_at(const struct shard *sh, uint32_t number)
{
    return &sh->chunks[(number - 1) / CHUNK_ENTRIES][(number - 1) % CHUNK_ENTRIES];
}

static struct entry *find(const struct shard *sh, uint32_t number, const struct rate_key *key)
{
    while (number) {
        struct entry *at = entry_at(sh, number);
        if (memcmp(&at->key, key, sizeof *key) == 0)
            return at;
        number = at->next;
    }
    return NULL;
}

static void forget(struct rate_store *s, struct shard *sh, uint32_t number)
{
    struct entry *gone = entry_at(sh, number);
    uint32_t *link = head_of(s, sh, hash_of(s, &gone->key));

    while (*link != number)
        link = &entry_at(sh, *link)->next;
    *link = gone->next;
    gone->in_use = false;
    gone->next = sh->free_head;
    sh->free_head = number;
    sh->n_expired++;
    atomic_fetch_sub_explicit(&s->n_keys, 1, memory_order_relaxed);
}

/* Looks at the next entries, at most all of them once. */
static void sweep(struct rate_store *s, struct shard *sh, uint32_t n_entries, uint64_t now_ms)
{
    uint32_t n = sh->n_numbered < n_entries ? sh->n_numbered : n_entries;

    for (; n; n--) {
        if (sh->sweep_at >= sh->n_numbered)
            sh->sweep_at = 0;
        sh->sweep_at++;
        struct entry *at = entry_at(sh, sh->sweep_at);
        if (at->in_use && at->forget_at_ms <= now_ms)
            forget(s, sh, sh->sweep_at);
    }
}

static bool reserve_key(struct rate_store *s)
{
    if (atomic_fetch_add_explicit(&s->n_keys, 1, memory_order_relaxed) < s->max_keys)
        return true;
    atomic_fetch_sub_explicit(&s->n_keys, 1, memory_order_relaxed);
    return false;
}

/* An unused entry's number, or 0 when there is no memory for one. */
static uint32_t take_number(struct shard *sh)
{
    if (sh->free_head) {
        uint32_t number = sh->free_head;
        sh->free_head = entry_at(sh, number)->next;
        return number;
    }
    if (sh->n_numbered == sh->n_chunks * CHUNK_ENTRIES) {
        struct entry *chunk = sh->n_chunks < sh->chunks_max ? calloc(CHUNK_ENTRIES, sizeof *chunk) : NULL;
        if (!chunk)
            return 0;
        sh->chunks[sh->n_chunks++] = chunk;
    }
    return ++sh->n_numbered;
}

/* NULL: the store is full. */
static struct entry *insert(struct rate_store *s, struct shard *sh, uint32_t *head, const struct rate_key *key, uint64_t now_ms)
{
    sweep(s, sh, SWEEP_ENTRIES, now_ms);
    if (!reserve_key(s))
        return NULL;
    uint32_t number = take_number(sh);
    if (!number) {
        atomic_fetch_sub_explicit(&s->n_keys, 1, memory_order_relaxed);
        return NULL;
    }
    struct entry *new = entry_at(sh, number);
    *new = (struct entry){.key = *key, .next = *head, .in_use = true};
    *head = number;
    return new;
}

static struct rate_key key_of(const struct rate_call *call)
{
    struct rate_key key;
    for (size_t i = 0; i < sizeof key.b; i++)
        key.b[i] = call->name->digest[i] ^ call->subject.b[i];
    return key;
}

static void check_one(struct rate_store *s, struct rate_call *call, uint64_t now_ms)
{
    struct rate_key key = key_of(call);
    uint64_t hash = hash_of(s, &key);
    struct shard *sh = &s->shards[hash & (s->n_shards - 1)];

    pthread_mutex_lock(&sh->lock);
    uint32_t *head = head_of(s, sh, hash);
    struct entry *at = find(sh, *head, &key);
    bool fresh = !at || at->forget_at_ms <= now_ms;
    if (!at)
        at = insert(s, sh, head, &key, now_ms);
    if (at) {
        call->verdict = rate_step(call->params, &at->state, fresh, now_ms);
        at->forget_at_ms = now_ms + call->verdict.reset_ms;
    } else {
        call->verdict = (struct rate_verdict){.allowed = true, .remaining = call->params->burst};
        sh->n_untracked++;
    }
    call->counted = at ? RATE_COUNTED : RATE_UNTRACKED;
    pthread_mutex_unlock(&sh->lock);
}

void rate_store_check(struct rate_store *s, struct rate_call *calls, size_t n, uint64_t now_ms)
{
    for (size_t i = 0; i < n; i++)
        check_one(s, &calls[i], now_ms);
}

/* An insert that finds the store full adds one to n_keys for a moment. */
static size_t keys_of(const struct rate_store *s)
{
    size_t n_keys = atomic_load_explicit(&s->n_keys, memory_order_relaxed);
    return n_keys < s->max_keys ? n_keys : s->max_keys;
}

static uint32_t entries_of(struct shard *sh)
{
    pthread_mutex_lock(&sh->lock);
    uint32_t n = sh->n_numbered;
    pthread_mutex_unlock(&sh->lock);
    return n;
}

size_t rate_store_sweep(struct rate_store *s, uint32_t parts, uint64_t now_ms)
{
    for (size_t i = 0; i < s->n_shards; i++) {
        struct shard *sh = &s->shards[i];
        /* A piece of memory at a time, so that whoever is checked meanwhile waits for no more than that. */
        for (uint32_t left = (entries_of(sh) + parts - 1) / parts; left > 0;) {
            uint32_t n = left < CHUNK_ENTRIES ? left : CHUNK_ENTRIES;
            pthread_mutex_lock(&sh->lock);
            sweep(s, sh, n, now_ms);
            pthread_mutex_unlock(&sh->lock);
            left -= n;
        }
    }
    return keys_of(s);
}

static uint32_t power_of_two_from(size_t n)
{
    uint32_t p = 1;
    while (p < n)
        p *= 2;
    return p;
}

static uint32_t shards_for(size_t max_keys)
{
    uint32_t n = SHARDS_MAX;
    while (n > 1 && max_keys / n < SHARD_KEYS_MIN)
        n /= 2;
    return n;
}

static bool allocate(struct rate_store *s)
{
    size_t per_shard = (s->max_keys + s->n_shards - 1) / s->n_shards;
    /* Keys spread by a secret hash: no shard ever gets near twice its share once that is a few chunks. */
    uint32_t chunks_max = (uint32_t) (2 * (per_shard / CHUNK_ENTRIES) + 2);

    s->n_heads = power_of_two_from(per_shard);
    s->heads = calloc((size_t) s->n_heads * s->n_shards, sizeof *s->heads);
    s->chunks = calloc((size_t) chunks_max * s->n_shards, sizeof(struct entry *));
    if (!s->heads || !s->chunks)
        return false;
    for (size_t i = 0; i < s->n_shards; i++) {
        s->shards[i].heads = s->heads + i * s->n_heads;
        s->shards[i].chunks = s->chunks + i * chunks_max;
        s->shards[i].chunks_max = chunks_max;
    }
    return getrandom(s->seed, sizeof s->seed, 0) == (ssize_t) sizeof s->seed;
}

bool rate_store_new(struct rate_store **out, size_t max_keys, struct err *e)
{
    if (max_keys < 1 || max_keys > RATE_STORE_KEYS_MAX)
        return err_set(e, ERR_BAD_VALUE, "", "a rate-limit store for %zu keys; it must be 1 to %d", max_keys, RATE_STORE_KEYS_MAX);
    uint32_t n_shards = shards_for(max_keys);
    size_t size_bytes = sizeof(struct rate_store) + n_shards * sizeof(struct shard);
    struct rate_store *s = aligned_alloc(CACHE_LINE, size_bytes);
    if (!s)
        return err_set(e, ERR_NO_MEMORY, "", "no memory for a rate-limit store");
    memset(s, 0, size_bytes);
    s->n_shards = n_shards;
    for (size_t i = 0; i < n_shards; i++)
        pthread_mutex_init(&s->shards[i].lock, NULL); /* with default attributes it can't fail on Linux */
    s->max_keys = max_keys;
    if (!allocate(s)) {
        rate_store_free(&s);
        return err_set(e, ERR_NO_MEMORY, "", "no memory or randomness for a rate-limit store of %zu keys", max_keys);
    }
    *out = s;
    return true;
}

void rate_store_free(struct rate_store **s)
{
    if (!*s)
        return;
    for (size_t i = 0; i < (*s)->n_shards; i++) {
        struct shard *sh = &(*s)->shards[i];
        for (uint32_t c = 0; c < sh->n_chunks; c++)
            free(sh->chunks[c]);
        pthread_mutex_destroy(&sh->lock);
    }
    free((*s)->heads);
    free((*s)->chunks);
    free(*s);
    *s = NULL;
}

void rate_store_stats(struct rate_store *s, struct rate_store_stats *out)
{
    struct rate_store_stats sum = {.max_keys = s->max_keys};

    sum.memory_bytes = sizeof *s + s->n_shards * sizeof(struct shard) + (size_t) s->n_heads * s->n_shards * sizeof *s->heads;
    for (size_t i = 0; i < s->n_shards; i++) {
        struct shard *sh = &s->shards[i];
        pthread_mutex_lock(&sh->lock);
        sum.memory_bytes += sh->chunks_max * sizeof(struct entry *) + (size_t) sh->n_chunks * CHUNK_ENTRIES * sizeof(struct entry);
        sum.n_untracked += sh->n_untracked;
        sum.n_expired += sh->n_expired;
        pthread_mutex_unlock(&sh->lock);
    }
    sum.n_keys = keys_of(s);
    *out = sum;
}
