/* Versions that are counted apart: they open, retire, and are folded into the totals. */
#include "spoa/record/counts_priv.h"

static uint32_t get32(const _Atomic uint32_t *cell)
{
    return atomic_load_explicit(cell, memory_order_relaxed);
}

static void set32(_Atomic uint32_t *cell, uint32_t n)
{
    atomic_store_explicit(cell, n, memory_order_relaxed);
}

static void state_set(struct counts_slot *s, enum slot_state state)
{
    atomic_store_explicit(&s->state, state, memory_order_release);
}

/* The place of another open version that has a rule, too. */
static struct counts_cell *heir_of(struct counts_file *f, size_t slot, const struct counts_cell *cell)
{
    struct rule_key key;

    rule_key_of(&key, cell);
    if (counts_find(&f->versions[slot], &key) != cell)
        return NULL; /* a place that was never finished */
    for (size_t i = 0; i < COUNTS_SLOTS; i++) {
        struct counts_cell *heir = i != slot && slot_state(&f->slots[i]) == SLOT_OPEN ? counts_find(&f->versions[i], &key) : NULL;

        if (heir != NULL)
            return heir;
    }
    return NULL;
}

static void pending_set(struct counts_cell *heir, const struct counts_cell *from)
{
    for (size_t k = 0; k < COUNTS_RULE_COUNTS_MAX; k++)
        cell_set(&heir->pending[k], cell_get(&heir->carried[k]) + cell_get(&from->carried[k]) + cell_get(&from->counts[k]));
}

static void pending_take(struct counts_cell *heir)
{
    for (size_t k = 0; k < COUNTS_RULE_COUNTS_MAX; k++)
        cell_set(&heir->carried[k], cell_get(&heir->pending[k]));
}

/* Each part can be done again: the first writes what the second takes, and no structure changes between them. */
void counts_fold(struct counts *c, size_t slot)
{
    struct counts_file *f = c->file;
    struct counts_slot *s = &f->slots[slot];
    struct counts_version *v = &f->versions[slot];
    const uint32_t n = get32(&s->n_rules) < COUNTS_RULES_MAX ? get32(&s->n_rules) : COUNTS_RULES_MAX;

    if (slot_state(s) == SLOT_CLOSING) {
        for (uint32_t i = 0; i < n; i++) {
            struct counts_cell *heir = heir_of(f, slot, &v->rules[i]);

            if (heir != NULL)
                pending_set(heir, &v->rules[i]);
        }
        state_set(s, SLOT_FOLDING);
    }
    for (uint32_t i = 0; i < n; i++) {
        struct counts_cell *heir = heir_of(f, slot, &v->rules[i]);

        if (heir != NULL)
            pending_take(heir);
    }
    cell_set(&s->freed_us, clock_mono_us(c->clock));
    state_set(s, SLOT_FREE);
}

void counts_repair(struct counts *c)
{
    counts_row_repair(c->file);
    for (size_t i = 0; i < COUNTS_SLOTS; i++) {
        const enum slot_state state = slot_state(&c->file->slots[i]);

        if (state == SLOT_CLOSING || state == SLOT_FOLDING)
            counts_fold(c, i);
    }
}

static uint64_t requests_of(const _Atomic uint64_t *sums)
{
    uint64_t n = 0;

    for (size_t i = COUNTS_AT(codes); i < COUNTS_AT(decisions); i++)
        n += cell_get(&sums[i]);
    return n;
}

/* How many requests of the version a reader has not seen; its other numbers move with them. */
static uint64_t unseen_by(const struct counts *c, const struct counts_seen *seen, size_t slot)
{
    uint64_t n = requests_of(c->file->versions[slot].sums);

    if (seen->slots[slot].uid == cell_get(&c->file->slots[slot].uid))
        for (size_t i = COUNTS_AT(codes); i < COUNTS_AT(decisions); i++)
            n -= seen->slots[slot].sums[i];
    return n;
}

static bool is_seen(const struct counts *c, size_t slot)
{
    for (size_t i = 0; i < COUNTS_READERS_MAX; i++)
        if (c->readers[i] != NULL && unseen_by(c, c->readers[i], slot) > 0)
            return false;
    return true;
}

static void version_close(struct counts *c, size_t slot)
{
    for (size_t i = 0; i < COUNTS_READERS_MAX; i++)
        if (c->readers[i] != NULL)
            c->readers[i]->n_missed += unseen_by(c, c->readers[i], slot);
    state_set(&c->file->slots[slot], SLOT_CLOSING);
    counts_fold(c, slot);
}

void counts_retire(struct counts *c)
{
    const uint64_t now_us = clock_mono_us(c->clock);
    int alone = -1; /* not asked */

    for (size_t i = 0; i < COUNTS_SLOTS; i++) {
        const struct counts_slot *s = &c->file->slots[i];
        const uint64_t retired_us = cell_get(&s->retired_us);

        if (slot_state(s) != SLOT_OPEN || retired_us == 0 || now_us < retired_us + (uint64_t)COUNTS_RETIRE_MS * 1000)
            continue;
        if (alone < 0)
            alone = counts_is_alone(c);
        if (alone && is_seen(c, i))
            version_close(c, i);
    }
}

/* Versions of a cohort but one. */
static void retire_others(struct counts *c, enum cohort cohort, size_t slot)
{
    for (size_t i = 0; i < COUNTS_SLOTS; i++) {
        struct counts_slot *s = &c->file->slots[i];

        if (i != slot && slot_state(s) == SLOT_OPEN && get32(&s->cohort) == cohort && cell_get(&s->retired_us) == 0)
            cell_set(&s->retired_us, clock_mono_us(c->clock));
    }
}

