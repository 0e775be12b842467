/* The hash of tables whose keys come from clients: without the seed, keys that collide can't be found. */
#ifndef COMMON_BASE_SIPHASH_H
#define COMMON_BASE_SIPHASH_H

#include "common/base/str.h"

/* Random. Any thread. */
void siphash_seed(uint64_t seed[static 2]);
/* SipHash-1-3 (Aumasson, Bernstein); differs between machines of different byte order. */
uint64_t siphash(const uint64_t seed[static 2], struct str key);

#endif
