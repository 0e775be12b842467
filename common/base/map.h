/* A hash map from byte strings to pointers, filled once and then read: for compiling, name look-ups and duplicate checks. */
#ifndef COMMON_BASE_MAP_H
#define COMMON_BASE_MAP_H

#include "common/base/arena.h"

struct map_slot;

/* Keys are borrowed and must live as long as the map. Reads from several threads are fine once it is filled. */
struct map {
    struct arena *arena;
    struct map_slot *slots;
    size_t n, n_slots;
    uint64_t seed[2]; /* random per map: hostile keys cannot force collisions */
};

void map_init(struct map *m, struct arena *a);
/* False when memory is refused. If the key is there already its value stays and *existing is set to it, else NULL. */
MUSTUSE bool map_add(struct map *m, struct str key, void *value, void **existing);
void *map_get(const struct map *m, struct str key); /* NULL: absent */

#endif
