/* What was counted, for those who tell it: totals, rules, and what is new to a reader. */
#include <endian.h>
#include <stdlib.h>

#include "spoa/record/counts_priv.h"

_Static_assert(sizeof(struct counts_sums) % sizeof(uint64_t) == 0, "sums are read as an array");

void counts_totals(const struct counts *c, struct counts_sums *out)
{
    uint64_t sums[COUNTS_SUMS];

    for (size_t i = 0; i < COUNTS_SUMS; i++)
        sums[i] = cell_get(&c->file->total[i]);
    memcpy(out, sums, sizeof(*out));
}

/* Its bytes, which out holds. */
static struct str id_read(const struct counts_cell *cell, char out[static TOPK_ID_MAX])
{
    size_t len = 0;

    for (size_t i = 0; i < COUNTS_ID_WORDS; i++) {
        const uint64_t word = htole64(cell_get(&cell->id[i]));

        memcpy(out + 8 * i, &word, sizeof(word));
    }
    while (len < TOPK_ID_MAX && out[len] != '\0')
        len++;
    return (struct str){out, len};
}

static size_t n_rules_of(const struct counts *c, size_t slot)
{
    const uint32_t n = atomic_load_explicit(&c->file->slots[slot].n_rules, memory_order_acquire);

    return n < COUNTS_RULES_MAX ? n : COUNTS_RULES_MAX;
}

/* The rule's counts of all open versions, what they carry included. False: an earlier version than slot has it, or this place was never finished. */
static bool rule_sum(const struct counts *c, size_t slot, const struct counts_cell *cell, uint64_t sums[static COUNTS_RULE_COUNTS_MAX])
{
    struct rule_key key;

    rule_key_of(&key, cell);
    memset(sums, 0, COUNTS_RULE_COUNTS_MAX * sizeof(*sums));
    for (size_t i = 0; i < COUNTS_SLOTS; i++) {
        if (slot_state(&c->file->slots[i]) != SLOT_OPEN)
            continue;
        const struct counts_cell *of = counts_find(&c->file->versions[i], &key);

        if ((i < slot && of != NULL) || (i == slot && of != cell))
            return false;
        for (size_t k = 0; of != NULL && k < COUNTS_RULE_COUNTS_MAX; k++)
            sums[k] += cell_get(&of->counts[k]) + cell_get(&of->carried[k]);
    }
    return true;
}

static void each_rule_of(struct counts *c, size_t slot, enum count_phase phase, void (*fn)(void *ctx, const struct counts_rule *rule), void *ctx)
{
    const size_t n = n_rules_of(c, slot);

    for (size_t i = 0; i < n; i++) {
        const struct counts_cell *cell = &c->file->versions[slot].rules[i];
        struct counts_rule rule = {.phase = phase};
        char id[TOPK_ID_MAX];

        if (atomic_load_explicit(&cell->phase, memory_order_relaxed) != phase || !rule_sum(c, slot, cell, rule.counts))
            continue;
        rule.id = id_read(cell, id);
        fn(ctx, &rule);
    }
}

void counts_each_rule(struct counts *c, void (*fn)(void *ctx, const struct counts_rule *rule), void *ctx)
{
    const bool locked = counts_lock(c, true); /* else a process was stopped in the middle of a change: its numbers may be seen half moved */

    for (unsigned phase = 0; phase < COUNT_PHASE_N; phase++)
        for (size_t slot = 0; slot < COUNTS_SLOTS; slot++)
            if (slot_state(&c->file->slots[slot]) == SLOT_OPEN)
                each_rule_of(c, slot, (enum count_phase)phase, fn, ctx);
    if (locked)
        counts_unlock(c);
}

/* One version's news, for the time of a call. */
struct news {
    struct counts_delta delta;
    struct counts_sums sums;
    struct counts_rule rules[COUNTS_RULES_MAX];
    char ids[COUNTS_RULES_MAX][TOPK_ID_MAX];
    struct topk top;
    const struct topk_entry *largest[COUNTS_TOP_REPORTED];
};

static bool sums_news(const struct counts *c, size_t slot, struct counts_seen *seen, struct news *news)
{
    uint64_t deltas[COUNTS_SUMS];
    bool any = false;

    for (size_t i = 0; i < COUNTS_SUMS; i++) {
        const uint64_t now = cell_get(&c->file->versions[slot].sums[i]);

        deltas[i] = now - seen->slots[slot].sums[i];
        seen->slots[slot].sums[i] = now;
        any = any || deltas[i] > 0;
    }
    memcpy(&news->sums, deltas, sizeof(news->sums));
    news->delta.sums = &news->sums;
    return any;
}

