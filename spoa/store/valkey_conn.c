/* Keeps the connection to Valkey up: connects, logs in, loads the script, notices the end, tries again. */
#include <openssl/crypto.h>
#include <openssl/rand.h>
#include <stdarg.h>
#include <stdio.h>

#include "common/base/counter.h"
#include "spoa/store/valkey_priv.h"

enum { RESOLVE_LOOK_MS = 20 };

static void phase_in(struct valkey *v, enum valkey_state state, uint64_t ms)
{
    v->state = state;
    ev_timer_stop(v->loop, &v->phase);
    ev_timer_set(&v->phase, (double)ms / 1000., 0.);
    ev_timer_start(v->loop, &v->phase);
}

/* Between half of the distance and all of it, so that a fleet does not come back in step. */
static uint64_t jittered(uint64_t ms)
{
    uint8_t byte = 0;

    (void)RAND_bytes(&byte, 1);
    return ms / 2 + (ms - ms / 2) * byte / UINT8_MAX;
}

/* A connection that did not live long is no reason to try again at once: a server that ends each one would be asked without a pause. */
static void set_distance(struct valkey *v, bool was_ready)
{
    const uint64_t up_us = clock_mono_us(v->clock) - v->ready_us;

    if (was_ready && up_us >= VALKEY_RETRY_MAX_MS * UINT64_C(1000))
        v->retry_ms = 0;
}

/* A name may have addresses of a family that leads nowhere. */
static bool has_untried_address(struct valkey *v)
{
    return !v->node->target.is_unix && v->n_attempts < resolver_n(&v->node->resolver);
}

void valkey_conn_drop(struct valkey *v, enum valkey_down kind, const char *fmt, ...)
{
    const bool was_ready = v->state == VALKEY_READY;
    char why[VALKEY_TEXT_MAX + 1];
    va_list ap;

    if (v->state == VALKEY_RESTING || v->state == VALKEY_ENDING)
        return;
    va_start(ap, fmt);
    (void)vsnprintf(why, sizeof(why), fmt, ap);
    va_end(ap);
    if (v->ac != NULL) {
        ev_io_stop(v->loop, &v->read);
        ev_io_stop(v->loop, &v->write);
        ev_prepare_stop(v->loop, &v->flush);
    }
    set_distance(v, was_ready);
    phase_in(v, VALKEY_ENDING, 0);
    valkey_say_down(v, kind, why);
    if (!was_ready)
        counter_add(&v->counters->n_connect_failures, 1);
    atomic_store(&v->counters->connected, 0);
    if (!has_untried_address(v))
        atomic_store(&v->counters->attempted, 1);
}

/* Refused by the readers in valkey_glue.c: hiredis can only think that they found no memory. */
bool valkey_conn_unreadable(const redisAsyncContext *ac)
{
    return ac->c.err == REDIS_ERR_PROTOCOL || ac->c.err == REDIS_ERR_OOM;
}

bool valkey_conn_ended(struct valkey *v, const redisAsyncContext *ac)
{
    char why[VALKEY_TEXT_MAX + 1];

    if (v->state == VALKEY_RESTING || v->state == VALKEY_ENDING)
        return false;
    valkey_say_printable(v, valkey_conn_unreadable(ac) ? STR("an answer is unreadable") : str_of(ac->c.errstr), why);
    valkey_conn_drop(v, v->state == VALKEY_READY ? VALKEY_DOWN_LOST : VALKEY_DOWN_UNREACHABLE, "%s", why);
    return true;
}

static bool is_error(const redisReply *r, const char *prefix)
{
    return r->type == REDIS_REPLY_ERROR && str_starts((struct str){r->str, r->len}, str_of(prefix));
}

static void become_ready(struct valkey *v)
{
    ev_timer_stop(v->loop, &v->phase);
    v->state = VALKEY_READY;
    v->n_silent = 0;
    v->ready_us = clock_mono_us(v->clock);
    valkey_say_up(v);
    counter_add(&v->counters->n_connects, 1);
    atomic_store(&v->counters->connected, 1);
    atomic_store(&v->counters->attempted, 1);
}

