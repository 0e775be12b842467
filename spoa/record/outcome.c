/* What became of a request, read from the end that HAProxy saw. */
#include "spoa/record/outcome.h"

struct cause {
    struct str name;
    enum upstream_error kind;
    const char *text;
};

enum cause_id {
#define UPSTREAM_CAUSE_ROW(id, name, kind, text) CAUSE_##id,
#include "schemas/upstream_causes.def"
#undef UPSTREAM_CAUSE_ROW
    CAUSE_N
};

static const struct cause causes[CAUSE_N] = {
#define UPSTREAM_CAUSE_ROW(id, name, kind, text) [CAUSE_##id] = {{(name), sizeof(name) - 1}, UPSTREAM_ERROR_##kind, (text)},
#include "schemas/upstream_causes.def"
#undef UPSTREAM_CAUSE_ROW
};

#define UPSTREAM_CAUSE_ROW(id, name, kind, text) _Static_assert(sizeof(text) - 1 <= OUTCOME_TEXT_MAX, "the text of " name " is too long");
#include "schemas/upstream_causes.def"
#undef UPSTREAM_CAUSE_ROW

const char *upstream_error_name(enum upstream_error e)
{
    static const char *const names[] = {
        "",
#define UPSTREAM_ERROR_ROW(id, name, decision, meaning) name,
#include "schemas/upstream_errors.def"
#undef UPSTREAM_ERROR_ROW
    };
    return e < UPSTREAM_ERROR_N ? names[e] : "";
}

static enum decision decision_of(enum upstream_error e)
{
    static const enum decision decisions[UPSTREAM_ERROR_N] = {
#define UPSTREAM_ERROR_ROW(id, name, decision, meaning) [UPSTREAM_ERROR_##id] = DECISION_##decision,
#include "schemas/upstream_errors.def"
#undef UPSTREAM_ERROR_ROW
    };
    return decisions[e];
}

/* Why the upstream gave no answer; NULL where that is not what happened. A word that we don't know is still a failure. */
static const struct cause *cause_of(const struct record *r)
{
    struct str said = r->fields[RECORD_UPSTREAM_ERROR];
    if (record_is_absent(r, RECORD_UPSTREAM_ERROR)) {
        /* No rule saw this end: HAProxy answers a connect timeout with silence where a client can ask again. */
        bool silent = str_eq(r->fields[RECORD_TERMINATION], STR("sC")) && str_eq(r->fields[RECORD_STATUS], STR("503"));
        return silent ? &causes[CAUSE_TIMEOUT_SILENT] : NULL;
    }
    for (size_t i = 0; i < CAUSE_N; i++)
        if (str_eq(causes[i].name, said))
            return &causes[i];
    return &causes[CAUSE_OTHER];
}

/* The first letter of how it ended: C, the client left; P, HAProxy found something that is no HTTP; ... */
static char ended_by(const struct record *r)
{
    struct str ended = r->fields[RECORD_TERMINATION];
    return ended.len == 2 ? ended.p[0] : '-';
}

/* A request that nobody refused, yet HAProxy did in the middle of its body. */
static bool is_broken_request(const struct record *r)
{
    return ended_by(r) == 'P' && (r->decision == DECISION_ALLOW || r->decision == DECISION_WOULD_BLOCK);
}

void outcome_read(const struct record *r, struct outcome *out)
{
    bool answered = str_eq(r->fields[RECORD_ANSWERED], STR("true"));
    int64_t duration_ms = record_number(r, RECORD_TOTAL_MS, 0), data_ms = record_number(r, RECORD_DATA_MS, 0);
    int64_t status = record_number(r, RECORD_STATUS, 0);
    const struct cause *cause = answered ? NULL : cause_of(r);

    out->decision = r->decision;
    out->origin = answered ? ORIGIN_UPSTREAM : ORIGIN_EDGE;
    out->status = status > OUTCOME_CODE_MAX ? OUTCOME_CODE_MAX : (unsigned) status;
    out->upstream_error = UPSTREAM_ERROR_NONE;
    out->upstream_error_text = NULL;
    out->duration_ms = (uint64_t) duration_ms;
    out->latency_ms = (uint64_t) (data_ms <= duration_ms ? duration_ms - data_ms : 0);
    if (cause != NULL) {
        out->upstream_error = cause->kind;
        out->upstream_error_text = cause->text;
        out->decision = decision_of(cause->kind);
        if (cause == &causes[CAUSE_TIMEOUT_SILENT])
            out->status = 504;
    } else if (!answered && ended_by(r) == 'C') {
        out->status = 0;
    } else if (!answered && is_broken_request(r)) {
        out->decision = DECISION_BAD_REQUEST;
    }
}
