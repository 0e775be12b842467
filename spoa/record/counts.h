/* Counters of what happened to requests: by policy version and cohort, by rule, by status; and of records that never came.
 *
 * They live in a small file that the agents of one slot (agent 0, agent 1) map: they go on where an agent's process is exchanged, ends or is
 * killed, and a record that was lost meanwhile is missed by the next process, too. During an exchange two processes add to them at once, so additions
 * are atomic; nothing on the way of a record takes a lock. The file lasts as long as the launcher; a new one begins at zero. Its layout has a
 * number in its name: an agent of another build counts from zero in a file of its own.
 *
 * One record's first addition is the one to `codes`, and lost records are what HAProxy numbered less what was counted so: requests that HAProxy
 * logged = the sum of codes over the agents + lost, also where a process is killed in the middle of a record. */
#ifndef SPOA_RECORD_COUNTS_H
#define SPOA_RECORD_COUNTS_H

#include "common/base/clock.h"
#include "common/base/err.h"
#include "spoa/record/outcome.h"
#include "spoa/record/topk.h"

enum {
    COUNTS_VERSIONS_MAX = 8, /* counted apart at once: what is served, and what was until lately */
    COUNTS_RULES_MAX = 1024, /* of a version, all phases; more are left out, and counted in n_rules_left_out */
    COUNTS_RULE_COUNTS_MAX = 8,
    COUNTS_TOP_REPORTED = 20,
    COUNTS_SAMPLED_LIMITS = 16, /* one in so many limited requests names its subjects */
    COUNTS_RETIRE_MS = 60000,   /* a version that was replaced is counted apart for so long, for requests that were under way */
};

enum count_phase { COUNT_CONFIG, COUNT_RATE, COUNT_HEADER, COUNT_PHASE_N };
const char *count_phase_name(enum count_phase p); /* config, rate_limit, request_headers */
/* Of a phase, in the order of schemas/rule_counts.def: names end with NULL. */
const char *const *count_names(enum count_phase p);

enum count_latency {
#define LATENCY_BUCKET_ROW(ms, le) COUNT_LATENCY_##ms,
#include "schemas/latency_buckets.def"
#undef LATENCY_BUCKET_ROW
    COUNT_LATENCY_INF,
    COUNT_LATENCY_N
};

/* Plain numbers, as a reader gets them. Not cumulative: each request is in one of latency. */
struct counts_sums {
    uint64_t codes[2][OUTCOME_STATUS_MAX + 1]; /* [origin][status]; 0: no answer */
    uint64_t decisions[DECISION_N];
    uint64_t upstream_errors[UPSTREAM_ERROR_N]; /* NONE is not counted */
    uint64_t latency[COUNT_LATENCY_N];
};
struct counts_rule {
    enum count_phase phase;
    struct str id; /* borrowed: valid during the call that hands it out */
    uint64_t counts[COUNTS_RULE_COUNTS_MAX];
};

struct counts;

/* Maps file, made where it is not there, of mode 0600. A file of another size or without our mark is replaced: it can't be ours. clock outlives it. */
MUSTUSE bool counts_open(struct counts **out, const char *file, const struct clock *clock, struct err *e);
void counts_close(struct counts **c);

/* Policy feed's thread, before p is published: room for its version and its rules. Versions of that cohort that it replaces retire: they are
 * folded into the totals COUNTS_RETIRE_MS later, or at once where room is needed; their rules are forgotten but for those that a version still
 * counted apart has. Never while another process has the file open. */
void counts_prepare(struct counts *c, const struct policy *p, enum cohort cohort);

/* --- Intake's thread --- */

/* HAProxy's process pid has written a record with that number (both from the record), whoever decided. Called for every readable record, before
 * counts_add. */
void counts_number(struct counts *c, uint64_t pid, uint64_t sequence);
/* One request. rec NULL: no agent decided. A version or rule that is not counted apart is part of the totals only. */
void counts_add(struct counts *c, const struct rec *rec, const struct outcome *outcome);
/* A readable record of a request that is counted by another agent. */
void counts_other(struct counts *c);
/* About once a second: lost records, retirement. */
void counts_tick(struct counts *c);

/* --- Any thread --- */

/* Everything since the file was made: retired versions, too. */
void counts_totals(const struct counts *c, struct counts_sums *out);
/* Records that never came. Records of several threads overtake each other on their way, so a gap is taken for a loss when it has lasted for two
 * seconds. What HAProxy's process had not yet written when it was killed is not known. */
uint64_t counts_lost(const struct counts *c);
uint64_t counts_rules_left_out(const struct counts *c);
/* Every rule of a version that is counted apart, by phase and id, each once, its counts of all versions and of those that were folded. */
void counts_each_rule(const struct counts *c, void (*fn)(void *ctx, const struct counts_rule *rule), void *ctx);

/* What one reader has seen: for reports of what is new. {0} begins one: it gets everything so far. A version is not folded while a reader
 * that is attached has not seen its last numbers. One reader: the caller keeps calls apart. */
struct counts_reader {
    struct counts_seen *seen; /* owned; NULL at first */
    bool attached;
};
/* Of one version and cohort, what was counted since the reader's last call. */
struct counts_delta {
    int64_t config_version;
    enum cohort cohort;
    const struct counts_sums *sums;
    const struct counts_rule *rules; /* those with a count above zero */
    size_t n_rules;
    const struct topk_entry *const *top; /* most limited subjects since the last call; counts are estimates */
    size_t n_top;                        /* at most COUNTS_TOP_REPORTED */
};
/* Calls fn for each version with something new; what it is handed is valid during the call. forget: the most limited subjects start over. False: no
 * memory; nothing was called and nothing counts as seen. */
MUSTUSE bool counts_read(struct counts *c, struct counts_reader *reader, bool forget, void (*fn)(void *ctx, const struct counts_delta *delta), void *ctx);
void counts_reader_release(struct counts *c, struct counts_reader *reader);

#endif
