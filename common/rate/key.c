/* What a counter is filed under: subjects that no client can forge, hashed to a fixed size. */
#include "common/rate/rate.h"

#include <openssl/evp.h>
#include <pthread.h>

#include "common/base/codec.h"

enum { PREFIX_MAX = 128, SHA256_BYTES = 32 };

void rate_subject_begin(struct buf *b, enum rate_domain domain)
{
    buf_put_byte(b, (char) domain);
}

void rate_subject_value(struct buf *b, struct str value)
{
    if (value.len > RATE_SUBJECT_MAX) {
        b->full = true;
        return;
    }
    for (int shift = 24; shift >= 0; shift -= 8)
        buf_put_byte(b, (char) (uint8_t) (value.len >> shift));
    buf_put(b, value);
}

void rate_subject_ip(struct buf *b, const struct addr *ip)
{
    struct addr unit = addr_subscriber(ip);
    rate_subject_value(b, (struct str){(const char *) unit.b, sizeof unit.b});
}

/* Looking an algorithm up by name costs more than hashing with it, and a context is a heap object: the first is done once, the second
 * once a thread. */
static pthread_once_t once = PTHREAD_ONCE_INIT;
static EVP_MD *sha256;
static pthread_key_t context_key;
static bool context_key_made;

static void free_context(void *ctx)
{
    EVP_MD_CTX_free(ctx);
}

static void prepare(void)
{
    sha256 = EVP_MD_fetch(NULL, "SHA256", NULL);
    context_key_made = pthread_key_create(&context_key, free_context) == 0;
}

static EVP_MD_CTX *thread_context(void)
{
    if (pthread_once(&once, prepare) != 0 || !sha256 || !context_key_made)
        return NULL;
    EVP_MD_CTX *ctx = pthread_getspecific(context_key);
    if (ctx)
        return ctx;
    ctx = EVP_MD_CTX_new();
    if (ctx && pthread_setspecific(context_key, ctx) != 0) {
        EVP_MD_CTX_free(ctx);
        return NULL;
    }
    return ctx;
}

/* The first n bytes of SHA-256 over text. */
static bool digest_of(struct str text, uint8_t *out, size_t n)
{
    uint8_t digest[SHA256_BYTES];
    EVP_MD_CTX *ctx = thread_context();
    if (!ctx || EVP_DigestInit_ex2(ctx, sha256, NULL) != 1 || EVP_DigestUpdate(ctx, text.p, text.len) != 1 ||
        EVP_DigestFinal_ex(ctx, digest, NULL) != 1)
        return false;
    memcpy(out, digest, n);
    return true;
}

bool rate_name_make(const struct rate_params *p, struct str rule_id, struct arena *a, struct rate_name *out)
{
    char storage[PREFIX_MAX];
    struct buf prefix;
    struct rate_name name;

    buf_init(&prefix, storage, sizeof storage);
    buf_put(&prefix, STR("rl:tb:"));
    buf_put_u64(&prefix, p->period_ms);
    buf_put_byte(&prefix, ':');
    buf_put(&prefix, rule_id);
    buf_put_byte(&prefix, ':');
    if (prefix.full || !digest_of(buf_str(&prefix), name.digest, sizeof name.digest) || !arena_copy_str(a, buf_str(&prefix), &name.prefix))
        return false;
    *out = name;
    return true;
}

bool rate_subject_hash(struct str text, struct rate_subject *out)
{
    return digest_of(text, out->b, sizeof out->b);
}

void rate_key_put(struct buf *b, const struct rate_name *name, const struct rate_subject *subject)
{
    char text[CODEC_BASE64URL_LEN(sizeof subject->b)];
    codec_base64url(subject->b, sizeof subject->b, text);
    buf_put(b, name->prefix);
    buf_put_byte(b, '{');
    buf_put(b, (struct str){text, sizeof text});
    buf_put_byte(b, '}');
}
