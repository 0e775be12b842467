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

enum {
    OUTCOME_STATUS_MAX = 600, /* in counts it stands for all above 599, which an upstream may send */
    OUTCOME_CODE_MAX = 999,
    OUTCOME_TEXT_MAX = 512
};

struct outcome {
    enum decision decision; /* HAProxy's where there is no verdict, or where it ended a request that had been let pass; else the agent's */
    enum origin origin;     /* of the response; EDGE also where there was none */
    unsigned status;        /* at most OUTCOME_CODE_MAX; 0: the client left before it had a response, or never got so far as to send a request */
    enum upstream_error upstream_error; /* NONE: the upstream answered, or was not asked, or the client left */
    const char *upstream_error_text;    /* static, at most OUTCOME_TEXT_MAX bytes; NULL with NONE. Nothing that a peer has said is in it */
    uint64_t latency_ms;  /* to the response's headers; where there was no response as duration_ms */
    uint64_t duration_ms; /* to the end: of a stream its life */
};

/* r as record_parse left it. Without a verdict decision is BAD_REQUEST where HAProxy gives none: it was refused before it was a request. Where HAProxy
 * answered in the upstream's stead the request ended in an upstream error, whatever it had been let pass as. A connect timeout that HAProxy leaves
 * without an answer, since it knows that the client can ask again, has the 504 that others get. A response that broke off was an answer: its
 * status stays. */
void outcome_read(const struct record *r, struct outcome *out);

#endif
