/* The shared store's calls: one pipelined command each, told apart by their order, ended by their answer, their deadline or the connection. */
#include "spoa/store/valkey.h"

#include <openssl/crypto.h>
#include <stdlib.h>

#include "common/base/counter.h"
#include "spoa/store/valkey_priv.h"

const char *store_outcome_name(enum store_outcome o)
{
    static const char *const names[STORE_OUTCOME_N] = {
#define STORE_OUTCOME(id, name, meaning) [STORE_##id] = name,
#include "spoa/store/outcomes.def"
#undef STORE_OUTCOME
    };

    return names[o];
}

void valkey_command_arguments(struct buf *b, const struct str *arguments, size_t n)
{
    b->len = 0;
    b->full = false;
    buf_printf(b, "*%zu\r\n", n);
    for (size_t i = 0; i < n; i++) {
        buf_printf(b, "$%zu\r\n", arguments[i].len);
        buf_put(b, arguments[i]);
        buf_put(b, STR("\r\n"));
    }
}

static struct valkey_call *take_call(struct valkey *v)
{
    struct valkey_call *c = v->spare;

    if (c != NULL)
        v->spare = c->next;
    else if (v->n_made < VALKEY_CALLS_MAX)
        c = &v->pool[v->n_made++];
    return c;
}

static void put_call(struct valkey *v, struct valkey_call *c)
{
    c->next = v->spare;
    v->spare = c;
}

static void wait_for(struct valkey *v, struct valkey_call *c)
{
    c->next = NULL;
    c->link = v->waiting_end;
    *v->waiting_end = c;
    v->waiting_end = &c->next;
}

/* Nobody waits for c any more. */
static struct valkey_waiter *forget(struct valkey *v, struct valkey_call *c)
{
    struct valkey_waiter *w = c->waiter;

    *c->link = c->next;
    if (c->next != NULL)
        c->next->link = c->link;
    else
        v->waiting_end = c->link;
    c->waiter = NULL;
    return w;
}

static void count(struct valkey *v, enum store_outcome o)
{
    counter_add(&v->counters->calls[o], 1);
}

static void arm_overdue(struct valkey *v, uint64_t now_us)
{
    const uint64_t deadline_us = v->waiting->deadline_us;

    ev_timer_set(&v->overdue, deadline_us > now_us ? (double)(deadline_us - now_us) / 1e6 : 0., 0.);
    ev_timer_start(v->loop, &v->overdue);
}

/* The timer is not moved with each call: it rings for a call that may have been answered since, and then looks for the next one. */
static void on_overdue(struct ev_loop *loop, ev_timer *w, int events)
{
    struct valkey *v = w->data;
    const uint64_t now_us = clock_mono_us(v->clock);

    (void)loop;
    (void)events;
    while (v->waiting != NULL && v->waiting->deadline_us <= now_us) {
        struct valkey_waiter *waiter = forget(v, v->waiting);

        v->n_overdue++;
        v->n_silent++;
        count(v, STORE_TIMEOUT);
        breaker_failure(&v->node->breaker, now_us);
        waiter->done(waiter, STORE_TIMEOUT);
    }
    /* Where only this connection is dead, other workers' answers keep the breaker closed. */
    if (v->n_silent >= VALKEY_SILENT_MAX || (v->n_overdue > 0 && breaker_is_open(&v->node->breaker)))
        valkey_conn_drop(v, VALKEY_DOWN_LOST, "calls got no answer within %u ms", (unsigned)v->node->timeout_ms);
    if (v->waiting != NULL && !ev_is_active(&v->overdue))
        arm_overdue(v, now_us);
}

/* Appends the script's command. False: the connection has become useless; *queued says whether hiredis will still call back. */
static bool send_call(struct valkey *v, struct valkey_call *c, redisCallbackFn *fn, bool *queued)
{
    v->command.len = 0;
    v->command.full = false;
    rate_script_command(&v->command, c->as_eval ? NULL : v->sha1, c->calls, c->n);
    *queued = false;
    if (!v->command.full && valkey_glue_send(v, fn, c, queued))
        return true;
    valkey_conn_drop(v, VALKEY_DOWN_LOST, "out of memory");
    return false;
}

