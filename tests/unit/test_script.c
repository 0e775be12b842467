/* The script's call and its answer: the bytes of the command, and an answer that is read whole or not at all. */
#include <CUnit/CUnit.h>
#include <stdio.h>

#include "common/rate/script.h"
#include "tests/unit/cases.h"

static uint64_t number(const json_t *row, const char *name)
{
    return (uint64_t) json_integer_value(json_object_get(row, name));
}

/* The call of a row, in the arena. */
static struct rate_call call_of(const json_t *row, struct arena *a)
{
    struct rate_params *p = ARENA_NEW(a, struct rate_params);
    struct rate_name *name = ARENA_NEW(a, struct rate_name);
    struct rate_call call = {.params = p, .name = name, .enforce = true};
    char storage[256];
    struct buf b;
    json_t *value;
    size_t i;

    CU_ASSERT_FATAL(p && name);
    *p = (struct rate_params){number(row, "limit"), number(row, "burst"), number(row, "period_ms")};
    buf_init(&b, storage, sizeof storage);
    rate_subject_begin(&b, RATE_DOMAIN_KEY);
    json_array_foreach(json_object_get(row, "values"), i, value) rate_subject_value(&b, str_of(json_string_value(value)));
    CU_ASSERT_FATAL(rate_name_make(p, case_str(row, "rule"), a, name) && rate_subject_hash(buf_str(&b), &call.subject));
    return call;
}

static void command_rows(void)
{
    json_t *rows = cases_load("tests/cases/rate/commands.json"), *row, *each;
    struct arena a;
    size_t i, n;

    arena_init(&a, 4096, 65536);
    json_array_foreach(rows, i, row)
    {
        struct rate_call calls[RATE_CALLS_MAX];
        char storage[RATE_COMMAND_MAX];
        struct buf b;
        json_array_foreach(json_object_get(row, "calls"), n, each) calls[n] = call_of(each, &a);
        buf_init(&b, storage, sizeof storage);
        rate_script_command(&b, "0123456789abcdef0123456789abcdef01234567", calls, n);
        CASE_CHECK_GOT(row, !b.full && str_eq(buf_str(&b), case_str(row, "command")), buf_str(&b));
    }
    arena_release(&a);
    json_decref(rows);
}

/* The largest command that can be made: every key as long as a key can be, every number at its largest. */
static size_t fill(struct rate_call calls[static RATE_CALLS_MAX], struct arena *a)
{
    static const struct rate_params largest = {RATE_LIMIT_MAX, RATE_BURST_MAX, RATE_PERIOD_MAX_MS};
    struct rate_name *name = ARENA_NEW(a, struct rate_name);
    char id[RATE_KEY_TEXT_MAX];
    size_t len = sizeof id;

    CU_ASSERT_FATAL(name != NULL);
    memset(id, 'a', sizeof id);
    while (!rate_name_make(&largest, (struct str){id, len}, a, name))
        len--;
    for (size_t i = 0; i < RATE_CALLS_MAX; i++)
        calls[i] = (struct rate_call){.params = &largest, .name = name};
    return len;
}

static void largest_command(void)
{
    static char storage[RATE_COMMAND_MAX], with_source[1 << 16];
    struct rate_call calls[RATE_CALLS_MAX];
    struct str source = rate_script_source();
    char sha1[41], header[64];
    struct arena a;
    struct buf b, whole;

    arena_init(&a, 4096, 65536);
    CU_ASSERT(fill(calls, &a) >= 64);
    CU_ASSERT_FATAL(rate_script_sha1(sha1));
    buf_init(&b, storage, sizeof storage);
    rate_script_command(&b, sha1, calls, RATE_CALLS_MAX);
    CU_ASSERT_FALSE(b.full);

    buf_init(&whole, with_source, RATE_COMMAND_MAX + source.len);
    rate_script_command(&whole, NULL, calls, RATE_CALLS_MAX);
    CU_ASSERT_FALSE(whole.full);
    snprintf(header, sizeof header, "*38\r\n$4\r\nEVAL\r\n$%zu\r\n", source.len);
    CU_ASSERT(str_starts(buf_str(&whole), str_of(header)));
    CU_ASSERT_EQUAL(str_find(buf_str(&whole), source), strlen(header));
    /* Behind name and body the two commands are one. */
    size_t head = strlen("*38\r\n$7\r\nEVALSHA\r\n$40\r\n") + 40;
    CU_ASSERT(str_eq(str_sub(buf_str(&whole), strlen(header) + source.len, SIZE_MAX), str_sub(buf_str(&b), head, SIZE_MAX)));
    arena_release(&a);
}

static bool call_is(const struct rate_call *call, const json_t *want)
{
    uint64_t verdict = number(want, "verdict");
    return call->counted == (verdict == 2 ? RATE_UNREADABLE : RATE_COUNTED) && call->verdict.allowed == (verdict == 1) &&
           call->verdict.remaining == number(want, "remaining") && call->verdict.retry_after_ms == number(want, "retry_after_ms") &&
           call->verdict.reset_ms == number(want, "reset_ms");
}

enum { CALLS_IN_ROWS = RATE_CALLS_MAX + 1 };

static void reply_rows(void)
{
    json_t *rows = cases_load("tests/cases/rate/replies.json"), *row;
    size_t i;

    json_array_foreach(rows, i, row)
    {
        struct rate_call calls[CALLS_IN_ROWS], before[CALLS_IN_ROWS];
        const json_t *wanted = json_object_get(row, "calls");
        bool ok = json_is_true(json_object_get(row, "ok"));
        size_t n = ok ? json_array_size(wanted) : (size_t) number(row, "n");
        uint64_t now_ms = 4242;

        memset(calls, 0x5a, sizeof calls);
        memcpy(before, calls, sizeof calls);
        CASE_CHECK(row, rate_script_reply(case_str(row, "reply"), calls, n, &now_ms) == ok);
        CASE_CHECK(row, now_ms == (ok ? number(row, "now_ms") : 4242));
        CASE_CHECK(row, ok || memcmp(calls, before, sizeof calls) == 0);
        for (size_t c = 0; ok && c < n; c++)
            CASE_CHECK(row, call_is(&calls[c], json_array_get(wanted, c)));
    }
    json_decref(rows);
}

/* The last number has one digit, so that every beginning of the text lacks a number. */
static void cut_reply(void)
{
    struct str whole = STR("1764485000123 1 9 0 600 0 0 250 60000 2 0 0 0");
    struct rate_call calls[3], before[3];

    memset(calls, 0x5a, sizeof calls);
    memcpy(before, calls, sizeof calls);
    for (size_t len = 0; len < whole.len; len++) {
        uint64_t now_ms = 4242;
        CU_ASSERT_FALSE(rate_script_reply(str_sub(whole, 0, len), calls, 3, &now_ms));
        CU_ASSERT(now_ms == 4242 && memcmp(calls, before, sizeof calls) == 0);
    }
}

void test_script_register(void)
{
    CU_pSuite s = CU_add_suite("script", NULL, NULL);
    CU_add_test(s, "the script's call has the published bytes", command_rows);
    CU_add_test(s, "the largest call fits the published maximum, and sending the source in place of its digest changes nothing else", largest_command);
    CU_add_test(s, "an answer of another shape is refused whole, and nothing is written", reply_rows);
    CU_add_test(s, "an answer that lacks any of its numbers is refused", cut_reply);
}
