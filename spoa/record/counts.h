/* Counters of what happened to requests: by policy version and cohort, by rule, by status; and of records that never came.
 *
 * They live in a small file that the agents of one slot (agent 0, agent 1) map: they go on where an agent's process is exchanged, ends or is
 * killed, and a record that was lost meanwhile is missed by the next process, too. During an exchange two processes add to them at once, so additions
 * are atomic; nothing on the way of a record takes a lock, but for the subjects of a sampled limit and the first record of a new HAProxy
 * process. The file lasts as long as the launcher, which removes it; a new one begins at zero. Its name ends in a hash of its layout and of the tables whose
 * rows it counts: an agent of another build counts from zero in a file of its own.
 *
 * Each record is one addition to the totals' `codes` (counts_add) or to one cell for all records of others (counts_other), and what was received is the
 * sum of these cells, never a number of its own. So for each slot: what HAProxy numbered = the sum of its codes + records of others + lost, also
 * where a process is killed in the middle of a record. Everything else follows that addition: decisions, latency, and what is counted by version and
 * by rule can lack the one record in whose middle a process was killed. */
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
    COUNTS_PROCESSES_MAX = 4, /* that have the file open at once */
    COUNTS_READERS_MAX = 4,
    COUNTS_RETIRE_MS = 60000, /* a version that was replaced is counted apart for so long, for requests that were under way */
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

/* Maps the file that file names with ".<hash of the layout>" behind it, made where it is not there, of mode 0600 and with its space on the disk taken. A
 * regular file of another size or without our mark is made anew: it can't be ours. Refused: a symbolic link, what is no regular file, has another owner or
 * more than one name; COUNTS_PROCESSES_MAX have it open. clock outlives it, and is the same for all (CLOCK_MONOTONIC is). */
MUSTUSE bool counts_open(struct counts **out, const char *file, const struct clock *clock, struct err *e);
void counts_close(struct counts **c);

/* Policy feed's thread, before p is published: room for its version and its rules; under a version that is there already, rules that it does not have are
 * added. Versions of that cohort that it replaces retire: they are folded into the totals COUNTS_RETIRE_MS later, while no other process has the
 * file open; the one that retired first at once where room is needed. Their rules are forgotten but for those that a version still counted apart has. p NULL: the cohort is served no more. A process that was stopped in
 * the middle of a change keeps others from theirs: after a second p's requests are in the totals only. */
void counts_prepare(struct counts *c, const struct policy *p, enum cohort cohort);

/* --- Intake's thread --- */

/* HAProxy's process pid has written a record with that number (both from the record), whoever decided. Called for every readable record, before
 * counts_add or counts_other: then a process that is killed between them leaves a gap, not a record without a number. The number has 32 bits
 * and begins at 0 again behind the last. pid 0: not known. */
void counts_number(struct counts *c, uint64_t pid, uint64_t sequence);
/* One request. rec NULL: no agent decided. A version or rule that is not counted apart is part of the totals only. */
void counts_add(struct counts *c, const struct rec *rec, const struct outcome *outcome);
/* A record of a request that is counted by another agent. One that can't be read is given to nobody here: its number is missing, so it is lost. */
void counts_other(struct counts *c);
/* About once a second: lost records, retirement. */
void counts_tick(struct counts *c);

/* --- Any thread --- */

/* Everything since the file was made: retired versions, too. */
void counts_totals(const struct counts *c, struct counts_sums *out);
/* Records that never came to this slot, whoever decided them; never decreasing. Records of several threads overtake each other on their way, so a gap is
 * taken for a loss when it has lasted for two seconds, in which no other process received records. The first HAProxy process of a new file is
 * taken to begin with the first number that came, since it may have run before; any other at 0. 64 are kept apart, those that run before those that have
 * ended. What a process had not yet written when it was killed is not known. */
uint64_t counts_lost(const struct counts *c);
/* Records given to counts_other. */
uint64_t counts_others(const struct counts *c);
/* Of the versions that are counted apart now. */
uint64_t counts_rules_left_out(const struct counts *c);
/* Matches that did not fit the lists of a record (REC_IDS_MAX): the rules' own counts miss them. */
uint64_t counts_matches_left_out(const struct counts *c);
/* Every rule of a version that is counted apart, by phase and id, each once, its counts of all versions and of those that were folded. A phase's rules
 * come one behind the other. fn calls nothing of counts. */
void counts_each_rule(struct counts *c, void (*fn)(void *ctx, const struct counts_rule *rule), void *ctx);

/* What one reader has seen: for reports of what is new. {0} begins one: it gets everything so far that is still counted apart. Its owner keeps calls apart.
 * A version that is past its time is not folded while an attached reader of this process has not seen its last numbers, unless room is needed or
 * another process folds it: what it had unseen then is no part of any delta, and n_missed says how many requests that were, as far as this process folded it. */
struct counts_reader {
    struct counts_seen *seen; /* owned; NULL at first */
    bool attached;            /* set by the owner before the first call; at most COUNTS_READERS_MAX are */
    uint64_t n_missed;
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
/* Calls fn for each version with something new; what it is handed is valid during the call. Most limited subjects are those of this process's
 * records. forget: they start over. False: no memory, or too many readers; nothing was called and nothing counts as seen. */
MUSTUSE bool counts_read(struct counts *c, struct counts_reader *reader, bool forget, void (*fn)(void *ctx, const struct counts_delta *delta), void *ctx);
void counts_reader_release(struct counts *c, struct counts_reader *reader);

#endif
