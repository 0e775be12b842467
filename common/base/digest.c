/* SHA-256 with what is dear about it done once. */
#include "common/base/digest.h"

#include <openssl/evp.h>
#include <pthread.h>

enum { SHA256_BYTES = 32 };

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

bool digest_sha256(struct str text, uint8_t *out, size_t n)
{
    uint8_t digest[SHA256_BYTES];
    EVP_MD_CTX *ctx = thread_context();
    if (!ctx || EVP_DigestInit_ex2(ctx, sha256, NULL) != 1 || EVP_DigestUpdate(ctx, text.p, text.len) != 1 ||
        EVP_DigestFinal_ex(ctx, digest, NULL) != 1)
        return false;
    memcpy(out, digest, n);
    return true;
}

bool digest_share(struct str text, unsigned of, unsigned *out)
{
    uint8_t digest[8];
    uint64_t n = 0;
    if (!digest_sha256(text, digest, sizeof digest))
        return false;
    for (size_t i = 0; i < sizeof digest; i++)
        n = n << 8 | digest[i];
    *out = (unsigned) (n % of);
    return true;
}