static bool rules_news(const struct counts *c, size_t slot, struct counts_seen *seen, struct news *news)
{
    const size_t n = n_rules_of(c, slot);
    size_t n_new = 0;

    for (size_t i = 0; i < n; i++) {
        const struct counts_cell *cell = &c->file->versions[slot].rules[i];
        struct counts_rule *rule = &news->rules[n_new];
        uint64_t any = 0;

        for (size_t k = 0; k < COUNTS_RULE_COUNTS_MAX; k++) {
            const uint64_t now = cell_get(&cell->counts[k]);

            rule->counts[k] = now - seen->slots[slot].rules[i][k];
            seen->slots[slot].rules[i][k] = now;
            any |= rule->counts[k];
        }
        if (any == 0)
            continue;
        rule->phase = (enum count_phase)atomic_load_explicit(&cell->phase, memory_order_relaxed);
        rule->id = id_read(cell, news->ids[n_new++]);
    }
    news->delta.rules = news->rules;
    news->delta.n_rules = n_new;
    return n_new > 0;
}

static void top_news(struct counts *c, size_t slot, uint64_t uid, bool forget, struct news *news)
{
    topk_clear(&news->top);
    pthread_mutex_lock(&c->top_lock);
    if (c->top_uid[slot] == uid) {
        const size_t n = c->top[slot].n;

        memcpy(news->top.entries, c->top[slot].entries, n * sizeof(news->top.entries[0]));
        news->top.n = n;
        if (forget)
            topk_clear(&c->top[slot]);
    }
    pthread_mutex_unlock(&c->top_lock);
    news->delta.top = news->largest;
    news->delta.n_top = topk_largest(&news->top, news->largest, COUNTS_TOP_REPORTED);
}

/* With the lock. */
static bool version_news(struct counts *c, size_t slot, struct counts_seen *seen, bool forget, struct news *news)
{
    const struct counts_slot *s = &c->file->slots[slot];

    if (slot_state(s) != SLOT_OPEN)
        return false;
    const uint64_t uid = cell_get(&s->uid);

    if (seen->slots[slot].uid != uid) {
        memset(&seen->slots[slot], 0, sizeof(seen->slots[slot]));
        seen->slots[slot].uid = uid;
    }
    news->delta.config_version = atomic_load_explicit(&s->config_version, memory_order_relaxed);
    news->delta.cohort = (enum cohort)atomic_load_explicit(&s->cohort, memory_order_relaxed);
    const bool sums = sums_news(c, slot, seen, news), rules = rules_news(c, slot, seen, news);

    top_news(c, slot, uid, forget, news);
    return sums || rules;
}

static bool reader_begin(struct counts *c, struct counts_reader *reader)
{
    bool ok = !reader->attached;

    if (reader->seen != NULL)
        return true;
    reader->seen = calloc(1, sizeof(*reader->seen));
    if (reader->seen == NULL)
        return false;
    pthread_mutex_lock(&c->structure);
    for (size_t i = 0; !ok && i < COUNTS_READERS_MAX; i++)
        if (c->readers[i] == NULL) {
            c->readers[i] = reader->seen;
            ok = true;
        }
    pthread_mutex_unlock(&c->structure);
    if (!ok) {
        free(reader->seen);
        reader->seen = NULL;
    }
    return ok;
}

bool counts_read(struct counts *c, struct counts_reader *reader, bool forget, void (*fn)(void *ctx, const struct counts_delta *delta), void *ctx)
{
    struct news *news = calloc(1, sizeof(*news));

    if (news == NULL || !reader_begin(c, reader)) {
        free(news);
        return false;
    }
    bool locked = true;

    for (size_t slot = 0; slot < COUNTS_SLOTS; slot++) {
        locked = counts_lock(c, locked); /* waits once */
        if (!locked) /* of this process, no other thread changes anything meanwhile */
            pthread_mutex_lock(&c->structure);
        const bool any = version_news(c, slot, reader->seen, forget, news);

        reader->n_missed = reader->seen->n_missed;
        if (locked)
            counts_unlock(c);
        else
            pthread_mutex_unlock(&c->structure);
        if (any)
            fn(ctx, &news->delta);
    }
    free(news);
    return true;
}

void counts_reader_release(struct counts *c, struct counts_reader *reader)
{
    pthread_mutex_lock(&c->structure);
    for (size_t i = 0; i < COUNTS_READERS_MAX; i++)
        if (c->readers[i] != NULL && c->readers[i] == reader->seen)
            c->readers[i] = NULL;
    pthread_mutex_unlock(&c->structure);
    free(reader->seen);
    *reader = (struct counts_reader){.seen = NULL};
}
