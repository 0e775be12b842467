/* Rate limits: arithmetic of the token bucket, keys, and the store in this process's memory. */
#ifndef COMMON_RATE_RATE_H
#define COMMON_RATE_RATE_H

#include "common/base/arena.h"
#include "common/base/err.h"
#include "common/base/str.h"
#include "common/net/addr.h"

enum { RATE_LIMIT_MAX = 1000000000, RATE_BURST_MAX = 1000000000, RATE_PERIOD_MIN_MS = 1000, RATE_PERIOD_MAX_MS = 24 * 60 * 60 * 1000 };

/* limit tokens flow in per period up to burst; a request takes one. Whole milliseconds throughout. Bounds (checked by
 * rate_params_ok): limit 1..1e9, period 1 s..24 h, burst 1..1e9, burst * period_ms <= 2^51 so that the same sums are exact in doubles. */
struct rate_params {
    uint64_t limit, burst, period_ms;
};
/* Milliseconds as whole seconds, up: waiting that long is enough. 64 bits: a reset may take 2^51 ms. */
uint64_t rate_seconds_up(uint64_t ms);
/* Says in e (path given by the caller) which bound is broken and the largest burst that would fit. */
MUSTUSE bool rate_params_ok(const struct rate_params *p, const char *path, struct err *e);

/* a: tokens x period_ms in the bucket at time b. A key never seen is a full bucket: {0, 0} with fresh = true. */
struct rate_state {
    uint64_t a, b;
};

struct rate_verdict {
    bool allowed;
    uint64_t remaining;      /* whole tokens left after this request */
    uint64_t retry_after_ms; /* until one token is there; 0 when allowed */
    uint64_t reset_ms;       /* until the bucket is full again: the time after which the state may be forgotten */
};

/* One request at now_ms. From a full bucket exactly burst requests pass at one instant; a refused request takes nothing and leaves s as it was,
 * so that a blocked subject costs no write (refill is linear: the same state judged later gives the same sums; a limit changed after the last
 * allowed request counts for the whole time since). Time that ran backwards counts as no time: refill goes on once now_ms has passed b again,
 * and retry_after_ms and reset_ms count that wait in, so waiting retry_after_ms always passes where nothing else consumes. A burst lowered
 * below the content cuts it. */
struct rate_verdict rate_step(const struct rate_params *p, struct rate_state *s, bool fresh, uint64_t now_ms);

/* What a rule's counters are called: its part, made once when the policy compiles. */
struct rate_name {
    struct str prefix;  /* "rl:tb:<period ms>:<rule id>:" */
    uint8_t digest[16]; /* of SHA-256 over prefix */
};
/* prefix is copied into a. Any thread. False: no memory, or the crypto library has no SHA-256. */
MUSTUSE bool rate_name_make(const struct rate_params *p, struct str rule_id, struct arena *a, struct rate_name *out);

/* Builds the text of a subject: a domain byte, then values behind their lengths (4 bytes, big endian), so that no client-chosen value can
 * spell another subject. What does not fit sets b->full. */
enum rate_domain { RATE_DOMAIN_KEY = 1, RATE_DOMAIN_FALLBACK_IP = 2 };
enum { RATE_SUBJECT_MAX = 4096 };
void rate_subject_begin(struct buf *b, enum rate_domain domain);
void rate_subject_value(struct buf *b, struct str value);
void rate_subject_ip(struct buf *b, const struct addr *ip); /* IPv6 cut at /64 */

/* Who is counted: 16 bytes of SHA-256 over the text. Rules that count the same subject share it. */
struct rate_subject {
    uint8_t b[16];
};
MUSTUSE bool rate_subject_hash(struct str text, struct rate_subject *out);

/* The counter's key in Valkey: "<prefix>{<22 characters of base64url>}"; the braces make the subject the cluster's hash tag. */
enum { RATE_KEY_TEXT_MAX = 160 };
void rate_key_put(struct buf *b, const struct rate_name *name, const struct rate_subject *subject);

/* One rule's check of one request. */
enum rate_counted {
    RATE_COUNTED,
    RATE_UNTRACKED,  /* the embedded store is full: passes */
    RATE_UNREADABLE, /* what stands under the key in Valkey is no counter of ours: left alone, not counted */
};
struct rate_call {
    const struct rate_params *params;
    const struct rate_name *name;
    struct rate_subject subject;
    bool enforce;                /* false: a shadow rule */
    struct rate_verdict verdict; /* out; meaningful unless RATE_UNREADABLE */
    enum rate_counted counted;   /* out */
};

/* Counters in this process's memory, shared by all workers: sharded, one short lock a shard, bounded.
 *
 * A bucket that is full again is the same as one never seen, so its entry is forgotten; each insert looks at a few entries for such ones.
 * When the store is full and none was found, a new key is not tracked and passes (n_untracked). The alternatives are worse: one bucket
 * shared by all new keys would punish the innocent, and evicting another key would let an attacker reset a count by flooding. */
struct rate_store;

enum { RATE_STORE_KEYS_MAX = 1 << 27 };
/* max_keys: entries in all, 1..RATE_STORE_KEYS_MAX; memory is taken as entries come (48 bytes each and 4 to 8 of index, in pieces of 3 KiB)
 * and given back by rate_store_free. An empty store takes under 10 bytes for each of its keys and a few hundred. */
MUSTUSE bool rate_store_new(struct rate_store **out, size_t max_keys, struct err *e);
void rate_store_free(struct rate_store **s);
/* Each call is an independent counter; all are charged, whatever another call's verdict or kind is. now_ms: from a clock that never runs
 * backwards. Any thread. */
void rate_store_check(struct rate_store *s, struct rate_call *calls, size_t n, uint64_t now_ms);
/* Looks at one of so many parts of the entries (parts >= 1) for buckets that are full again, beyond those that inserts find, so that places are free and
 * n_keys is true although no new key comes. The memory of an entry is kept for another one. Returns n_keys. Any thread; a lock is held for 64
 * entries at a time. */
size_t rate_store_sweep(struct rate_store *s, uint32_t parts, uint64_t now_ms);
struct rate_store_stats {
    size_t n_keys, max_keys, memory_bytes;
    uint64_t n_untracked, n_expired;
};
void rate_store_stats(struct rate_store *s, struct rate_store_stats *out);

#endif
