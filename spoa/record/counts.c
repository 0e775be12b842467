/* Counts one request: its totals, its version, its rules. */
#include <endian.h>

#include "spoa/record/counts_priv.h"

enum rule_count {
#define RULE_COUNT_ROW(phase, id, letter, name, meaning) RULE_COUNT_##phase##_##id,
#include "schemas/rule_counts.def"
#undef RULE_COUNT_ROW
    RULE_COUNT_N
};
/* A count's place among those of its phase: the rows of a phase stand together. */
enum { FIRST_CONFIG = RULE_COUNT_CONFIG_MATCHED, FIRST_RATE = RULE_COUNT_RATE_CHECKED, FIRST_HEADER = RULE_COUNT_HEADER_MATCHED };
#define PLACE(phase, id) (RULE_COUNT_##phase##_##id - FIRST_##phase)

#define RULE_COUNT_ROW(phase, id, letter, name, meaning) \
    _Static_assert(PLACE(phase, id) >= 0 && PLACE(phase, id) < COUNTS_RULE_COUNTS_MAX, "a phase's rows stand together and are at most eight");
#include "schemas/rule_counts.def"
#undef RULE_COUNT_ROW

const char *count_phase_name(enum count_phase p)
{
    static const char *const names[] = {"config", "rate_limit", "request_headers"};

    return p < COUNT_PHASE_N ? names[p] : "unknown";
}

const char *const *count_names(enum count_phase p)
{
    static const char *const names[COUNT_PHASE_N][COUNTS_RULE_COUNTS_MAX + 1] = {
#define RULE_COUNT_ROW(phase, id, letter, name, meaning) [COUNT_##phase][PLACE(phase, id)] = name,
#include "schemas/rule_counts.def"
#undef RULE_COUNT_ROW
    };

    return names[p];
}

static uint64_t mix(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ (hash >> 32);
}

static void key_hash(struct rule_key *key)
{
    key->hash = mix(0, key->phase + 1);
    for (unsigned i = 0; i < key->n_words; i++)
        key->hash = mix(key->hash, key->words[i]);
}

static uint64_t word_at(const char *p)
{
    uint64_t word;

    memcpy(&word, p, sizeof(word));
    return le64toh(word);
}

/* What full words leave of an id, padded. */
static uint64_t word_of_rest(struct str id)
{
    const size_t len = id.len % 8;
    uint64_t word = 0;

    if (id.len > 8)
        return word_at(id.p + id.len - 8) >> (8 * (8 - len));
    for (size_t i = len; i-- > 0;)
        word = word << 8 | (unsigned char)id.p[i];
    return word;
}

bool rule_key_set(struct rule_key *key, enum count_phase phase, struct str id)
{
    if (id.len == 0 || id.len > TOPK_ID_MAX)
        return false;
    key->phase = phase;
    key->n_words = (unsigned)((id.len + 7) / 8);
    for (size_t i = 0; i < id.len / 8; i++)
        key->words[i] = word_at(id.p + 8 * i);
    if (id.len % 8 != 0)
        key->words[key->n_words - 1] = word_of_rest(id);
    key_hash(key);
    return true;
}

void rule_key_of(struct rule_key *key, const struct counts_cell *cell)
{
    key->phase = (enum count_phase)atomic_load_explicit(&cell->phase, memory_order_relaxed);
    for (key->n_words = 0; key->n_words < COUNTS_ID_WORDS; key->n_words++) {
        key->words[key->n_words] = cell_get(&cell->id[key->n_words]);
        if (key->words[key->n_words] == 0)
            break;
    }
    key_hash(key);
}

static bool key_is_of(const struct rule_key *key, const struct counts_cell *cell)
{
    if (atomic_load_explicit(&cell->phase, memory_order_relaxed) != key->phase)
        return false;
    for (unsigned i = 0; i < key->n_words; i++)
        if (cell_get(&cell->id[i]) != key->words[i])
            return false;
    return key->n_words == COUNTS_ID_WORDS || cell_get(&cell->id[key->n_words]) == 0;
}

