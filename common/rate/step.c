/* The token bucket's arithmetic, in whole milliseconds and whole units of 1/period token. */
#include "common/rate/rate.h"

#include <inttypes.h>

/* Sums up to here keep their last digit in a double, with room for adding one refill. */
static const uint64_t capacity_max = (uint64_t) 1 << 51;

bool rate_params_ok(const struct rate_params *p, const char *path, struct err *e)
{
    if (p->limit < 1 || p->limit > RATE_LIMIT_MAX)
        return err_set(e, ERR_BAD_VALUE, path, "limit is %" PRIu64 "; it must be 1 to %d", p->limit, RATE_LIMIT_MAX);
    if (p->period_ms < RATE_PERIOD_MIN_MS || p->period_ms > RATE_PERIOD_MAX_MS)
        return err_set(e, ERR_BAD_VALUE, path, "period is %" PRIu64 " ms; it must be 1s to 24h", p->period_ms);
    if (p->burst < 1 || p->burst > RATE_BURST_MAX)
        return err_set(e, ERR_BAD_VALUE, path, "burst is %" PRIu64 "; it must be 1 to %d", p->burst, RATE_BURST_MAX);
    if (p->burst > capacity_max / p->period_ms)
        return err_set(e, ERR_BAD_VALUE, path, "burst %" PRIu64 " times period is more than can be counted exactly; at this period burst can be at most %" PRIu64,
                       p->burst, capacity_max / p->period_ms);
    return true;
}

uint64_t rate_seconds_up(uint64_t ms)
{
    return ms / 1000 + (ms % 1000 != 0);
}

/* How long until missing units have flowed in at limit units a millisecond. */
static uint64_t refill_time_ms(uint64_t missing, uint64_t limit)
{
    return missing / limit + (missing % limit != 0);
}

static uint64_t refilled(const struct rate_params *p, uint64_t content, uint64_t capacity, uint64_t elapsed_ms)
{
    if (content >= capacity || elapsed_ms >= refill_time_ms(capacity - content, p->limit))
        return capacity;
    return content + elapsed_ms * p->limit; /* below capacity, so it can't overflow */
}

struct rate_verdict rate_step(const struct rate_params *p, struct rate_state *s, bool fresh, uint64_t now_ms)
{
    uint64_t capacity = p->burst * p->period_ms, content = capacity, at_ms = now_ms;
    struct rate_verdict v = {0};

    if (!fresh) {
        content = refilled(p, s->a, capacity, now_ms > s->b ? now_ms - s->b : 0);
        at_ms = now_ms > s->b ? now_ms : s->b;
    }
    uint64_t behind_ms = at_ms - now_ms;

    v.allowed = content >= p->period_ms;
    if (v.allowed) {
        content -= p->period_ms;
        *s = (struct rate_state){.a = content, .b = at_ms};
    } else {
        v.retry_after_ms = behind_ms + refill_time_ms(p->period_ms - content, p->limit);
    }
    v.remaining = content / p->period_ms;
    v.reset_ms = behind_ms + refill_time_ms(capacity - content, p->limit);
    return v;
}
