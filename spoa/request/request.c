/* Runs a request through the steps and keeps the pool that requests come from. */
#include "spoa/request/request.h"

#include <stdlib.h>

typedef enum step_result (*step_function)(struct request *r);

static const step_function steps[] = {
#define STEP_ROW(id, function, what) function,
#include "spoa/request/steps.def"
#undef STEP_ROW
};

enum step_result request_refuse(struct request *r, enum decision decision, enum kind kind, uint32_t retry_after_s)
{
    r->verdict.decision = decision;
    r->verdict.answer = true;
    r->verdict.kind = kind;
    r->verdict.retry_after_s = retry_after_s;
    return STEP_DONE;
}

enum step_result request_fail(struct request *r, enum metric metric)
{
    counter_add(&r->context->counters.plain[metric], 1);
    return request_refuse(r, DECISION_UNAVAILABLE, KIND_UNAVAILABLE, 1);
}

bool request_pin(struct request *r)
{
    if (r->lease == NULL)
        r->lease = lease_take(&r->context->lease_slot);
    if (r->lease == NULL)
        return false;
    r->policy = r->lease->policy;
    return true;
}

void request_context_init(struct request_context *c, const struct request_settings *settings)
{
    memset(c, 0, sizeof *c);
    lease_slot_init(&c->lease_slot);
    c->settings = *settings;
}

void request_context_release(struct request_context *c)
{
    while (c->unused != NULL) {
        struct request *r = c->unused;
        c->unused = r->next;
        arena_release(&r->arena);
        free(r);
    }
    lease_slot_release(&c->lease_slot);
}

static struct request *request_get(struct request_context *c)
{
    struct request *r = c->unused;
    if (r != NULL) {
        c->unused = r->next;
        return r;
    }
    if (c->n_requests == REQUEST_POOL_MAX)
        return NULL;
    r = calloc(1, sizeof *r);
    if (r == NULL)
        return NULL;
    arena_init(&r->arena, REQUEST_ARENA_BLOCK, REQUEST_ARENA_MAX);
    r->context = c;
    c->n_requests++;
    return r;
}

static void request_put(struct request *r)
{
    struct request_context *c = r->context;
    struct arena arena = r->arena;
    if (r->lease != NULL)
        lease_put(r->lease);
    arena_reset(&arena);
    memset(r, 0, offsetof(struct request, config_hits));
    r->config_hits.n = r->header_hits.n = 0;
    response_edit_clear(&r->response_edit);
    request_limits_forget(&r->limits);
    r->arena = arena;
    r->context = c;
    r->next = c->unused;
    c->unused = r;
}

static void finish(struct request *r)
{
    request_reply(r);
    request_put(r);
}

/* From r->step on, until a step ends the request, waits, or was the last. */
static void run(struct request *r)
{
    enum step_result result = STEP_NEXT;
    while (result == STEP_NEXT && r->step < sizeof steps / sizeof steps[0]) {
        result = steps[r->step](r);
        if (result == STEP_NEXT)
            r->step++;
    }
    if (result != STEP_WAIT)
        finish(r);
}

void request_resume(struct request *r, enum step_result result)
{
    r->step++;
    if (result == STEP_NEXT)
        run(r);
    else
        finish(r);
}

bool request_notify(void *ctx, struct spop_conn *conn, const struct spop_frame *frame)
{
    struct request *r = request_get(ctx);
    if (r == NULL)
        return false;
    spop_conn_adopt(conn, &r->pending, frame);

    /* A copy, so that a request that has to wait for something does not hold the connection's read buffer. */
    if (arena_copy_str(&r->arena, frame->payload, &r->payload)) {
        run(r);
    } else {
        request_fail(r, METRIC_INTERNAL);
        finish(r);
    }
    return true;
}