struct counts_cell *counts_find(struct counts_version *v, const struct rule_key *key)
{
    size_t at = key->hash % COUNTS_INDEX;
    const uint32_t tag = rule_key_tag(key);

    for (size_t i = 0; i < COUNTS_INDEX; i++, at = (at + 1) % COUNTS_INDEX) {
        const uint32_t entry = atomic_load_explicit(&v->index[at], memory_order_acquire);
        const uint32_t place = (entry ^ tag) - 1;

        if (entry == 0)
            break; /* there are more entries than rules */
        if (place < COUNTS_RULES_MAX && key_is_of(key, &v->rules[place]))
            return &v->rules[place];
    }
    return NULL;
}

static enum count_latency latency_bucket(uint64_t ms)
{
    static const uint64_t above[] = {
#define LATENCY_BUCKET_ROW(ms, le) ms,
#include "schemas/latency_buckets.def"
#undef LATENCY_BUCKET_ROW
    };
    unsigned i = 0;

    while (i < COUNT_LATENCY_INF && ms >= above[i])
        i++;
    return (enum count_latency)i;
}

/* The addition to codes is the first: what was received is the sum of them. */
static void sums_add(_Atomic uint64_t *sums, const struct outcome *o)
{
    const size_t status = o->status < OUTCOME_STATUS_MAX ? o->status : OUTCOME_STATUS_MAX;

    cell_add(&sums[COUNTS_AT(codes) + o->origin * (OUTCOME_STATUS_MAX + 1) + status], 1);
    cell_add(&sums[COUNTS_AT(decisions) + o->decision], 1);
    if (o->upstream_error != UPSTREAM_ERROR_NONE)
        cell_add(&sums[COUNTS_AT(upstream_errors) + o->upstream_error], 1);
    cell_add(&sums[COUNTS_AT(latency) + latency_bucket(o->latency_ms)], 1);
}

static bool slot_is_of(const struct counts_slot *s, const struct rec *rec)
{
    return slot_state(s) == SLOT_OPEN &&
           atomic_load_explicit(&s->config_version, memory_order_relaxed) == rec->config_version &&
           atomic_load_explicit(&s->cohort, memory_order_relaxed) == rec->cohort;
}

/* COUNTS_SLOTS: not counted apart. */
static size_t slot_of(struct counts *c, const struct rec *rec)
{
    const struct counts_slot *slots = c->file->slots;

    if (slot_is_of(&slots[c->last_slot], rec))
        return c->last_slot;
    for (size_t i = 0; i < COUNTS_SLOTS; i++)
        if (slot_is_of(&slots[i], rec))
            return c->last_slot = i;
    return COUNTS_SLOTS;
}

static struct counts_cell *cell_of(struct counts_version *v, enum count_phase phase, struct str id)
{
    struct rule_key key;

    return rule_key_set(&key, phase, id) ? counts_find(v, &key) : NULL;
}

enum ending { ENDED_OTHERWISE, ENDED_EDGE_5XX, ENDED_UPSTREAM_5XX, ENDED_EDGE_401 };

static enum ending ending_of(const struct outcome *o)
{
    if (o->status >= 500)
        return o->origin == ORIGIN_EDGE ? ENDED_EDGE_5XX : ENDED_UPSTREAM_5XX;
    return o->status == 401 && o->origin == ORIGIN_EDGE ? ENDED_EDGE_401 : ENDED_OTHERWISE;
}

/* These three return how many rules did not fit the record's list. */
static uint64_t add_config(struct counts_version *v, const struct rec *rec, enum ending ending)
{
    static const int by_ending[] = {-1, PLACE(CONFIG, EDGE_5XX), PLACE(CONFIG, UPSTREAM_5XX), PLACE(CONFIG, EDGE_401)};
    struct str list = rec->config_rules;
    struct rec_item item;
    uint64_t left_out = 0;

    while (rec_next(&list, &item, &left_out)) {
        struct counts_cell *cell = cell_of(v, COUNT_CONFIG, item.id);

        if (cell == NULL)
            continue;
        cell_add(&cell->counts[PLACE(CONFIG, MATCHED)], 1);
        if (item.decided)
            cell_add(&cell->counts[rec->decision == DECISION_BLOCK ? PLACE(CONFIG, BLOCKED) : PLACE(CONFIG, WOULD_BLOCK)], 1);
        if (by_ending[ending] >= 0)
            cell_add(&cell->counts[by_ending[ending]], 1);
    }
    return left_out;
}