static size_t version_find(const struct counts *c, int64_t config_version, enum cohort cohort)
{
    size_t i = 0;

    for (; i < COUNTS_SLOTS; i++) {
        const struct counts_slot *s = &c->file->slots[i];

        if (slot_state(s) == SLOT_OPEN && get32(&s->cohort) == cohort &&
            atomic_load_explicit(&s->config_version, memory_order_relaxed) == config_version)
            break;
    }
    return i;
}

/* As many as may be are open: the one that retired first is folded. At most two are served, one a cohort, and those do not count as retired. */
static void make_room(struct counts *c)
{
    size_t n_open = 0, first = COUNTS_SLOTS;

    for (size_t i = 0; i < COUNTS_SLOTS; i++) {
        const uint64_t retired_us = cell_get(&c->file->slots[i].retired_us);

        if (slot_state(&c->file->slots[i]) != SLOT_OPEN)
            continue;
        n_open++;
        if (retired_us > 0 && (first == COUNTS_SLOTS || retired_us < cell_get(&c->file->slots[first].retired_us)))
            first = i;
    }
    if (n_open >= COUNTS_VERSIONS_MAX && first < COUNTS_SLOTS)
        version_close(c, first);
}

/* The slot that has rested for longest. */
static size_t slot_free(const struct counts *c)
{
    size_t best = COUNTS_SLOTS;

    for (size_t i = 0; i < COUNTS_SLOTS; i++) {
        const struct counts_slot *slots = c->file->slots;

        if (slot_state(&slots[i]) == SLOT_FREE && (best == COUNTS_SLOTS || cell_get(&slots[i].freed_us) < cell_get(&slots[best].freed_us)))
            best = i;
    }
    return best;
}

static void cell_begin(struct counts_cell *cell, const struct rule_key *key)
{
    for (size_t k = 0; k < COUNTS_RULE_COUNTS_MAX; k++) {
        cell_set(&cell->counts[k], 0);
        cell_set(&cell->carried[k], 0);
    }
    for (size_t k = 0; k < COUNTS_ID_WORDS; k++)
        cell_set(&cell->id[k], k < key->n_words ? key->words[k] : 0);
    set32(&cell->phase, key->phase);
}

/* Whoever finds the index entry finds the rule complete. A kill before the entry leaves a place that nothing finds. */
static void rule_add(struct counts_file *f, size_t slot, enum count_phase phase, struct str id, uint32_t *n_left_out)
{
    struct counts_version *v = &f->versions[slot];
    const uint32_t place = get32(&f->slots[slot].n_rules);
    struct rule_key key;

    if (!rule_key_set(&key, phase, id) || (place >= COUNTS_RULES_MAX && counts_find(v, &key) == NULL)) {
        (*n_left_out)++;
        return;
    }
    if (counts_find(v, &key) != NULL)
        return;
    cell_begin(&v->rules[place], &key);
    set32(&f->slots[slot].n_rules, place + 1);

    size_t at = key.hash % COUNTS_INDEX;

    while (get32(&v->index[at]) != 0) /* there are more than places */
        at = (at + 1) % COUNTS_INDEX;
    atomic_store_explicit(&v->index[at], rule_key_tag(&key) | (place + 1), memory_order_release);
}

static void rules_add(struct counts_file *f, size_t slot, const struct policy *p)
{
    uint32_t n_left_out = 0;

    for (size_t i = 0; i < p->n_config_rules; i++)
        rule_add(f, slot, COUNT_CONFIG, p->config_rules[i].id, &n_left_out);
    for (size_t i = 0; i < p->n_rate_rules; i++)
        rule_add(f, slot, COUNT_RATE, p->rate_rules[i].id, &n_left_out);
    for (size_t i = 0; i < p->n_header_rules; i++)
        rule_add(f, slot, COUNT_HEADER, p->header_rules[i].id, &n_left_out);
    set32(&f->slots[slot].n_left_out, n_left_out);
}

/* COUNTS_SLOTS: there is no room. It is open once its rules are there. */
static size_t version_begin(struct counts *c, const struct policy *p, enum cohort cohort)
{
    struct counts_file *f = c->file;

    make_room(c);
    const size_t slot = slot_free(c);
    if (slot == COUNTS_SLOTS)
        return slot;
    struct counts_slot *s = &f->slots[slot];
    struct counts_version *v = &f->versions[slot];

    for (size_t i = 0; i < COUNTS_SUMS; i++)
        cell_set(&v->sums[i], 0);
    for (size_t i = 0; i < COUNTS_INDEX; i++)
        set32(&v->index[i], 0);
    set32(&s->n_rules, 0);
    set32(&s->cohort, cohort);
    atomic_store_explicit(&s->config_version, p->version, memory_order_relaxed);
    cell_set(&s->retired_us, 0);
    cell_add(&f->last_uid, 1);
    cell_set(&s->uid, cell_get(&f->last_uid));
    rules_add(f, slot, p);
    state_set(s, SLOT_OPEN);
    return slot;
}

void counts_prepare(struct counts *c, const struct policy *p, enum cohort cohort)
{
    size_t slot = COUNTS_SLOTS;

    if (!counts_lock(c, true))
        return;
    if (p != NULL)
        slot = version_find(c, p->version, cohort);
    retire_others(c, cohort, slot);
    if (slot < COUNTS_SLOTS) {
        rules_add(c->file, slot, p);
        cell_set(&c->file->slots[slot].retired_us, 0);
    } else if (p != NULL) {
        (void)version_begin(c, p, cohort);
    }
    counts_unlock(c);
}

uint64_t counts_rules_left_out(const struct counts *c)
{
    uint64_t n = 0;

    for (size_t i = 0; i < COUNTS_SLOTS; i++)
        if (slot_state(&c->file->slots[i]) == SLOT_OPEN)
            n += get32(&c->file->slots[i].n_left_out);
    return n;
}
