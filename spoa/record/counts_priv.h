/* The counters' file and what a process keeps beside it: for counts*.c only. */
#ifndef SPOA_RECORD_COUNTS_PRIV_H
#define SPOA_RECORD_COUNTS_PRIV_H

#include <pthread.h>
#include <stdatomic.h>

#include "spoa/record/counts.h"

enum {
    /* More than are counted apart, so that a slot rests before it is used again: whoever was in the middle of an addition to it has long finished. */
    COUNTS_SLOTS = COUNTS_VERSIONS_MAX + 2,
    COUNTS_ROWS = 64, /* reloads within the life of the longest stream, mostly */
    COUNTS_INDEX = 2 * COUNTS_RULES_MAX,
    COUNTS_ID_WORDS = TOPK_ID_MAX / 8,
    COUNTS_SUMS = sizeof(struct counts_sums) / sizeof(uint64_t)
};
/* Places of struct counts_sums in an array of its numbers. */
#define COUNTS_AT(member) (offsetof(struct counts_sums, member) / sizeof(uint64_t))

/* Everything below is in the file. A process can be killed at any instruction: a change of structure is made ready aside and becomes true by one store,
 * or is repeated by the next to take the lock (counts_repair). Numbers are relaxed; what a state or an index entry publishes is released by it. */

/* A rule of one version. id: padded with NUL. What is added to stands in a cache line of its own. */
struct counts_cell {
    _Alignas(64) _Atomic uint64_t counts[COUNTS_RULE_COUNTS_MAX];
    _Alignas(64) _Atomic uint64_t id[COUNTS_ID_WORDS];
    _Atomic uint64_t carried[COUNTS_RULE_COUNTS_MAX]; /* of versions that were folded; totals only */
    _Atomic uint64_t pending[COUNTS_RULE_COUNTS_MAX]; /* carried as it will be once a fold is through */
    _Atomic uint32_t phase;
};

enum slot_state {
    SLOT_FREE,
    SLOT_OPEN,
    SLOT_CLOSING, /* a fold that begins: pending may be half written */
    SLOT_FOLDING  /* pending is complete: it becomes carried */
};
struct counts_slot {
    _Alignas(64) _Atomic uint32_t state;
    _Atomic uint32_t cohort;
    _Atomic int64_t config_version;
    _Atomic uint64_t uid;        /* of this use of the slot; never 0 */
    _Atomic uint64_t retired_us; /* 0: served */
    _Atomic uint64_t freed_us;
    _Atomic uint32_t n_rules, n_left_out;
};
struct counts_version {
    _Alignas(64) _Atomic uint64_t sums[COUNTS_SUMS];
    /* Open addressing by the hash of phase and id: its upper bits, and the place in rules + 1. 0: empty. */
    _Atomic uint32_t index[COUNTS_INDEX];
    struct counts_cell rules[COUNTS_RULES_MAX];
};

/* One process of HAProxy: it has written the numbers from first to below end, as 64 bits. */
struct counts_row {
    _Alignas(64) _Atomic uint64_t pid; /* 0: free */
    _Atomic uint64_t first, end;
    _Atomic uint64_t seen_ms; /* about when its last record came */
};

struct counts_file {
    _Atomic uint64_t mark, layout; /* written last */
    _Atomic uint64_t last_uid;
    _Atomic uint32_t rows_begun; /* a row has been made */
    struct {
        _Atomic uint32_t valid, row;
        _Atomic uint64_t gone_after;
    } row_end;             /* a row that is being cleared */
    _Atomic uint64_t gone; /* numbers of rows that were cleared */
    _Atomic uint64_t lost, matches_left_out;
    _Alignas(64) _Atomic uint64_t other;
    _Alignas(64) _Atomic uint64_t total[COUNTS_SUMS];
    struct counts_row rows[COUNTS_ROWS];
    struct counts_slot slots[COUNTS_SLOTS];
    struct counts_version versions[COUNTS_SLOTS];
};

struct counts_seen {
    struct {
        uint64_t uid;
        uint64_t sums[COUNTS_SUMS];
        uint64_t rules[COUNTS_RULES_MAX][COUNTS_RULE_COUNTS_MAX];
    } slots[COUNTS_SLOTS];
    uint64_t n_missed;
};

struct counts {
    struct counts_file *file;
    const struct clock *clock;
    int fd;
    pthread_mutex_t structure; /* before the file's lock, which does not hold threads of one process apart */
    struct counts_seen *readers[COUNTS_READERS_MAX];

    pthread_mutex_t top_lock;
    uint64_t top_uid[COUNTS_SLOTS];
    struct topk top[COUNTS_SLOTS];

    /* Intake's thread. Estimates of what was numbered and received, set right at each tick: the gap between them is looked at after every record, since in
     * between a record of another thread may be on its way at any time. */
    size_t last_slot, last_row;
    uint64_t ticked_us;
    uint64_t now_ms; /* of the last tick; while the process was stopped it stood still */
    int64_t numbered, received;
    int64_t low, low_before; /* smallest gap of this second, and of the one before */
    uint64_t second_began_us;
};

/* A rule's id as it is compared. */
struct rule_key {
    enum count_phase phase;
    unsigned n_words;
    uint64_t hash;
    uint64_t words[COUNTS_ID_WORDS];
};
/* False: longer than an id can be, or empty. */
MUSTUSE bool rule_key_set(struct rule_key *key, enum count_phase phase, struct str id);
/* The key of a rule that has one. */
void rule_key_of(struct rule_key *key, const struct counts_cell *cell);
/* NULL: the version has no such rule. */
struct counts_cell *counts_find(struct counts_version *v, const struct rule_key *key);
/* Index of the entry's hash in the first free or equal place; for counts_find and for adding. */
static inline uint32_t rule_key_tag(const struct rule_key *key)
{
    return (uint32_t)(key->hash >> 32) & ~UINT32_C(2047);
}

/* Changes of structure. wait: at most about a second, else not at all. False: it is busy. */
MUSTUSE bool counts_lock(struct counts *c, bool wait);
void counts_unlock(struct counts *c);
/* True when no other process, or other counts_open, has the file. */
bool counts_is_alone(const struct counts *c);

/* With the lock. Brings what a killed process had begun to its end. */
void counts_repair(struct counts *c);
void counts_row_repair(struct counts_file *f);
/* What fold begun is not through goes on. */
void counts_fold(struct counts *c, size_t slot);
/* Versions past their time. */
void counts_retire(struct counts *c);

/* Sets the estimates right; without the lock what another process changes at that time may be missed. */
void counts_estimate(struct counts *c);

static inline uint64_t cell_get(const _Atomic uint64_t *cell)
{
    return atomic_load_explicit(cell, memory_order_relaxed);
}
static inline void cell_set(_Atomic uint64_t *cell, uint64_t n)
{
    atomic_store_explicit(cell, n, memory_order_relaxed);
}
static inline void cell_add(_Atomic uint64_t *cell, uint64_t n)
{
    atomic_fetch_add_explicit(cell, n, memory_order_relaxed);
}
static inline enum slot_state slot_state(const struct counts_slot *s)
{
    return (enum slot_state)atomic_load_explicit(&s->state, memory_order_acquire);
}

#endif
