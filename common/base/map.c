/* The hash map: open addressing with linear probing over SipHash-1-3 keyed by a seed of the map's own. */
#include "common/base/map.h"

#include "common/base/siphash.h"

struct map_slot {
    struct str key;
    void *value;
    uint64_t hash; /* 0: free */
};

void map_init(struct map *m, struct arena *a)
{
    *m = (struct map){.arena = a};
    siphash_seed(m->seed);
}

static uint64_t hash_of(const struct map *m, struct str key)
{
    uint64_t hash = siphash(m->seed, key);

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
