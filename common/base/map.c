/* The hash map: open addressing with linear probing over SipHash-1-3 keyed by a seed of the map's own. */
#include "common/base/map.h"

#include <sys/auxv.h>
#include <sys/random.h>

struct map_slot {
    struct str key;
    void *value;
    uint64_t hash; /* 0: free */
};

void map_init(struct map *m, struct arena *a)
{
    *m = (struct map){.arena = a};
    /* The kernel's 16 random bytes for this process remain where getrandom is forbidden (a seccomp filter). */
    memcpy(m->seed, (const void *)getauxval(AT_RANDOM), sizeof(m->seed));
    (void)!getrandom(m->seed, sizeof(m->seed), 0);
}

static uint64_t rotate(uint64_t x, unsigned n)
{
    return x << n | x >> (64 - n);
}

static void sip_round(uint64_t v[4])
{
    v[0] += v[1];
    v[1] = rotate(v[1], 13) ^ v[0];
    v[0] = rotate(v[0], 32);
    v[2] += v[3];
    v[3] = rotate(v[3], 16) ^ v[2];
    v[0] += v[3];
    v[3] = rotate(v[3], 21) ^ v[0];
    v[2] += v[1];
    v[1] = rotate(v[1], 17) ^ v[2];
    v[2] = rotate(v[2], 32);
}

/* SipHash-1-3 (Aumasson, Bernstein): without the seed, keys that collide can't be found. Words are read in the machine's
 * byte order, because no value leaves the process. */
static uint64_t hash_of(const struct map *m, struct str key)
{
    uint64_t v[4] = {m->seed[0] ^ 0x736f6d6570736575, m->seed[1] ^ 0x646f72616e646f6d, m->seed[0] ^ 0x6c7967656e657261,
                     m->seed[1] ^ 0x7465646279746573};
    uint64_t hash;

    for (size_t at = 0; at <= key.len; at += 8) {
        size_t n = key.len - at < 8 ? key.len - at : 8;
        uint64_t word = 0;

        if (n > 0)
            memcpy(&word, key.p + at, n);
        if (n < 8)
            word |= (uint64_t)key.len << 56;
        v[3] ^= word;
        sip_round(v);
        v[0] ^= word;
    }
    v[2] ^= 0xff;
    for (int i = 0; i < 3; i++)
        sip_round(v);
    hash = v[0] ^ v[1] ^ v[2] ^ v[3];
    return hash == 0 ? 1 : hash;
}

/* The slot that holds key, or the free one where it belongs. There always is a free one. */
static struct map_slot *slot_of(const struct map *m, struct str key, uint64_t hash)
{
    size_t i = hash & (m->n_slots - 1);

    while (m->slots[i].hash != 0 && !(m->slots[i].hash == hash && str_eq(m->slots[i].key, key)))
        i = (i + 1) & (m->n_slots - 1);
    return &m->slots[i];
}

/* Old slots stay in the arena: doubling makes that at most as much again as the live ones. */
static bool grow(struct map *m)
{
    struct map bigger = *m;

    if (m->n < m->n_slots / 4 * 3)
        return true;
    bigger.n_slots = m->n_slots == 0 ? 16 : m->n_slots * 2;
    bigger.slots = ARENA_NEW_N(m->arena, bigger.n_slots, struct map_slot);
    if (bigger.slots == NULL)
        return false;
    for (size_t i = 0; i < m->n_slots; i++)
        if (m->slots[i].hash != 0)
            *slot_of(&bigger, m->slots[i].key, m->slots[i].hash) = m->slots[i];
    *m = bigger;
    return true;
}

bool map_add(struct map *m, struct str key, void *value, void **existing)
{
    uint64_t hash = hash_of(m, key);
    struct map_slot *slot;

    if (!grow(m))
        return false;
    slot = slot_of(m, key, hash);
    if (slot->hash != 0) {
        *existing = slot->value;
        return true;
    }
    *slot = (struct map_slot){.key = key, .value = value, .hash = hash};
    m->n++;
    *existing = NULL;
    return true;
}

void *map_get(const struct map *m, struct str key)
{
    struct map_slot *slot;

    if (m->n == 0)
        return NULL;
    slot = slot_of(m, key, hash_of(m, key));
    return slot->hash == 0 ? NULL : slot->value;
}