static void refused(struct valkey *v, const char *command, const redisReply *r)
{
    char text[VALKEY_TEXT_MAX + 1];

    valkey_say_printable(v, (struct str){r->str, r->len}, text);
    valkey_conn_drop(v, VALKEY_DOWN_REFUSED, "%s: %s", command, text);
}

/* True: the step went well. */
static bool greeted(redisAsyncContext *ac, const redisReply *r, const char *command)
{
    struct valkey *v = ac->data;

    if (r == NULL) {
        (void)valkey_conn_ended(v, ac);
        return false;
    }
    if (v->state != VALKEY_GREETING)
        return false;
    if (r->type == REDIS_REPLY_ERROR) {
        refused(v, command, r);
        return false;
    }
    return true;
}

static bool is_ok(const redisReply *r)
{
    return r->type == REDIS_REPLY_STATUS && str_eq((struct str){r->str, r->len}, STR("OK"));
}

static void on_auth(redisAsyncContext *ac, void *reply, void *ctx)
{
    if (greeted(ac, reply, "AUTH") && !is_ok(reply))
        valkey_conn_drop(ctx, VALKEY_DOWN_REFUSED, "AUTH was not answered with OK");
}

static void on_select(redisAsyncContext *ac, void *reply, void *ctx)
{
    if (greeted(ac, reply, "SELECT") && !is_ok(reply))
        valkey_conn_drop(ctx, VALKEY_DOWN_REFUSED, "SELECT was not answered with OK");
}

/* Some servers let a user run scripts but not load them, or have no SCRIPT: EVAL then loads as it goes. */
static bool is_load_refusal(const redisReply *r)
{
    return is_error(r, "NOPERM ") || is_error(r, "ERR unknown ");
}

static void on_first_load(redisAsyncContext *ac, void *reply, void *ctx)
{
    struct valkey *v = ctx;
    const redisReply *r = reply;

    v->load_refused = r != NULL && is_load_refusal(r);
    if (v->state == VALKEY_GREETING && v->load_refused)
        become_ready(v);
    else if (!greeted(ac, r, "SCRIPT LOAD"))
        return;
    else if (r->type == REDIS_REPLY_STRING && str_eq((struct str){r->str, r->len}, str_of(v->sha1)))
        become_ready(v);
    else
        valkey_conn_drop(v, VALKEY_DOWN_REFUSED, "SCRIPT LOAD was not answered with the script's SHA-1");
}

static void on_load_again(redisAsyncContext *ac, void *reply, void *ctx)
{
    struct valkey *v = ctx;
    const redisReply *r = reply;

    v->loading = false;
    if (r == NULL)
        (void)valkey_conn_ended(v, ac);
    else
        v->load_refused = is_load_refusal(r);
}

static void send_arguments(struct valkey *v, redisCallbackFn *fn, const struct str *arguments, size_t n)
{
    bool queued;

    valkey_command_arguments(&v->command, arguments, n);
    if (!valkey_glue_send(v, fn, v, &queued))
        valkey_conn_drop(v, VALKEY_DOWN_LOST, "out of memory");
    OPENSSL_cleanse(v->command.p, v->command.len);
}

static void send_load(struct valkey *v, redisCallbackFn *fn)
{
    const struct str load[] = {STR("SCRIPT"), STR("LOAD"), rate_script_source()};

    send_arguments(v, fn, load, 3);
}

void valkey_conn_load(struct valkey *v)
{
    if (v->loading || v->load_refused)
        return;
    v->loading = true;
    send_load(v, on_load_again);
}

/* All at once: the answers come in order, and the first bad one ends it. */
static void greet(struct valkey *v)
{
    const struct valkey_target *t = &v->node->target;
    const struct str user = str_of(t->user), password = str_of(t->password);
    char db[12];

    if (user.len > 0)
        send_arguments(v, on_auth, (const struct str[]){STR("AUTH"), user, password}, 3);
    else if (password.len > 0)
        send_arguments(v, on_auth, (const struct str[]){STR("AUTH"), password}, 2);
    (void)snprintf(db, sizeof(db), "%u", t->db);
    if (t->db > 0)
        send_arguments(v, on_select, (const struct str[]){STR("SELECT"), str_of(db)}, 2);
    send_load(v, on_first_load);
}

