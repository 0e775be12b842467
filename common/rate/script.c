/* The limiter's script as Valkey gets it, the command that calls it, and its answer. */
#include "common/rate/script.h"

#include <openssl/evp.h>

#include "common/base/codec.h"

enum { SHA1_BYTES = 20, N_ARGUMENTS = 4, N_NUMBERS = 4 };

/* Whatever the script may answer; a number beyond it could not have been exact. */
static const uint64_t number_max = (uint64_t) 1 << 53;

/* The file is found from the root of the tree, where the compiler runs; the Makefile knows that this object depends on it. */
__asm__(".pushsection .rodata\n"
        "rate_script_text:\n"
        ".incbin \"common/rate/limits.lua\"\n"
        "rate_script_text_end:\n"
        ".popsection\n");
extern const char rate_script_text[] __attribute__((visibility("hidden")));
extern const char rate_script_text_end[] __attribute__((visibility("hidden")));

struct str rate_script_source(void)
{
    return (struct str){rate_script_text, (size_t) ((uintptr_t) rate_script_text_end - (uintptr_t) rate_script_text)};
}

bool rate_script_sha1(char out[static 41])
{
    struct str source = rate_script_source();
    uint8_t digest[EVP_MAX_MD_SIZE];
    unsigned len = 0;
    EVP_MD *sha1 = EVP_MD_fetch(NULL, "SHA1", NULL);
    bool ok = sha1 && EVP_Digest(source.p, source.len, digest, &len, sha1, NULL) == 1 && len == SHA1_BYTES;

    EVP_MD_free(sha1);
    if (!ok)
        return false;
    codec_hex(digest, SHA1_BYTES, out);
    out[2 * SHA1_BYTES] = '\0';
    return true;
}

/* RESP: a header is a letter, a number and the end of line; a bulk string is its length and its bytes. */
static void put_header(struct buf *b, char kind, uint64_t n)
{
    buf_put_byte(b, kind);
    buf_put_u64(b, n);
    buf_put(b, STR("\r\n"));
}

static void put_bulk(struct buf *b, struct str s)
{
    put_header(b, '$', s.len);
    buf_put(b, s);
    buf_put(b, STR("\r\n"));
}

static void put_bulk_u64(struct buf *b, uint64_t n)
{
    char storage[20];
    struct buf digits;

    buf_init(&digits, storage, sizeof storage);
    buf_put_u64(&digits, n);
    put_bulk(b, buf_str(&digits));
}

void rate_script_command(struct buf *b, const char *sha1, const struct rate_call *calls, size_t n)
{
    put_header(b, '*', 3 + n * (1 + N_ARGUMENTS));
    put_bulk(b, sha1 ? STR("EVALSHA") : STR("EVAL"));
    put_bulk(b, sha1 ? str_of(sha1) : rate_script_source());
    put_bulk_u64(b, n);
    for (size_t i = 0; i < n; i++) {
        char storage[RATE_KEY_TEXT_MAX];
        struct buf key;
        buf_init(&key, storage, sizeof storage);
        rate_key_put(&key, calls[i].name, &calls[i].subject);
        put_bulk(b, buf_str(&key));
    }
    for (size_t i = 0; i < n; i++) {
        const struct rate_params *p = calls[i].params;
        put_bulk(b, STR("tb"));
        put_bulk_u64(b, p->limit);
        put_bulk_u64(b, p->burst);
        put_bulk_u64(b, p->period_ms);
    }
}

/* Digits as %d writes them: no sign, no zero before another digit. */
static bool take_number(struct str *in, uint64_t *out)
{
    uint64_t n = 0;
    size_t len = 0;

    while (len < in->len && ascii_is_digit(in->p[len])) {
        n = n * 10 + (uint64_t) (in->p[len++] - '0');
        if (n > number_max)
            return false;
    }
    if (len == 0 || (len > 1 && in->p[0] == '0'))
        return false;
    *out = n;
    *in = str_sub(*in, len, in->len);
    return true;
}

static bool take_numbers(struct str *in, uint64_t out[static N_NUMBERS])
{
    for (size_t i = 0; i < N_NUMBERS; i++) {
        if (!str_starts(*in, STR(" ")))
            return false;
        *in = str_sub(*in, 1, in->len);
        if (!take_number(in, &out[i]))
            return false;
    }
    return true;
}

enum { REFUSED, ALLOWED, UNREADABLE };

bool rate_script_reply(struct str reply, struct rate_call *calls, size_t n, uint64_t *now_ms)
{
    uint64_t now, numbers[RATE_CALLS_MAX][N_NUMBERS];

    if (n > RATE_CALLS_MAX || !take_number(&reply, &now))
        return false;
    for (size_t i = 0; i < n; i++)
        if (!take_numbers(&reply, numbers[i]) || numbers[i][0] > UNREADABLE)
            return false;
    if (reply.len)
        return false;
    for (size_t i = 0; i < n; i++) {
        calls[i].counted = numbers[i][0] == UNREADABLE ? RATE_UNREADABLE : RATE_COUNTED;
        calls[i].verdict = (struct rate_verdict){.allowed = numbers[i][0] == ALLOWED,
                                                 .remaining = numbers[i][1],
                                                 .retry_after_ms = numbers[i][2],
                                                 .reset_ms = numbers[i][3]};
    }
    *now_ms = now;
    return true;
}
