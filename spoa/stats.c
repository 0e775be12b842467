/* The page /stats: one reader of the counters, from zero each time. */
#include "spoa/stats.h"

static void put_name(struct buf *b, const char *name)
{
    buf_put_byte(b, '"');
    buf_put_cstr(b, name);
    buf_put_cstr(b, "\":");
}

/* In place of the comma behind the last member, if there was one. */
static void end(struct buf *b, char close)
{
    if (!b->full && b->p[b->len - 1] == ',')
        b->len--;
    buf_put_byte(b, close);
    buf_put_byte(b, ',');
}

static void put_count(struct buf *b, const char *name, uint64_t n)
{
    if (n == 0)
        return;
    put_name(b, name);
    buf_put_u64(b, n);
    buf_put_byte(b, ',');
}

static void begin(struct buf *b, const char *name, char open)
{
    put_name(b, name);
    buf_put_byte(b, open);
}

static uint64_t put_codes(struct buf *b, const char *origin, const uint64_t codes[static OUTCOME_STATUS_MAX + 1])
{
    uint64_t sum = 0;
    begin(b, origin, '{');
    for (unsigned code = 0; code <= OUTCOME_STATUS_MAX; code++) {
        if (codes[code] == 0)
            continue;
        sum += codes[code];
        buf_put_byte(b, '"');
        buf_put_u64(b, code);
        buf_put_cstr(b, "\":");
        buf_put_u64(b, codes[code]);
        buf_put_byte(b, ',');
    }
    end(b, '}');
    return sum;
}

static void put_sums(struct buf *b, const struct counts_sums *sums)
{
    static const char *const bounds[] = {
#define LATENCY_BUCKET_ROW(ms, le) le,
#include "schemas/latency_buckets.def"
#undef LATENCY_BUCKET_ROW
        "+Inf",
    };
    begin(b, "status_codes", '{');
    uint64_t n = put_codes(b, "edge", sums->codes[ORIGIN_EDGE]);
    n += put_codes(b, "upstream", sums->codes[ORIGIN_UPSTREAM]);
    end(b, '}');
    put_name(b, "requests");
    buf_put_u64(b, n);
    buf_put_byte(b, ',');
    begin(b, "decisions", '{');
    for (size_t i = 0; i < DECISION_N; i++)
        put_count(b, decision_name((enum decision) i), sums->decisions[i]);
    end(b, '}');
    begin(b, "upstream_errors", '{');
    for (size_t i = UPSTREAM_ERROR_NONE + 1; i < UPSTREAM_ERROR_N; i++)
        put_count(b, upstream_error_name((enum upstream_error) i), sums->upstream_errors[i]);
    end(b, '}');
    begin(b, "latency", '{');
    for (size_t i = 0; i < COUNT_LATENCY_N; i++)
        put_count(b, bounds[i], sums->latency[i]);
    end(b, '}');
}

static void put_rules(struct buf *b, const struct counts_delta *delta, enum count_phase phase)
{
    const char *const *names = count_names(phase);
    begin(b, count_phase_name(phase), '{');
    for (size_t i = 0; i < delta->n_rules; i++) {
        const struct counts_rule *rule = &delta->rules[i];
        if (rule->phase != phase)
            continue;
        buf_put_json(b, rule->id);
        buf_put_cstr(b, ":{");
        for (size_t k = 0; names[k] != NULL; k++)
            put_count(b, names[k], rule->counts[k]);
        end(b, '}');
    }
    end(b, '}');
}

static void put_limited(struct buf *b, const struct topk_entry *entry)
{
    buf_put_cstr(b, "{\"rule\":");
    buf_put_json(b, str_of(entry->rule));
    buf_put_cstr(b, ",\"subject\":");
    buf_put_json(b, str_of(entry->subject));
    /* The inside of a JSON string already. */
    buf_put_cstr(b, ",\"display\":\"");
    buf_put_cstr(b, entry->display);
    buf_put_cstr(b, "\",\"count\":");
    buf_put_u64(b, entry->count);
    buf_put_cstr(b, ",\"err\":");
    buf_put_u64(b, entry->err);
    buf_put_cstr(b, "},");
}

static void put_version(void *ctx, const struct counts_delta *delta)
{
    struct buf *b = ctx;
    buf_put_cstr(b, "{\"config_version\":");
    buf_put_i64(b, delta->config_version);
    buf_put_cstr(b, ",\"cohort\":\"");
    buf_put_cstr(b, cohort_name(delta->cohort));
    buf_put_cstr(b, "\",");
    put_sums(b, delta->sums);
    begin(b, "rules", '{');
    for (size_t phase = 0; phase < COUNT_PHASE_N; phase++)
        put_rules(b, delta, (enum count_phase) phase);
    end(b, '}');
    begin(b, "most_limited", '[');
    for (size_t i = 0; i < delta->n_top; i++)
        put_limited(b, delta->top[i]);
    end(b, ']');
    end(b, '}');
}

bool stats_put(struct buf *out, struct counts *c, unsigned agent)
{
    struct counts_reader reader = {0};
    buf_put_cstr(out, "{\"agent\":");
    buf_put_u64(out, agent);
    buf_put_cstr(out, ",\"records_lost\":");
    buf_put_u64(out, counts_lost(c));
    buf_put_cstr(out, ",\"rules_left_out\":");
    buf_put_u64(out, counts_rules_left_out(c));
    buf_put_cstr(out, ",\"versions\":[");
    const bool ok = counts_read(c, &reader, false, put_version, out);
    counts_reader_release(c, &reader);
    if (!out->full && out->p[out->len - 1] == ',')
        out->len--;
    buf_put_cstr(out, "]}\n");
    return ok && !out->full;
}
