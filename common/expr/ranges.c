/* Tables of ranges: sorted by where they begin, searched backwards as far as one can still hold the value. */
#include "common/expr/tables_priv.h"

#include <stdlib.h>

static int range_order(const void *x, const void *y)
{
    const struct range_entry *a = x, *b = y;

    return (a->first > b->first) - (a->first < b->first);
}

void range_table_build(struct range_table *t, struct range_entry *entries, size_t n)
{
    if (n > 1)
        qsort(entries, n, sizeof(*entries), range_order);
    for (size_t i = 0; i < n; i++) {
        entries[i].most = entries[i].last;
        if (i > 0 && entries[i - 1].most > entries[i].most)
            entries[i].most = entries[i - 1].most;
    }
    *t = (struct range_table){entries, n};
}

void range_table_mark(const struct range_table *t, unsigned __int128 value, uint64_t *bits)
{
    size_t from = 0, to = t->n;

    while (from < to) {
        size_t middle = from + (to - from) / 2;

        if (t->entries[middle].first <= value)
            from = middle + 1;
        else
            to = middle;
    }
    for (size_t i = from; i > 0 && t->entries[i - 1].most >= value; i--) {
        const struct range_entry *entry = &t->entries[i - 1];

        if (entry->last >= value)
            bits[entry->id / 64] |= UINT64_C(1) << entry->id % 64;
    }
}
