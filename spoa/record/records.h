/* The place where each access record is handled: read, judged, counted, and written as a line. */
#ifndef SPOA_RECORD_RECORDS_H
#define SPOA_RECORD_RECORDS_H

#include <stdatomic.h>

#include "common/base/clock.h"
#include "spoa/record/counts.h"
#include "spoa/record/writer.h"

/* What records is made with. All of it outlives it. */
struct records_options {
    unsigned agent_index;
    uint64_t log_sample_rate; /* in parts of RATE_WHOLE */
    struct counts *counts;
    struct writer *writer;
    const struct clock *clock;
};

struct records {
    struct records_options options;
    uint64_t now_ms; /* what time says; the intake's thread alone, as time */
    char time[25];

    /* Added to by the intake's thread, read by any. */
    _Atomic uint64_t n_own;             /* decided by this agent */
    _Atomic uint64_t n_without_verdict; /* decided by none; agent 0 counts them, HAProxy writes their lines */
    _Atomic uint64_t n_malformed;
    _Atomic uint64_t n_sampled_out; /* own ones without a line, because of log_sample_rate */
};

void records_init(struct records *r, const struct records_options *options);

/* --- For intake_start, whose thread calls them; ctx is a struct records. --- */

/* line: one record. Every agent of an edge gets every record; of those that another one keeps it reads no more than whose they are. What cannot be
 * read is counted. Takes no lock but the writer's, allocates nothing. */
void records_take(void *ctx, struct str line);
void records_tick(void *ctx);

#endif
