/* Challenges: how `edge-spoa doctor` knows that one certain request reached an agent.
 *
 * A challenge is a random name and a random key, told once to whoever asks the agent's internal listener. The name travels in the header
 * Edge-Doctor of one request to the front door; the key never does. The agent that finds a live name of its own there answers with
 * HMAC-SHA256(key, the header's nonce): neither the upstream nor anything on the way can make that up, nor can it be answered twice. */
#ifndef SPOA_DOCTOR_CHALLENGE_H
#define SPOA_DOCTOR_CHALLENGE_H

#include <pthread.h>
#include <stdatomic.h>

#include "common/base/str.h"

enum {
    CHALLENGE_HEX = 32,       /* hex digits of a name, a key, a nonce: 128 bits */
    CHALLENGE_PROOF_HEX = 64, /* of a proof */
    CHALLENGE_VALID_MS = 30000,
    CHALLENGES_MAX = 64,       /* outstanding at once; the oldest makes room */
    CHALLENGE_NAMES_MAX = 8,   /* in one header */
    CHALLENGE_HEADER_MAX = (1 + CHALLENGE_NAMES_MAX) * (CHALLENGE_HEX + 1),
};

/* Lower-case hex digits, not terminated. */
struct challenge {
    char name[CHALLENGE_HEX], key[CHALLENGE_HEX];
};

/* All that one agent has outstanding. Any thread: a short lock, taken only while there are some. */
struct challenges {
    _Atomic uint64_t until_ms; /* when the newest expires; 0: none is outstanding */
    pthread_mutex_t lock;
    struct challenge_slot {
        struct challenge challenge;
        uint64_t until_ms; /* 0: free */
    } slots[CHALLENGES_MAX];
};

void challenges_init(struct challenges *c);
void challenges_release(struct challenges *c);

/* now_ms: of one monotonic clock for all calls. False: the kernel gives no randomness. */
MUSTUSE bool challenges_issue(struct challenges *c, uint64_t now_ms, struct challenge *out);
/* One relaxed load: requests ask it before anything else. */
static inline bool challenges_outstanding(const struct challenges *c)
{
    return atomic_load_explicit(&c->until_ms, memory_order_relaxed) != 0;
}
/* header: the value of Edge-Doctor, STR_NONE without one. True when it names a live challenge, which is used up then; false, with proof
 * untouched, for anything else. Forgets what has expired. */
MUSTUSE bool challenges_redeem(struct challenges *c, struct str header, uint64_t now_ms, char proof[static CHALLENGE_PROOF_HEX]);

/* 128 random bits. False: the kernel gives no randomness. */
MUSTUSE bool challenge_random(char hex[static CHALLENGE_HEX]);
/* nonce: CHALLENGE_HEX hex digits. False: no memory; proof is untouched then. */
MUSTUSE bool challenge_prove(const struct challenge *c, const char nonce[static CHALLENGE_HEX], char proof[static CHALLENGE_PROOF_HEX]);

#endif
