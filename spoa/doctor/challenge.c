/* The table of outstanding challenges, and the header that redeems one: "nonce,name,name". */
#include "spoa/doctor/challenge.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <sys/random.h>

#include "common/base/codec.h"

bool challenge_random(char hex[static CHALLENGE_HEX])
{
    uint8_t bytes[CHALLENGE_HEX / 2];
    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t) sizeof bytes)
        return false;
    codec_hex(bytes, sizeof bytes, hex);
    return true;
}

bool challenge_prove(const struct challenge *c, const char nonce[static CHALLENGE_HEX], char proof[static CHALLENGE_PROOF_HEX])
{
    uint8_t digest[CHALLENGE_PROOF_HEX / 2];
    if (HMAC(EVP_sha256(), c->key, sizeof c->key, (const uint8_t *) nonce, CHALLENGE_HEX, digest, NULL) == NULL)
        return false;
    codec_hex(digest, sizeof digest, proof);
    return true;
}

void challenges_init(struct challenges *c)
{
    memset(c, 0, sizeof *c);
    pthread_mutex_init(&c->lock, NULL);
}

void challenges_release(struct challenges *c)
{
    pthread_mutex_destroy(&c->lock);
    OPENSSL_cleanse(c->slots, sizeof c->slots);
}

static void slot_clear(struct challenge_slot *slot)
{
    OPENSSL_cleanse(slot, sizeof *slot);
}

/* Forgets what has expired; what is left says until when requests have to look. */
static void settle(struct challenges *c, uint64_t now_ms)
{
    uint64_t until_ms = 0;
    for (size_t i = 0; i < CHALLENGES_MAX; i++) {
        struct challenge_slot *slot = &c->slots[i];
        if (slot->until_ms != 0 && slot->until_ms <= now_ms)
            slot_clear(slot);
        if (slot->until_ms > until_ms)
            until_ms = slot->until_ms;
    }
    atomic_store_explicit(&c->until_ms, until_ms, memory_order_relaxed);
}

/* A free slot counts as older than any that is taken. */
static struct challenge_slot *oldest(struct challenges *c)
{
    struct challenge_slot *found = &c->slots[0];
    for (size_t i = 1; i < CHALLENGES_MAX; i++)
        if (c->slots[i].until_ms < found->until_ms)
            found = &c->slots[i];
    return found;
}

bool challenges_issue(struct challenges *c, uint64_t now_ms, struct challenge *out)
{
    struct challenge fresh;
    if (!challenge_random(fresh.name) || !challenge_random(fresh.key))
        return false;
    pthread_mutex_lock(&c->lock);
    *oldest(c) = (struct challenge_slot){.challenge = fresh, .until_ms = now_ms + CHALLENGE_VALID_MS};
    settle(c, now_ms);
    pthread_mutex_unlock(&c->lock);
    *out = fresh;
    OPENSSL_cleanse(&fresh, sizeof fresh);
    return true;
}

static bool word_ok(struct str word)
{
    for (size_t i = 0; i < word.len; i++)
        if (!ascii_is_digit(word.p[i]) && (word.p[i] < 'a' || word.p[i] > 'f'))
            return false;
    return word.len == CHALLENGE_HEX;
}

/* The words of a header, each of CHALLENGE_HEX digits. 0: it is not one of ours. */
static size_t words_of(struct str header, struct str words[static 1 + CHALLENGE_NAMES_MAX])
{
    size_t n = 0;
    if (header.len > CHALLENGE_HEADER_MAX)
        return 0;
    for (size_t at = 0; at <= header.len; n++) {
        struct str rest = str_sub(header, at, header.len);
        struct str word = str_sub(rest, 0, str_find_byte(rest, ','));
        at += word.len + 1;
        word = str_trim(word);
        if (n > CHALLENGE_NAMES_MAX || !word_ok(word))
            return 0;
        words[n] = word;
    }
    return n;
}

/* Looks at every slot, whatever it finds: how long that takes says nothing about a name. */
static struct challenge_slot *slot_named(struct challenges *c, struct str name)
{
    struct challenge_slot *found = NULL;
    for (size_t i = 0; i < CHALLENGES_MAX; i++)
        if (CRYPTO_memcmp(c->slots[i].challenge.name, name.p, CHALLENGE_HEX) == 0)
            found = &c->slots[i];
    return found;
}

bool challenges_redeem(struct challenges *c, struct str header, uint64_t now_ms, char proof[static CHALLENGE_PROOF_HEX])
{
    struct str words[1 + CHALLENGE_NAMES_MAX];
    const size_t n = words_of(header, words);
    const bool expired = atomic_load_explicit(&c->until_ms, memory_order_relaxed) <= now_ms;
    bool proven = false;
    if (n < 2 && !expired)
        return false;
    pthread_mutex_lock(&c->lock);
    settle(c, now_ms);
    for (size_t i = 1; i < n && !proven; i++) {
        struct challenge_slot *slot = slot_named(c, words[i]);
        if (slot == NULL)
            continue;
        proven = challenge_prove(&slot->challenge, words[0].p, proof);
        slot_clear(slot);
    }
    settle(c, now_ms);
    pthread_mutex_unlock(&c->lock);
    return proven;
}
