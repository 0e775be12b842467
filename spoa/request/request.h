/* One request in the agent: from its NOTIFY through the steps of steps.def to its ACK. */
#ifndef SPOA_REQUEST_REQUEST_H
#define SPOA_REQUEST_REQUEST_H

#include "common/base/clock.h"
#include "common/policy/identify.h"
#include "common/policy/policy.h"
#include "common/rate/shares.h"
#include "spoa/counters.h"
#include "spoa/doctor/challenge.h"
#include "spoa/live/lease.h"
#include "spoa/store/valkey.h"
#include "spoa/wire/conn.h"

enum {
    REQUEST_ARENA_BLOCK = 64 * 1024,       /* an ordinary request fits: no malloc from its slot's second use on */
    REQUEST_ARENA_MAX = 3 * 1024 * 1024,   /* 64 KiB of nothing but parameters or cookies fit, as values and as names */
    REQUEST_POOL_MAX = 4096,               /* requests at once in a worker; more are refused 503 by closing their connection */
    REQUEST_ACK_MAX = 60000,
};

/* Of the process, the same for all workers. */
struct request_settings {
    const struct ingress *ingress;
    struct rate_store *store;   /* embedded counters; NULL with Valkey */
    struct rate_shares *shares; /* for fail_mode local; NULL without Valkey */
    uint64_t fleet_size;        /* agents that share the limits */
    uint64_t cap_ordinary, cap_streams; /* the deployment's; a policy can lower the first. 0: not known here, HAProxy's own stays */
    const struct clock *clock;
    struct challenges *challenges; /* of edge-spoa doctor; NULL: none are given out */
    unsigned agent_index;
};

/* What the steps of one worker share. Touched by that worker's thread alone but for the counters and what settings point to. */
struct request_context {
    struct lease_slot lease_slot;
    struct counters counters;
    struct request_settings settings;
    struct valkey *valkey; /* this worker's connection; NULL: limits are counted in settings.store */
    struct request *unused; /* pool */
    size_t n_requests;      /* taken from the system so far */
    uint64_t n_limited;     /* requests that a limit refused, or would have */
};

struct request_args {
    struct str method, url, version, id;
    struct addr src;
    bool has_src;
    bool tls;
    struct str hello; /* as common/net/client_hello.h reads it; empty: not asked for, or no TLS */
    bool has_cert;    /* the client showed a certificate; then the next ones */
    int64_t cert_verify; /* OpenSSL's result: 0 is verified */
    struct str cert_subject, cert_issuer, cert_serial, cert_sha256;
    bool native; /* HAProxy applies header lists by itself */
    uint64_t body_bytes; /* announced, or there already, whichever is more */
    bool body_comes;     /* the body is not whole yet */
};

/* How a request ends. kind is meaningful unless decision lets it pass. */
struct verdict {
    enum decision decision;
    bool answer;    /* the edge answers with kind's template; false: forward */
    bool preflight; /* it answers 204 with nothing but headers: kind and what belongs to it have no meaning */
    enum kind kind;
    uint32_t retry_after_s;
    const struct rate_rule *rate_rule; /* that refused, or would have */
    const struct template *page;       /* answers in place of kind's template; NULL: kind's */
};

/* What the record says about a rule: letters of schemas/rule_counts.def. */
enum { LIMIT_LETTERS_MAX = 4, LIMIT_NOTES_MAX = RATE_CALLS_MAX + 2 * LIMIT_PASSED_NAMED_MAX + 1 };
struct limit_note {
    const struct rate_rule *rule;
    char letters[LIMIT_LETTERS_MAX];
    uint8_t n_letters;
    const struct rate_subject *subject; /* of one that refused, or would have; NULL: another one */
};

/* The rate limits of one request, while and after they are charged. */
struct request_limits {
    struct valkey_waiter waiter;
    struct limit_choice choice;
    struct rate_call calls[RATE_CALLS_MAX]; /* one for each rule of choice */
    /* For the record. */
    struct limit_note notes[LIMIT_NOTES_MAX];
    size_t n_notes, n_not_noted;
    bool sampled; /* subjects are recorded */
    struct count_choice counts;
};
/* Nothing is left to record. */
void request_limits_forget(struct request_limits *l);

struct request {
    struct spop_pending pending;
    struct request_context *context;
    struct request *next; /* in the pool */
    size_t step;          /* of steps.def, while it waits */
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
    struct header_edit edit;
    struct verdict verdict;

    /* Not cleared for the next request but for the hits' n, the edit's, and what limits have for the record: nothing of them is read that has not been
     * written before. */
    struct rule_hits config_hits, header_hits;
    struct response_edit response_edit;
    struct request_limits limits;
};

enum step_result { STEP_NEXT, STEP_DONE, STEP_WAIT };

/* A step reads what earlier steps left and sets its own part. DONE: verdict is final. WAIT: the step has arranged that request_resume is called
 * from the loop, in bounded time; until then the request keeps its policy, its arena and its place in the pool. */
#define STEP_ROW(id, function, what) enum step_result function(struct request *r);
#include "spoa/request/steps.def"
#undef STEP_ROW

/* Ends the request with the template of kind: `return request_refuse(...)`. */
enum step_result request_refuse(struct request *r, enum decision decision, enum kind kind, uint32_t retry_after_s);
/* 503 for our own trouble, counted as metric. */
enum step_result request_fail(struct request *r, enum metric metric);

/* Ends the wait of the step that returned STEP_WAIT as if it had returned result (NEXT or DONE), and runs the rest. */
void request_resume(struct request *r, enum step_result result);

/* Pins the current policy if that has not happened; false when there is none yet. */
bool request_pin(struct request *r);

/* The ACK: exactly one, whatever happened. Finishes r->pending. */
void request_reply(struct request *r);
void request_context_init(struct request_context *c, const struct request_settings *settings);
void request_context_release(struct request_context *c);
/* spop_handler.notify, with ctx a struct request_context. */
bool request_notify(void *ctx, struct spop_conn *conn, const struct spop_frame *frame);

#endif
