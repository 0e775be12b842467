/* The script in a real Valkey against rate_step: the same random requests must get the same verdicts, leave the same state and live as long. */
#include <CUnit/CUnit.h>
#include <inttypes.h>
#include <stdio.h>

#include "common/rate/script.h"
#include "tests/unit/rate_server.h"

enum { STATE_LEN = 13, N_SEQUENCES = 200, N_STEPS = 40 };
static const uint64_t content_max = (uint64_t) 1 << 51, time_max = ((uint64_t) 1 << 48) - 1;

/* xorshift64*: repeatable from its seed. */
static uint64_t draw(uint64_t *seed, uint64_t below)
{
    *seed ^= *seed >> 12;
    *seed ^= *seed << 25;
    *seed ^= *seed >> 27;
    return (*seed * 2685821657736338717U >> 11) % below;
}

/* What the model knows of a key. */
enum holds { HOLDS_NOTHING, HOLDS_STATE, HOLDS_OTHER_TEXT, HOLDS_OTHER_TYPE };
struct counter {
    struct rate_params params;
    struct rate_name name;
    char key[RATE_KEY_TEXT_MAX];
    size_t key_len;
    enum holds holds;
    struct rate_state state;
    uint64_t expires_ms; /* on the store's clock; 0: stays */
};

struct run {
    struct rate_server server;
    char sha1[41];
    struct arena arena;
    uint64_t seed;
    struct counter counters[RATE_CALLS_MAX];
    struct rate_call calls[RATE_CALLS_MAX];
    size_t n;
    uint64_t now_ms; /* of the last answer */
};

static redisReply *next_reply(redisContext *link)
{
    void *reply = NULL;
    CU_ASSERT_FATAL(redisGetReply(link, &reply) == REDIS_OK && reply);
    return reply;
}

static int64_t integer(redisReply *reply)
{
    int64_t n = reply->integer;
    CU_ASSERT_FATAL(reply->type == REDIS_REPLY_INTEGER);
    freeReplyObject(reply);
    return n;
}

static void order(redisContext *link, const char *what, const struct counter *c, const char *value, size_t len)
{
    const char *argv[] = {what, c->key, value, "f"};
    const size_t lens[] = {strlen(what), c->key_len, len, 1};
    int argc = strcmp(what, "DEL") == 0 ? 2 : strcmp(what, "HSET") == 0 ? 4 : 3;
    redisReply *reply = redisCommandArgv(link, argc, argv, lens);
    CU_ASSERT_FATAL(reply && reply->type != REDIS_REPLY_ERROR);
    freeReplyObject(reply);
}

static void pack(struct rate_state s, char out[static STATE_LEN])
{
    for (size_t i = 0; i < 7; i++)
        out[i] = (char) (uint8_t) (s.a >> (48 - 8 * i));
    for (size_t i = 0; i < 6; i++)
        out[7 + i] = (char) (uint8_t) (s.b >> (40 - 8 * i));
}

/* ---- what a sequence draws ---- */

static struct rate_params draw_params(uint64_t *seed)
{
    static const struct rate_params edges[] = {
        {1, 1, 1000}, {1, 1, 86400000}, {3, 1, 1000}, {7, 5, 1000}, {1000000000, 1000000000, 1000}, {1, 1000000000, 1000},
        {1, 26062497, 86400000}, {1000000000, 26062497, 86400000}, {1000000000, 1, 86400000}, {999999937, 2251799, 1000000},
        {1, 536870912, 4194304}, {3, 536870912, 4194304}, {1000000000, 536870912, 4194304}, {1000000000, 1, 1000}, /* 2^29 * 2^22: the bound itself */
    };
    static const uint64_t tens[] = {1, 10, 1000, 100000, 1000000000};
    struct rate_params p = edges[draw(seed, sizeof edges / sizeof *edges)];

    if (draw(seed, 2)) {
        p.period_ms = draw(seed, 2) ? 1000 : 1000 + draw(seed, 86399001);
        p.limit = 1 + draw(seed, tens[draw(seed, 5)]);
        p.burst = 1 + draw(seed, draw(seed, 3) ? 5 : 26062497);
    }
    return p;
}