static bool is_error_of(const redisReply *r, const char *code)
{
    return r->type == REDIS_REPLY_ERROR && str_starts((struct str){r->str, r->len}, str_of(code));
}

/* The answer's meaning. *node_failed: it says something about the node, not about one key. */
static enum store_outcome judge(struct valkey *v, const struct valkey_call *c, const redisReply *r, bool *node_failed)
{
    uint64_t now_ms;

    *node_failed = true;
    if (r->type == REDIS_REPLY_ERROR) {
        *node_failed = !is_error_of(r, "WRONGTYPE ");
        valkey_say_error(v, (struct str){r->str, r->len});
        return STORE_ERROR;
    }
    if (r->type != REDIS_REPLY_STRING || !rate_script_reply((struct str){r->str, r->len}, c->calls, c->n, &now_ms))
        return STORE_MALFORMED;
    *node_failed = false;
    atomic_store_explicit(&v->counters->skew_ms, (int64_t)(now_ms - clock_real_ms(v->clock)), memory_order_relaxed);
    return STORE_ANSWERED;
}

static void finish(struct valkey *v, struct valkey_call *c, enum store_outcome o, bool node_failed)
{
    struct valkey_waiter *waiter = forget(v, c);

    put_call(v, c);
    count(v, o);
    if (node_failed)
        breaker_failure(&v->node->breaker, clock_mono_us(v->clock));
    else
        breaker_success(&v->node->breaker);
    waiter->done(waiter, o);
}

static void on_answer(redisAsyncContext *ac, void *reply, void *ctx);

/* The script was not there, so nothing has run. The deadline and the place among the waiting stay. True: the call is on its way again. */
static bool send_again(struct valkey *v, struct valkey_call *c, bool *queued)
{
    c->as_eval = true;
    counter_add(&v->counters->n_noscript, 1);
    if (!send_call(v, c, on_answer, queued))
        return false;
    valkey_conn_load(v); /* what EVAL has loaded may be evicted */
    return true;
}

static void on_answer(redisAsyncContext *ac, void *reply, void *ctx)
{
    struct valkey *v = ac->data;
    struct valkey_call *c = ctx;
    /* hiredis goes on with what it has read after an answer that gave the connection up. */
    const redisReply *r = v->state == VALKEY_READY ? reply : NULL;
    enum store_outcome outcome = STORE_LOST;
    bool node_failed = true, queued = false, demoted = false;

    /* First, so that a waiter who calls again is told that there is no connection. */
    if (r == NULL && valkey_conn_ended(v, ac) && valkey_conn_unreadable(ac))
        outcome = STORE_MALFORMED;
    if (r != NULL)
        v->n_silent = 0;
    if (c->waiter == NULL) {
        v->n_overdue--;
        put_call(v, c);
        return;
    }
    if (r != NULL && !c->as_eval && is_error_of(r, "NOSCRIPT")) {
        if (send_again(v, c, &queued) || queued)
            return; /* queued on a connection that is given up: told when that ends */
    } else if (r != NULL) {
        outcome = judge(v, c, r, &node_failed);
        demoted = is_error_of(r, "READONLY");
        /* Perhaps an answer too many: the next ones would reach the wrong calls. */
        if (outcome == STORE_MALFORMED)
            valkey_conn_drop(v, VALKEY_DOWN_LOST, "an answer is unreadable");
    }
    finish(v, c, outcome, node_failed);
    /* After a fail-over the name may lead to the new primary, but this connection never will. */
    if (demoted && breaker_is_open(&v->node->breaker))
        valkey_conn_drop(v, VALKEY_DOWN_LOST, "it is a read-only replica");
}

