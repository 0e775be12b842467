/* Families of /metrics that come from the counters of ended requests. */
#include <stdio.h>

#include "spoa/metrics_priv.h"

static const char *const origins[] = {[ORIGIN_EDGE] = "edge", [ORIGIN_UPSTREAM] = "upstream"};

/* Always there, so that rate() sees the first of them. */
static bool is_always_there(size_t origin, unsigned code)
{
    return origin == ORIGIN_EDGE && code >= 502 && code <= 504;
}

static void put_responses(struct metrics *m, const struct counts_sums *sums)
{
    family_begin(m, FAMILY_RESPONSES);
    for (size_t origin = 0; origin < 2; origin++)
        for (unsigned code = 0; code <= OUTCOME_STATUS_MAX; code++) {
            const uint64_t n = sums->codes[origin][code];
            char text[8];
            if (n == 0 && !is_always_there(origin, code))
                continue;
            snprintf(text, sizeof text, "%u", code);
            family_put(m, FAMILY_RESPONSES, origins[origin], text, (double) n);
        }
}

static void put_requests(struct metrics *m, const struct counts_sums *sums)
{
    enum { NONE, OTHER = 6 };
    static const char *const names[] = {"none", "1xx", "2xx", "3xx", "4xx", "5xx", "other"};
    uint64_t n[sizeof names / sizeof names[0]] = {0};
    for (size_t origin = 0; origin < 2; origin++)
        for (unsigned code = 0; code <= OUTCOME_STATUS_MAX; code++) {
            const unsigned class = code == 0 ? NONE : code >= 100 && code <= 599 ? code / 100 : OTHER;
            n[class] += sums->codes[origin][code];
        }
    family_begin(m, FAMILY_REQUESTS);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        family_put(m, FAMILY_REQUESTS, names[i], NULL, (double) n[i]);
}

static void put_endings(struct metrics *m, const struct counts_sums *sums)
{
    family_begin(m, FAMILY_DECISIONS);
    for (size_t i = 0; i < DECISION_N; i++)
        family_put(m, FAMILY_DECISIONS, decision_name((enum decision) i), NULL, (double) sums->decisions[i]);
    family_begin(m, FAMILY_UPSTREAM_ERRORS);
    for (size_t i = UPSTREAM_ERROR_NONE + 1; i < UPSTREAM_ERROR_N; i++)
        family_put(m, FAMILY_UPSTREAM_ERRORS, upstream_error_name((enum upstream_error) i), NULL, (double) sums->upstream_errors[i]);
}

static void put_duration(struct metrics *m, const struct counts_sums *sums)
{
    static const char *const bounds[] = {
#define LATENCY_BUCKET_ROW(ms, le) le,
#include "schemas/latency_buckets.def"
#undef LATENCY_BUCKET_ROW
    };
    _Static_assert(sizeof bounds / sizeof bounds[0] == COUNT_LATENCY_INF, "a bound for each bucket but the last");
    family_begin(m, FAMILY_DURATION);
    metrics_histogram(m, bounds, sums->latency, COUNT_LATENCY_INF);
}

/* The rules of all phases come in one go, phase after phase. */
struct rules {
    struct metrics *m;
    size_t n_begun; /* families */
};

static const enum family of_phase[] = {[COUNT_CONFIG] = FAMILY_CONFIG_RULES, [COUNT_RATE] = FAMILY_RATE_RULES, [COUNT_HEADER] = FAMILY_HEADER_RULES};

static void begin_up_to(struct rules *r, size_t phase)
{
    while (r->n_begun <= phase)
        family_begin(r->m, of_phase[r->n_begun++]);
}

static void put_rule(void *ctx, const struct counts_rule *rule)
{
    struct rules *r = ctx;
    const char *const *names = count_names(rule->phase);
    char id[TOPK_ID_MAX + 1];
    begin_up_to(r, rule->phase);
    snprintf(id, sizeof id, "%.*s", (int) rule->id.len, rule->id.p);
    for (size_t i = 0; names[i] != NULL; i++)
        if (rule->counts[i] != 0)
            family_put(r->m, of_phase[rule->phase], id, names[i], (double) rule->counts[i]);
}

void metrics_put_counts(struct metrics *m, struct counts *c)
{
    struct counts_sums sums;
    struct rules rules = {.m = m};
    counts_totals(c, &sums);
    put_responses(m, &sums);
    put_requests(m, &sums);
    put_endings(m, &sums);
    put_duration(m, &sums);
    counts_each_rule(c, put_rule, &rules);
    begin_up_to(&rules, COUNT_PHASE_N - 1);
    family_put_one(m, FAMILY_RULES_LEFT_OUT, (double) counts_rules_left_out(c));
    family_put_one(m, FAMILY_MATCHES_LEFT_OUT, (double) counts_matches_left_out(c));
}