static void plant_text(struct run *r, struct counter *c)
{
    static const struct str others[] = {
        {"", 0}, {"0", 1}, {"no counter", 10}, {"1 2", 3}, {"6000 1764485000123", 18}, {"twelve bytes", 12}, {"fourteen bytes", 14},
        {"other letters", 13}, {"\0\0\0\0\0\0\0\0\0\0\0\0", 12}, {"\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 14},
        {"\x08\x00\x00\x00\x00\x00\x01\x7f\xff\xff\xff\xff\xff", 13}, /* one unit more than any bucket holds, in the future */
        {"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 13},
    };
    const struct str *text = &others[draw(&r->seed, sizeof others / sizeof *others)];
    order(r->server.link, "SET", c, text->p, text->len);
    c->holds = HOLDS_OTHER_TEXT;
}

static void plant_type(struct run *r, struct counter *c)
{
    static const char *const commands[] = {"LPUSH", "SADD", "HSET"};
    order(r->server.link, commands[draw(&r->seed, 3)], c, "v", 1);
    c->holds = HOLDS_OTHER_TYPE;
}

/* A state of any age, also from the future, with any content, also more than the bucket may hold now. */
static void plant_state(struct run *r, struct counter *c)
{
    uint64_t capacity = c->params.burst * c->params.period_ms;
    uint64_t contents[] = {0, draw(&r->seed, c->params.period_ms), c->params.period_ms, draw(&r->seed, capacity), capacity, draw(&r->seed, content_max), content_max};
    uint64_t spans[] = {0, 1, draw(&r->seed, 5000), draw(&r->seed, 2 * c->params.period_ms)};
    uint64_t span = spans[draw(&r->seed, 4)];
    char text[STATE_LEN];

    c->state = (struct rate_state){.a = contents[draw(&r->seed, 7)], .b = draw(&r->seed, 2) ? r->now_ms - span : r->now_ms + span};
    if (draw(&r->seed, 20) == 0)
        c->state.b = draw(&r->seed, 2) ? 0 : time_max;
    pack(c->state, text);
    order(r->server.link, "SET", c, text, sizeof text);
    c->holds = HOLDS_STATE;
}

/* Changes only what keeps a state at least as long as it is needed: after any other, the store may have forgotten what the model still knows. */
static void change_params(struct run *r, struct counter *c)
{
    if (draw(&r->seed, 2))
        c->params.burst = 1 + draw(&r->seed, c->params.burst);
    else
        c->params.limit += draw(&r->seed, RATE_LIMIT_MAX - c->params.limit + 1);
}

static void disturb(struct run *r, struct counter *c)
{
    uint64_t what = draw(&r->seed, 24);

    if (what == 0) {
        change_params(r, c);
        return;
    }
    if (what > 8)
        return;
    order(r->server.link, "DEL", c, "", 0);
    c->expires_ms = 0;
    c->holds = HOLDS_NOTHING;
    if (what == 1)
        plant_type(r, c);
    else if (what == 2)
        plant_text(r, c);
    else if (what > 3)
        plant_state(r, c);
}

/* ---- one request, and what must be true after it ---- */

static void charge(struct run *r, const char *sha1)
{
    static char storage[RATE_COMMAND_MAX + 16384];
    struct buf b;
    redisReply *reply;

    buf_init(&b, storage, sizeof storage);
    rate_script_command(&b, sha1, r->calls, r->n);
    CU_ASSERT_FATAL(!b.full && redisAppendFormattedCommand(r->server.link, b.p, b.len) == REDIS_OK);
    reply = next_reply(r->server.link);
    CU_ASSERT_FATAL(reply->type == REDIS_REPLY_STRING);
    CU_ASSERT_FATAL(rate_script_reply((struct str){reply->str, (size_t) reply->len}, r->calls, r->n, &r->now_ms));
    freeReplyObject(reply);
}

static bool verdict_is(const struct rate_verdict *got, const struct rate_verdict *want)
{
    return got->allowed == want->allowed && got->remaining == want->remaining && got->retry_after_ms == want->retry_after_ms &&
           got->reset_ms == want->reset_ms;
}

/* The model's own step. */
static bool judged_alike(struct run *r, size_t i)
{
    struct counter *c = &r->counters[i];
    const struct rate_call *call = &r->calls[i];

    if (c->holds == HOLDS_OTHER_TYPE)
        return call->counted == RATE_UNREADABLE;
    struct rate_verdict want = rate_step(&c->params, &c->state, c->holds != HOLDS_STATE, r->now_ms);
    if (want.allowed) {
        c->holds = HOLDS_STATE;
        c->expires_ms = r->now_ms + want.reset_ms;
    }
    if (call->counted == RATE_COUNTED && verdict_is(&call->verdict, &want))
        return true;
    fprintf(stderr, "\n    at %ju: allowed %d, remaining %ju, retry after %ju, reset %ju; the model says %d, %ju, %ju, %ju\n", (uintmax_t) r->now_ms,
            call->verdict.allowed, (uintmax_t) call->verdict.remaining, (uintmax_t) call->verdict.retry_after_ms, (uintmax_t) call->verdict.reset_ms,
            want.allowed, (uintmax_t) want.remaining, (uintmax_t) want.retry_after_ms, (uintmax_t) want.reset_ms);
    return false;
}

/* The state is the model's byte for byte, and is kept until the bucket is full again: what is left of that is read somewhen between the time of
 * the script's call and until_ms. */
static bool stored_alike(const struct counter *c, uint64_t since_ms, redisReply *stored, int64_t left_ms, uint64_t until_ms)
{
    char want[STATE_LEN];
    bool gone = stored->type == REDIS_REPLY_NIL || left_ms == -2;
    bool may_be_gone = c->expires_ms && until_ms >= c->expires_ms;

    if (c->holds != HOLDS_STATE)
        return true;
    if (gone)
        return may_be_gone;
    pack(c->state, want);
    if (stored->type != REDIS_REPLY_STRING || (size_t) stored->len != STATE_LEN || memcmp(stored->str, want, STATE_LEN) != 0)
        return false;
    if (!c->expires_ms)
        return left_ms == -1;
    return left_ms >= 0 && (uint64_t) left_ms <= c->expires_ms - since_ms && (uint64_t) left_ms + until_ms >= c->expires_ms;
}

static bool keeps_alike(struct run *r, size_t i)
{
    struct counter *c = &r->counters[i];
    redisContext *link = r->server.link;
    redisReply *stored;

    redisAppendCommand(link, "PTTL %b", c->key, c->key_len);
    if (c->holds == HOLDS_OTHER_TYPE)
        return integer(next_reply(link)) == -1;
    redisAppendCommand(link, "GET %b", c->key, c->key_len);
    int64_t left_ms = integer(next_reply(link));
    stored = next_reply(link);
    bool ok = stored_alike(c, r->now_ms, stored, left_ms, rate_server_time_ms(&r->server));
    freeReplyObject(stored);
    if (!ok)
        fprintf(stderr, "\n    the model keeps %ju at %ju until %ju; the store %" PRIi64 " ms from %ju\n", (uintmax_t) c->state.a, (uintmax_t) c->state.b,
                (uintmax_t) c->expires_ms, left_ms, (uintmax_t) r->now_ms);
    return ok;
}

static void draw_counters(struct run *r)
{
    r->n = 1 + draw(&r->seed, RATE_CALLS_MAX);
    for (size_t i = 0; i < r->n; i++) {
        struct counter *c = &r->counters[i];
        char id[] = {(char) ('a' + i), '\0'};
        struct buf key;

        *c = (struct counter){.params = draw_params(&r->seed)};
        r->calls[i] = (struct rate_call){.params = &c->params, .name = &c->name, .enforce = true};
        CU_ASSERT_FATAL(rate_params_ok(&c->params, "", &(struct err){0}));
        CU_ASSERT_FATAL(rate_name_make(&c->params, str_of(id), &r->arena, &c->name));
        memcpy(r->calls[i].subject.b, &r->seed, sizeof r->seed);
        buf_init(&key, c->key, sizeof c->key);
        rate_key_put(&key, &c->name, &r->calls[i].subject);
        c->key_len = key.len;
    }
}

static bool run_sequence(struct run *r)
{
    draw_counters(r);
    for (size_t step = 0; step < N_STEPS; step++) {
        bool ok = true;

        for (size_t i = 0; i < r->n; i++)
            disturb(r, &r->counters[i]);
        charge(r, r->sha1);
        for (size_t i = 0; i < r->n; i++) {
            bool same = judged_alike(r, i) && keeps_alike(r, i);
            if (!same)
                fprintf(stderr, "    step %zu, call %zu of %zu: limit %ju, burst %ju, period %ju\n", step, i, r->n, (uintmax_t) r->counters[i].params.limit,
                        (uintmax_t) r->counters[i].params.burst, (uintmax_t) r->counters[i].params.period_ms);
            ok = ok && same;
        }
        if (!ok)
            return false;
    }
    return true;
}

static bool begin(struct run *r)
{
    if (!rate_server_start(&r->server))
        return false;
    arena_init(&r->arena, 4096, 1 << 20);
    CU_ASSERT_FATAL(rate_script_sha1(r->sha1));
    r->now_ms = rate_server_time_ms(&r->server);
    r->seed = 1;
    draw_counters(r);
    return true;
}

static void end(struct run *r)
{
    rate_server_stop(&r->server);
    arena_release(&r->arena);
}

/* ---- the tests ---- */

static void sequences(void)
{
    static struct run r;

    if (!begin(&r))
        return;
    charge(&r, NULL);
    for (uint64_t n = 1; n <= N_SEQUENCES; n++) {
        r.seed = n * 0x9e3779b97f4a7c15U;
        bool alike = run_sequence(&r);
        CU_ASSERT(alike);
        if (!alike) {
            fprintf(stderr, "    sequence %ju\n", (uintmax_t) n);
            break;
        }
    }
    end(&r);
}

static void digest(void)
{
    static struct run r;
    struct str source = rate_script_source();

    if (!begin(&r))
        return;
    redisReply *reply = redisCommand(r.server.link, "SCRIPT LOAD %b", source.p, source.len);
    CU_ASSERT(reply && reply->type == REDIS_REPLY_STRING && strcmp(reply->str, r.sha1) == 0);
    freeReplyObject(reply);
    charge(&r, r.sha1);
    end(&r);
}

/* The script's call when the store is not willing: the text of its error, in the caller's storage. */
static void charge_refused(struct run *r, redisContext *link, char *text, size_t size)
{
    char storage[RATE_COMMAND_MAX];
    struct buf b;

    buf_init(&b, storage, sizeof storage);
    rate_script_command(&b, r->sha1, r->calls, r->n);
    CU_ASSERT_FATAL(redisAppendFormattedCommand(link, b.p, b.len) == REDIS_OK);
    redisReply *reply = next_reply(link);
    CU_ASSERT_EQUAL(reply->type, REDIS_REPLY_ERROR);
    snprintf(text, size, "%s", reply->str ? reply->str : "");
    freeReplyObject(reply);
}

static void ask(redisContext *link, const char *command)
{
    redisReply *reply = redisCommand(link, command);
    CU_ASSERT_FATAL(reply && reply->type != REDIS_REPLY_ERROR);
    freeReplyObject(reply);
}

static void unwilling_store(void)
{
    static struct run r;
    char text[256];

    if (!begin(&r))
        return;
    charge(&r, NULL);
    ask(r.server.link, "FLUSHALL");
    ask(r.server.link, "CONFIG SET maxmemory 1");
    charge_refused(&r, r.server.link, text, sizeof text);
    CU_ASSERT(str_find(str_of(text), STR("OOM")) != SIZE_MAX);
    ask(r.server.link, "CONFIG SET maxmemory 0");

    redisContext *other = rate_server_connect(&r.server);
    ask(r.server.link, "ACL SETUSER limiter on nopass ~* +evalsha +set +time");
    ask(other, "AUTH limiter any");
    charge_refused(&r, other, text, sizeof text);
    CU_ASSERT(str_find(str_of(text), STR("permission")) != SIZE_MAX);
    redisFree(other);
    end(&r);
}

void test_rate_valkey_register(void)
{
    CU_pSuite s = CU_add_suite("rate_valkey", NULL, NULL);
    CU_add_test(s, "in a real Valkey the script judges, stores and forgets random requests as the arithmetic in C does, to the last digit", sequences);
    CU_add_test(s, "Valkey names the script by our digest", digest);
    CU_add_test(s, "a store that can't read or write answers with an error, never with a verdict", unwilling_store);
}
