/* Reads any bytes as the answer of the limiter's script: it is taken whole or nothing is written, and what was taken has one spelling. The first
 * byte says for how many rules the answer is. */
#include "tests/fuzz/fuzz.h"

#include <string.h>

#include "common/rate/script.h"
#include "tests/fuzz/guarantee.h"

static void put_call(struct buf *b, const struct rate_call *call)
{
    const struct rate_verdict *v = &call->verdict;

    buf_put_byte(b, ' ');
    buf_put_u64(b, call->counted == RATE_UNREADABLE ? 2 : v->allowed);
    buf_put_byte(b, ' ');
    buf_put_u64(b, v->remaining);
    buf_put_byte(b, ' ');
    buf_put_u64(b, v->retry_after_ms);
    buf_put_byte(b, ' ');
    buf_put_u64(b, v->reset_ms);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    enum { CALLS = RATE_CALLS_MAX + 1, NUMBERS = 1 + 4 * CALLS, DIGITS = 21 };
    struct rate_call calls[CALLS], before[CALLS];
    uint64_t now_ms = 4242;
    char storage[NUMBERS * DIGITS];
    struct buf b;

    if (size == 0)
        return 0;
    size_t n = data[0] % (CALLS + 1);
    struct str reply = {(const char *)data + 1, size - 1};
    memset(calls, 0x5a, sizeof calls);
    memcpy(before, calls, sizeof calls);
    if (!rate_script_reply(reply, calls, n, &now_ms)) {
        GUARANTEE(now_ms == 4242 && memcmp(calls, before, sizeof calls) == 0);
        return 0;
    }
    GUARANTEE(n <= RATE_CALLS_MAX);
    GUARANTEE(memcmp(&calls[n], &before[n], (CALLS - n) * sizeof *calls) == 0);
    buf_init(&b, storage, sizeof storage);
    buf_put_u64(&b, now_ms);
    for (size_t i = 0; i < n; i++) {
        GUARANTEE(calls[i].counted == RATE_COUNTED || calls[i].counted == RATE_UNREADABLE);
        put_call(&b, &calls[i]);
    }
    GUARANTEE(!b.full && str_eq(buf_str(&b), reply));
    return 0;
}