static void on_connect(const redisAsyncContext *ac, int status)
{
    struct valkey *v = ac->data;

    if (status != REDIS_OK) {
        (void)valkey_conn_ended(v, ac);
        return;
    }
    phase_in(v, VALKEY_GREETING, VALKEY_HANDSHAKE_MS);
    /* A peer that is gone without a word is noticed on idle connections, too. */
    if (!v->node->target.is_unix)
        (void)redisEnableKeepAlive(&v->ac->c);
    greet(v);
}

static void on_disconnect(const redisAsyncContext *ac, int status)
{
    (void)status;
    (void)valkey_conn_ended(ac->data, ac);
}

/* NULL with *waits: the name is still being looked up for the first time. NULL without: there is none. */
static redisAsyncContext *open_connection(struct valkey *v, bool *waits)
{
    const struct valkey_target *t = &v->node->target;
    char address[RESOLVER_TEXT_MAX];

    *waits = false;
    if (t->is_unix)
        return redisAsyncConnectUnix(t->host);
    if (resolver_get(&v->node->resolver, v->n_attempts, address)) {
        v->n_attempts++;
        return redisAsyncConnect(address, t->port);
    }
    if (v->resolve_by_us == 0)
        v->resolve_by_us = clock_mono_us(v->clock) + t->dial_timeout_ms * 1000;
    *waits = clock_mono_us(v->clock) < v->resolve_by_us;
    if (!*waits)
        valkey_conn_drop(v, VALKEY_DOWN_UNREACHABLE, "no address is known for the name");
    return NULL;
}

static void attempt(struct valkey *v)
{
    bool waits;
    redisAsyncContext *ac;
    char why[VALKEY_TEXT_MAX + 1];

    phase_in(v, VALKEY_CONNECTING, v->node->target.dial_timeout_ms);
    ac = open_connection(v, &waits);
    if (waits) {
        phase_in(v, VALKEY_RESTING, RESOLVE_LOOK_MS);
    } else if (ac == NULL) {
        valkey_conn_drop(v, VALKEY_DOWN_UNREACHABLE,
                         "out of memory"); /* unless it was dropped already, for another reason */
    } else if (ac->err != 0) {
        valkey_say_printable(v, str_of(ac->errstr), why);
        redisAsyncFree(ac);
        valkey_conn_drop(v, VALKEY_DOWN_UNREACHABLE, "%s", why);
    } else {
        valkey_glue_attach(v, ac);
        (void)redisAsyncSetConnectCallback(ac, on_connect);
        (void)redisAsyncSetDisconnectCallback(ac, on_disconnect);
    }
}

static void rest(struct valkey *v)
{
    const uint64_t ms = v->retry_ms;

    valkey_glue_discard(v);
    v->loading = false;
    if (has_untried_address(v)) {
        phase_in(v, VALKEY_RESTING, 0);
        return;
    }
    v->retry_ms = ms == 0 ? VALKEY_RETRY_MIN_MS : ms * 2 > VALKEY_RETRY_MAX_MS ? VALKEY_RETRY_MAX_MS : ms * 2;
    phase_in(v, VALKEY_RESTING, jittered(ms));
}

static void on_phase(struct ev_loop *loop, ev_timer *w, int events)
{
    struct valkey *v = w->data;

    (void)loop;
    (void)events;
    switch (v->state) {
    case VALKEY_RESTING:
        attempt(v);
        break;
    case VALKEY_CONNECTING:
        valkey_conn_drop(v, VALKEY_DOWN_UNREACHABLE, "no connection within %u ms",
                         (unsigned)v->node->target.dial_timeout_ms);
        break;
    case VALKEY_GREETING:
        valkey_conn_drop(v, VALKEY_DOWN_UNREACHABLE, "connected, but no answer within %d ms", VALKEY_HANDSHAKE_MS);
        break;
    case VALKEY_ENDING:
        rest(v);
        break;
    case VALKEY_READY:
        break;
    }
}

void valkey_conn_init(struct valkey *v)
{
    ev_timer_init(&v->phase, on_phase, 0., 0.);
    ev_set_priority(&v->phase, -1); /* after a stall, what came in time is read first */
    v->phase.data = v;
    v->retry_ms = VALKEY_RETRY_MIN_MS;
    valkey_say_nothing_yet(v);
    phase_in(v, VALKEY_RESTING, 0);
}
