/* One request in the agent: from its NOTIFY through the steps of steps.def to its ACK. */
#ifndef SPOA_REQUEST_REQUEST_H
#define SPOA_REQUEST_REQUEST_H

#include "common/base/clock.h"
#include "common/policy/identify.h"
#include "common/policy/policy.h"
#include "common/rate/rate.h"
#include "spoa/counters.h"
#include "spoa/live/lease.h"
#include "spoa/wire/conn.h"

enum {
    REQUEST_ARENA_BLOCK = 64 * 1024,       /* an ordinary request fits: no malloc from its slot's second use on */
    REQUEST_ARENA_MAX = 1024 * 1024,
    REQUEST_POOL_MAX = 4096,               /* requests at once in a worker; more are refused 503 by closing their connection */
    REQUEST_ACK_MAX = 60000,
};

/* What the steps of one worker share. Touched by that worker's thread alone but for store and counters. */
struct request_context {
    struct lease_slot lease_slot;
    struct counters counters;
    struct rate_store *store; /* the process's, shared */
    const struct clock *clock;
    unsigned agent_index;
    struct request *unused; /* pool */
    size_t n_requests;      /* taken from the system so far */
};

struct request_args {
    struct str method, url, version, id;
    struct addr src;
    bool has_src;
    bool tls;
};

/* How a request ends. kind is meaningful unless decision lets it pass. */
struct verdict {
    enum decision decision;
    bool answer; /* the edge answers with kind's template; false: forward */
    enum kind kind;
    uint32_t retry_after_s;
    const struct rate_rule *rate_rule; /* that refused, or would have */
};

struct request {
    struct spop_pending pending;
    struct request_context *context;
    struct request *next; /* in the pool */
    struct arena arena;
    struct str payload; /* the NOTIFY's, in the arena */

    struct request_args args;
    struct headers headers;
    struct identity identity;
    struct request_view view;
    struct lease *lease;
    const struct policy *policy; /* pinned; NULL until then */
    struct settings settings;
    bool has_settings; /* the config phase has run: its templates apply */
    struct rule_hits config_hits, header_hits;
    struct header_edit edit;
    struct verdict verdict;
};

enum step_result { STEP_NEXT, STEP_DONE };

/* A step reads what earlier steps left and sets its own part; DONE means that verdict is final. */
#define STEP_ROW(id, function, what) enum step_result function(struct request *r);
#include "spoa/request/steps.def"
#undef STEP_ROW

/* Ends the request with the template of kind: `return request_refuse(...)`. */
enum step_result request_refuse(struct request *r, enum decision decision, enum kind kind, uint32_t retry_after_s);
/* 503 for our own trouble, counted as metric. */
enum step_result request_fail(struct request *r, enum metric metric);

/* Pins the current policy if that has not happened; false when there is none yet. */
bool request_pin(struct request *r);

/* The ACK: exactly one, whatever happened. Finishes r->pending. */
void request_reply(struct request *r);
void request_context_init(struct request_context *c, struct rate_store *store, const struct clock *clock, unsigned agent_index);
void request_context_release(struct request_context *c);
/* spop_handler.notify, with ctx a struct request_context. */
bool request_notify(void *ctx, struct spop_conn *conn, const struct spop_frame *frame);

#endif
