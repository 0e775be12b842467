/* What became of a request: the agent's verdict and HAProxy's record of the end, put together. Pure. */
#ifndef SPOA_RECORD_OUTCOME_H
#define SPOA_RECORD_OUTCOME_H

#include "spoa/record/record.h"

enum upstream_error {
    UPSTREAM_ERROR_NONE,
#define UPSTREAM_ERROR_ROW(id, name, decision, meaning) UPSTREAM_ERROR_##id,
#include "schemas/upstream_errors.def"
#undef UPSTREAM_ERROR_ROW
    UPSTREAM_ERROR_N
};
const char *upstream_error_name(enum upstream_error e); /* "" of NONE */

enum origin { ORIGIN_EDGE, ORIGIN_UPSTREAM };

enum { OUTCOME_STATUS_MAX = 600 }; /* stands for all above 599, which an upstream may send */

struct outcome {
    enum decision decision; /* the agent's; HAProxy's where there is no verdict, or where it ended a request that had been let pass */
    enum origin origin;     /* of the response; EDGE also where there was none */
    unsigned status;        /* 0: the client left before it had a response; at most 999, as HAProxy wrote it */
    enum upstream_error upstream_error; /* NONE: the upstream answered, or was not asked, or the client left */
    const char *upstream_error_text;    /* static, at most 512 bytes, from HAProxy's codes alone; NULL with NONE */
    uint64_t latency_ms;  /* to the response's headers; where there was no response as duration_ms */
    uint64_t duration_ms; /* to the end: of a stream its life */
};

/* r as record_parse left it. Without a verdict decision is BAD_REQUEST where HAProxy gives none: it was refused before it was a request. A request that
 * was let pass and that HAProxy answered with 502, 503 or 504 in the upstream's stead is an upstream error, unless the client left first;
 * that decision goes before WOULD_BLOCK. */
void outcome_read(const struct record *r, struct outcome *out);

#endif