static bool may_charge(struct valkey *v, uint64_t now_us, enum store_outcome *outcome)
{
    if (v->state != VALKEY_READY)
        *outcome = STORE_NOT_CONNECTED;
    else if (v->spare == NULL && v->n_made == VALKEY_CALLS_MAX)
        *outcome = STORE_BUSY;
    else if (!breaker_allow(&v->node->breaker, now_us))
        *outcome = STORE_BREAKER_OPEN;
    else
        return true;
    return false;
}

bool valkey_charge(struct valkey *v, struct rate_call *calls, size_t n, struct valkey_waiter *w,
                   enum store_outcome *outcome)
{
    const uint64_t now_us = clock_mono_us(v->clock);
    struct valkey_call *c;
    bool queued;

    if (!may_charge(v, now_us, outcome)) {
        count(v, *outcome);
        /* Another worker has opened the breaker, and this connection has shown the same trouble. */
        if (*outcome == STORE_BREAKER_OPEN && v->n_overdue > 0)
            valkey_conn_drop(v, VALKEY_DOWN_LOST, "calls got no answer within %u ms", (unsigned)v->node->timeout_ms);
        return false;
    }
    c = take_call(v);
    *c = (struct valkey_call){.waiter = w, .calls = calls, .n = n, .deadline_us = now_us + v->node->timeout_ms * 1000};
    if (!send_call(v, c, on_answer, &queued)) {
        *outcome = STORE_NOT_CONNECTED;
        count(v, *outcome);
        c->waiter = NULL;
        if (queued)
            v->n_overdue++; /* hiredis still has a callback for it */
        else
            put_call(v, c);
        return false;
    }
    wait_for(v, c);
    if (!ev_is_active(&v->overdue))
        arm_overdue(v, now_us);
    return true;
}

static void release(struct valkey *v)
{
    free(v->command.p);
    free(v->pool);
    free(v);
}

static bool take_memory(struct valkey *v, struct err *e)
{
    v->command.cap = RATE_COMMAND_MAX + rate_script_source().len;
    v->command.p = malloc(v->command.cap);
    v->pool = calloc(VALKEY_CALLS_MAX, sizeof(*v->pool));
    if (v->command.p == NULL || v->pool == NULL || pthread_mutex_init(&v->lock, NULL) != 0)
        return err_set(e, ERR_NO_MEMORY, "", "out of memory for the connection to Valkey");
    return true;
}

bool valkey_new(struct valkey **out, struct ev_loop *loop, struct valkey_node *node, const struct clock *clock,
                struct valkey_counters *counters, struct err *e)
{
    struct valkey *v = calloc(1, sizeof(*v));

    if (v == NULL)
        return err_set(e, ERR_NO_MEMORY, "", "out of memory for the connection to Valkey");
    if (!rate_script_sha1(v->sha1))
        (void)err_set(e, ERR_INTERNAL, "", "the crypto library has no SHA-1, which names the script in Valkey");
    if (v->sha1[0] == '\0' || !take_memory(v, e)) {
        release(v);
        return false;
    }
    v->loop = loop;
    v->node = node;
    v->clock = clock;
    v->counters = counters;
    v->waiting_end = &v->waiting;
    ev_init(&v->overdue, on_overdue);
    ev_set_priority(&v->overdue, -1); /* after a stall, answers that came in time are read first */
    v->overdue.data = v;
    valkey_glue_init(v);
    valkey_conn_init(v);
    *out = v;
    return true;
}

void valkey_free(struct valkey **v)
{
    struct valkey *gone = *v;

    if (gone == NULL)
        return;
    gone->state = VALKEY_RESTING; /* who is told now and calls again is told that there is no connection */
    atomic_store(&gone->counters->connected, 0);
    valkey_glue_discard(gone);
    ev_timer_stop(gone->loop, &gone->phase);
    ev_timer_stop(gone->loop, &gone->overdue);
    pthread_mutex_destroy(&gone->lock);
    release(gone);
    *v = NULL;
}
