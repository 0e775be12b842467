/* Any bytes as the captured lists of a TLS hello: fingerprints have the shape that rules know, and GREASE in front changes neither. */
#include "common/expr/expr.h"
#include "common/net/client_hello.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/guarantee.h"

static void put_grease(struct hello_list *l)
{
    memmove(l->v + 1, l->v, l->n * sizeof(l->v[0]));
    l->v[0] = 0x5a5a;
    l->n++;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct client_hello h;
    char ja3[JA3_LEN], ja4[JA4_LEN], again[JA4_LEN];

    if (!client_hello_read((struct str){(const char *)data, size}, &h))
        return 0;
    GUARANTEE(client_hello_ja3(&h, ja3) && expr_ja3_ok((struct str){ja3, JA3_LEN}));
    const bool known = client_hello_ja4(&h, ja4);
    GUARANTEE(known == h.has_alpn && (!known || expr_ja4_ok((struct str){ja4, JA4_LEN})));

    put_grease(&h.ciphers);
    put_grease(&h.extensions);
    put_grease(&h.groups);
    put_grease(&h.versions);
    put_grease(&h.signatures);
    GUARANTEE(client_hello_ja3(&h, again) && memcmp(ja3, again, JA3_LEN) == 0);
    GUARANTEE(client_hello_ja4(&h, again) == known && (!known || memcmp(ja4, again, JA4_LEN) == 0));
    return 0;
}
