/* SipHash-1-3: words are read in the machine's byte order, because no value leaves the process. */
#include "common/base/siphash.h"

#include <sys/auxv.h>
#include <sys/random.h>

void siphash_seed(uint64_t seed[static 2])
{
    /* The kernel's 16 random bytes for this process remain where getrandom is forbidden (a seccomp filter). */
    memcpy(seed, (const void *) getauxval(AT_RANDOM), 2 * sizeof seed[0]);
    (void) !getrandom(seed, 2 * sizeof seed[0], 0);
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

uint64_t siphash(const uint64_t seed[static 2], struct str key)
{
    uint64_t v[4] = {seed[0] ^ 0x736f6d6570736575, seed[1] ^ 0x646f72616e646f6d, seed[0] ^ 0x6c7967656e657261, seed[1] ^ 0x7465646279746573};

    for (size_t at = 0; at <= key.len; at += 8) {
        size_t n = key.len - at < 8 ? key.len - at : 8;
        uint64_t word = 0;

        if (n > 0)
            memcpy(&word, key.p + at, n);
        if (n < 8)
            word |= (uint64_t) key.len << 56;
        v[3] ^= word;
        sip_round(v);
        v[0] ^= word;
    }
    v[2] ^= 0xff;
    for (int i = 0; i < 3; i++)
        sip_round(v);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}
