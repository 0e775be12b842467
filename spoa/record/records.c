/* From a record to its counts and its line; what it costs, the agent pays for every request. */
#include "spoa/record/records.h"

#include <string.h>

#include "common/base/counter.h"
#include "common/base/digest.h"
#include "spoa/record/access_log.h"

void records_init(struct records *r, const struct records_options *options)
{
    memset(r, 0, sizeof *r);
    r->options = *options;
}

/* Whoever was refused, would have been, or met a fault is always found. A preflight is no refusal, whatever it was told. */
static bool is_sampled(const struct outcome *outcome)
{
    return (outcome->decision == DECISION_ALLOW || outcome->decision == DECISION_PREFLIGHT) && outcome->status < 500;
}

/* The rate a line is written at, RATE_WHOLE for one that always is; false: it is not written. */
static bool choose(const struct records *r, const struct record *record, const struct outcome *outcome, uint64_t *rate)
{
    unsigned share;
    *rate = RATE_WHOLE;
    if (r->options.log_sample_rate == RATE_WHOLE || !is_sampled(outcome))
        return true;
    /* Without a hash nobody can say whether the line should be there: it is one too many rather than one too few. */
    if (!digest_share(record->rec.request_id, RATE_WHOLE, &share))
        return true;
    *rate = r->options.log_sample_rate;
    return share < r->options.log_sample_rate;
}

static struct str time_now(struct records *r)
{
    const uint64_t now_ms = clock_real_ms(r->options.clock);
    if (now_ms != r->now_ms) {
        clock_format_utc(now_ms, r->time);
        r->now_ms = now_ms;
    }
    return (struct str){r->time, sizeof r->time - 1};
}

static void write_line(struct records *r, const struct record *record, const struct outcome *outcome)
{
    char storage[ACCESS_LINE_MAX];
    struct buf out;
    uint64_t rate;
    if (!choose(r, record, outcome, &rate)) {
        counter_add(&r->n_sampled_out, 1);
        return;
    }
    buf_init(&out, storage, sizeof storage);
    access_log_render(record, outcome, time_now(r), rate, &out);
    writer_put(r->options.writer, buf_str(&out));
}

static void number(struct records *r, const struct record *record)
{
    counts_number(r->options.counts, (uint64_t) record_number(record, RECORD_PROCESS, 0), (uint64_t) record_number(record, RECORD_SEQUENCE, 0));
}

/* Agent 0 keeps those that nobody decided. */
static bool is_own(const struct records *r, const struct record *record)
{
    return r->options.agent_index == (record->has_rec ? record->agent : 0);
}

static void keep(struct records *r, const struct record *record)
{
    struct outcome outcome;
    outcome_read(record, &outcome);
    number(r, record);
    counts_add(r->options.counts, record->has_rec ? &record->rec : NULL, &outcome);
    if (!record->has_rec) {
        counter_add(&r->n_without_verdict, 1);
        return;
    }
    counter_add(&r->n_own, 1);
    write_line(r, record, &outcome);
}

void records_take(void *ctx, struct str line)
{
    struct records *r = ctx;
    struct record record;
    uint64_t n_dropped;
    bool readable = record_split(line, &record);
    if (readable && !is_own(r, &record)) {
        number(r, &record);
        counts_other(r->options.counts);
    } else if (readable && record_read(&record)) {
        keep(r, &record);
    } else if (!record_dropped(line, &n_dropped)) {
        /* Of what HAProxy says it had to drop the numbers are missing, too, and it is counted by these. */
        counter_add(&r->n_malformed, 1);
    }
}

void records_tick(void *ctx)
{
    const struct records *r = ctx;
    counts_tick(r->options.counts);
}
