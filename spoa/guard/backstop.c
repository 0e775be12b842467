/* The local backstop on the rate limits' store in memory: one name, and as the subject the client's address itself, which needs no digest. */
#include "spoa/guard/backstop.h"

#include <stdlib.h>

enum { SWEEP_PARTS = 60 }; /* one a second */

struct backstop {
    struct backstop_settings settings;
    struct rate_store *store;
};

bool backstop_new(struct backstop **out, const struct backstop_settings *settings, struct err *e)
{
    struct backstop *b = calloc(1, sizeof *b);
    if (b == NULL)
        return err_set(e, ERR_NO_MEMORY, "", "no memory for the backstop");
    b->settings = *settings;
    struct err of_store;
    err_clear(&of_store);
    if (!rate_store_new(&b->store, (size_t) settings->max_entries, &of_store)) {
        free(b);
        return err_set(e, of_store.code, "/global/backstop/max_entries", "no memory for a backstop of %ju clients: give the agent more, or lower max_entries",
                       (uintmax_t) settings->max_entries);
    }
    *out = b;
    return true;
}

void backstop_free(struct backstop **b)
{
    if (*b == NULL)
        return;
    rate_store_free(&(*b)->store);
    free(*b);
    *b = NULL;
}

bool backstop_is_of(const struct backstop *b, const struct backstop_settings *settings)
{
    const struct backstop_settings *own = &b->settings;
    return own->params.limit == settings->params.limit && own->params.period_ms == settings->params.period_ms && own->params.burst == settings->params.burst &&
           own->max_entries == settings->max_entries;
}

enum rate_counted backstop_check(struct backstop *b, const struct addr *client, uint64_t now_ms, struct rate_verdict *out)
{
    static const struct rate_name name;
    struct addr unit = addr_subscriber(client);
    struct rate_call call = {.params = &b->settings.params, .name = &name, .enforce = true};

    _Static_assert(sizeof call.subject.b == sizeof unit.b, "an address is a subject");
    memcpy(call.subject.b, unit.b, sizeof unit.b);
    rate_store_check(b->store, &call, 1, now_ms);
    *out = call.verdict;
    return call.counted;
}

size_t backstop_sweep(struct backstop *b, uint64_t now_ms)
{
    return rate_store_sweep(b->store, SWEEP_PARTS, now_ms);
}

void backstop_stats(struct backstop *b, struct rate_store_stats *out)
{
    rate_store_stats(b->store, out);
}
