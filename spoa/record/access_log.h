/* Access records become JSON lines: one for each finished request that this agent decided. */
#ifndef SPOA_RECORD_ACCESS_LOG_H
#define SPOA_RECORD_ACCESS_LOG_H

#include <stdatomic.h>

#include "common/base/arena.h"
#include "common/base/clock.h"
#include "spoa/record/record.h"
#include "spoa/record/writer.h"

enum { ACCESS_LINE_MAX = 32 * 1024 };

struct access_log {
    unsigned agent_index;
    struct writer *writer;
    const struct clock *clock;
    struct arena scratch; /* the intake's thread alone */
    /* Added to by the intake's thread, read by any. */
    _Atomic uint64_t n_own, n_without_verdict, n_malformed;
};

void access_log_init(struct access_log *log, unsigned agent_index, struct writer *writer, const struct clock *clock);
void access_log_release(struct access_log *log);
/* For intake_start; ctx is a struct access_log. Every agent of an edge gets every record: one that another agent decided is left to it; one
 * without a verdict was logged by HAProxy itself and is counted by agent 0 alone. */
void access_log_record(void *ctx, struct str line);
/* The line of a record with a verdict; ended_ms: since 1970. Names follow OpenTelemetry's HTTP conventions. */
void access_log_render(const struct record *r, uint64_t ended_ms, struct arena *scratch, struct buf *out);

#endif
