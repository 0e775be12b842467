/* Counters of this process for the time in which the shared store can't be asked: a bounded store of its own for each rule. */
#include "common/rate/shares.h"

#include <pthread.h>
#include <stdlib.h>

struct part {
    struct str id; /* in the table's own memory */
    struct rate_store *store;
};

/* Of one publish: parts in order of their ids, and the ids behind them. */
struct table {
    size_t n;
    struct part parts[];
};

/* Readers check under the lock, so that nothing they use is freed meanwhile; it is written only to exchange the table. */
struct rate_shares {
    pthread_rwlock_t lock;
    struct table *table; /* NULL: no rule counts locally */
    size_t max_keys;
};

bool rate_shares_new(struct rate_shares **out, size_t max_keys, struct err *e)
{
    if (max_keys < 1 || max_keys > RATE_SHARES_KEYS_MAX)
        return err_set(e, ERR_BAD_VALUE, "", "local rate limits of %zu keys; it must be 1 to %d", max_keys, RATE_SHARES_KEYS_MAX);
    struct rate_shares *s = calloc(1, sizeof *s);
    if (!s)
        return err_set(e, ERR_NO_MEMORY, "", "no memory for local rate limits");

    /* A publish must not wait until no worker happens to check. */
    pthread_rwlockattr_t attributes;
    pthread_rwlockattr_init(&attributes);
    pthread_rwlockattr_setkind_np(&attributes, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
    pthread_rwlock_init(&s->lock, &attributes); /* with these attributes it can't fail on Linux */
    pthread_rwlockattr_destroy(&attributes);
    s->max_keys = max_keys;
    *out = s;
    return true;
}

static int compare_ids(const void *a, const void *b)
{
    return str_cmp(((const struct part *) a)->id, ((const struct part *) b)->id);
}

static struct part *find(struct table *t, struct str id)
{
    struct part wanted = {.id = id};
    return t ? bsearch(&wanted, t->parts, t->n, sizeof wanted, compare_ids) : NULL;
}

/* Frees the table, and its stores but for those that kept holds too. */
static void free_table(struct table *t, struct table *kept)
{
    for (size_t i = 0; t && i < t->n; i++) {
        const struct part *same = find(kept, t->parts[i].id);
        if (!same || same->store != t->parts[i].store)
            rate_store_free(&t->parts[i].store);
    }
    free(t);
}

void rate_shares_free(struct rate_shares **s)
{
    if (!*s)
        return;
    free_table((*s)->table, NULL);
    pthread_rwlock_destroy(&(*s)->lock);
    free(*s);
    *s = NULL;
}

/* Parts with ids and without stores. NULL: no memory. */
static struct table *new_table(const struct str *ids, size_t n)
{
    size_t size_bytes = sizeof(struct table) + n * sizeof(struct part), parts_bytes = size_bytes;

    for (size_t i = 0; i < n; i++)
        size_bytes += ids[i].len;
    struct table *t = calloc(1, size_bytes);
    if (!t)
        return NULL;
    t->n = n;
    char *text = (char *) t + parts_bytes;
    for (size_t i = 0; i < n; i++) {
        if (ids[i].len)
            memcpy(text, ids[i].p, ids[i].len);
        t->parts[i].id = (struct str){text, ids[i].len};
        text += ids[i].len;
    }
    qsort(t->parts, n, sizeof *t->parts, compare_ids);
    return t;
}

/* Gives each part of t a store: old's of the same id where the parts have kept their size, otherwise a new one. */
static bool fill_table(const struct rate_shares *s, struct table *t, struct table *old, struct err *e)
{
    size_t keys_of_a_part = s->max_keys / t->n;

    for (size_t i = 0; i < t->n; i++) {
        struct part *before = old && old->n == t->n ? find(old, t->parts[i].id) : NULL;
        if (i > 0 && str_eq(t->parts[i].id, t->parts[i - 1].id))
            return err_set(e, ERR_BAD_VALUE, "", "two rules count locally under the same id");
        if (before)
            t->parts[i].store = before->store;
        else if (!rate_store_new(&t->parts[i].store, keys_of_a_part ? keys_of_a_part : 1, e))
            return false;
    }
    return true;
}

bool rate_shares_set(struct rate_shares *s, const struct str *ids, size_t n, struct err *e)
{
    struct table *old = s->table, *new = NULL; /* nobody else writes s->table */

    if (n && !(new = new_table(ids, n)))
        return err_set(e, ERR_NO_MEMORY, "", "no memory for the local rate limits of %zu rules", n);
    if (new && !fill_table(s, new, old, e)) {
        free_table(new, old);
        return false;
    }
    pthread_rwlock_wrlock(&s->lock);
    s->table = new;
    pthread_rwlock_unlock(&s->lock);
    free_table(old, new);
    return true;
}

/* The same limit over a period that is fleet_size times as long keeps the rate exact where limit / fleet_size would not be whole. Within the
 * bounds of rate_params_ok nothing overflows: burst * period_ms stays at most 2^51, or is one period times the fleet. Counts go on when the
 * fleet changes its size: content is counted in units of the period, which grow as the burst shrinks. */
static struct rate_params share_of(const struct rate_params *p, uint64_t fleet_size)
{
    struct rate_params share = {.limit = p->limit, .burst = p->burst / fleet_size, .period_ms = p->period_ms * fleet_size};
    if (share.burst < 1)
        share.burst = 1;
    return share;
}

bool rate_shares_check(struct rate_shares *s, struct str rule_id, struct rate_call *call, uint64_t fleet_size, uint64_t now_ms)
{
    uint64_t n_agents = fleet_size < 1 ? 1 : fleet_size > RATE_SHARES_FLEET_MAX ? RATE_SHARES_FLEET_MAX : fleet_size;
    struct rate_params share = share_of(call->params, n_agents);
    struct rate_call own = *call;

    own.params = &share;
    pthread_rwlock_rdlock(&s->lock);
    struct part *part = find(s->table, rule_id);
    if (part)
        rate_store_check(part->store, &own, 1, now_ms);
    pthread_rwlock_unlock(&s->lock);
    if (!part)
        return false;
    call->verdict = own.verdict;
    call->counted = own.counted;
    return true;
}

size_t rate_shares_n_keys(struct rate_shares *s)
{
    size_t n_keys = 0;

    pthread_rwlock_rdlock(&s->lock);
    for (size_t i = 0; s->table && i < s->table->n; i++) {
        struct rate_store_stats stats;
        rate_store_stats(s->table->parts[i].store, &stats);
        n_keys += stats.n_keys;
    }
    pthread_rwlock_unlock(&s->lock);
    return n_keys;
}