static uint64_t add_header(struct counts_version *v, const struct rec *rec, enum ending ending)
{
    static const int by_ending[] = {-1, PLACE(HEADER, EDGE_5XX), PLACE(HEADER, UPSTREAM_5XX), PLACE(HEADER, EDGE_401)};
    struct str list = rec->header_rules;
    struct rec_item item;
    uint64_t left_out = 0;

    while (rec_next(&list, &item, &left_out)) {
        struct counts_cell *cell = cell_of(v, COUNT_HEADER, item.id);

        if (cell == NULL)
            continue;
        cell_add(&cell->counts[PLACE(HEADER, MATCHED)], 1);
        if (by_ending[ending] >= 0)
            cell_add(&cell->counts[by_ending[ending]], 1);
    }
    return left_out;
}

static uint64_t add_limits(struct counts_version *v, const struct rec *rec)
{
    /* place + 1; 0: not a letter of ours */
    static const unsigned char places[256] = {
#define RATE_LETTER_CONFIG(letter, place)
#define RATE_LETTER_HEADER(letter, place)
#define RATE_LETTER_RATE(letter, place) [letter] = (place) + 1,
#define RULE_COUNT_ROW(phase, id, letter, name, meaning) RATE_LETTER_##phase(letter, PLACE(phase, id))
#include "schemas/rule_counts.def"
#undef RULE_COUNT_ROW
    };
    struct str list = rec->limits;
    struct rec_item item;
    uint64_t left_out = 0;

    while (rec_next(&list, &item, &left_out)) {
        struct counts_cell *cell = cell_of(v, COUNT_RATE, item.id);

        for (size_t i = 0; cell != NULL && i < item.value.len; i++) {
            const unsigned place = places[(unsigned char)item.value.p[i]];

            if (place > 0)
                cell_add(&cell->counts[place - 1], 1);
        }
    }
    return left_out;
}

static void add_subjects(struct counts *c, size_t slot, const struct rec *rec)
{
    const uint64_t uid = cell_get(&c->file->slots[slot].uid);
    struct str list = rec->subjects;
    struct rec_item item;
    uint64_t left_out;

    pthread_mutex_lock(&c->top_lock);
    if (c->top_uid[slot] != uid) {
        topk_clear(&c->top[slot]);
        c->top_uid[slot] = uid;
    }
    while (rec_next(&list, &item, &left_out)) {
        const struct str subject = str_sub(item.value, 0, TOPK_HASH_LEN);
        const struct str display = str_sub(item.value, TOPK_HASH_LEN + 1, item.value.len);

        topk_add(&c->top[slot], item.id, subject, display, COUNTS_SAMPLED_LIMITS);
    }
    pthread_mutex_unlock(&c->top_lock);
}

static void received_one(struct counts *c)
{
    const int64_t gap = c->numbered - ++c->received;

    if (gap < c->low)
        c->low = gap;
}

void counts_add(struct counts *c, const struct rec *rec, const struct outcome *outcome)
{
    size_t slot;

    sums_add(c->file->total, outcome);
    received_one(c);
    if (rec == NULL || (slot = slot_of(c, rec)) == COUNTS_SLOTS)
        return;

    struct counts_version *v = &c->file->versions[slot];
    const enum ending ending = ending_of(outcome);

    sums_add(v->sums, outcome);
    const uint64_t left_out = add_config(v, rec, ending) + add_limits(v, rec) + add_header(v, rec, ending);

    if (left_out > 0)
        cell_add(&c->file->matches_left_out, left_out);
    if (rec->subjects.len > 0)
        add_subjects(c, slot, rec);
}

void counts_other(struct counts *c)
{
    cell_add(&c->file->other, 1);
    received_one(c);
}
