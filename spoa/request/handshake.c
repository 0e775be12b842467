/* Facts of our own TLS handshake, from the arguments that HAProxy keeps of each connection. */
#include "spoa/request/handshake.h"

#include "common/net/client_hello.h"

/* Every request of a connection brings the hello again, and clients of one make send the same one: what was computed is remembered, for each worker in
 * a table of its own. An entry is known by all bytes of its hello, so a clash costs time and nothing else; longer hellos are computed each time. */
enum { REMEMBERED_N = 64, REMEMBERED_HELLO_MAX = 1024 };
struct remembered {
    size_t hello_len; /* 0: unused */
    bool has_ja3, has_ja4;
    char ja3[JA3_LEN], ja4[JA4_LEN];
    char hello[REMEMBERED_HELLO_MAX];
};
static _Thread_local struct remembered table[REMEMBERED_N];

/* A serial number that is longer was cut by HAProxy (haproxy.cfg). RFC 5280 4.1.2.2 allows 40 digits. */
enum { SERIAL_MAX = 127 };

/* FNV-1a over words: names a place, distinguishes nothing. */
static size_t place_of(struct str hello)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);

    for (; hello.len > 0; str_skip(&hello, hello.len < 8 ? hello.len : 8)) {
        uint64_t word = 0;

        memcpy(&word, hello.p, hello.len < 8 ? hello.len : 8);
        hash = (hash ^ word) * UINT64_C(0x100000001b3);
        hash ^= hash >> 32;
    }
    return hash % REMEMBERED_N;
}

/* False: not to be remembered, for a digest failed (no memory), which the next time it need not. */
static bool compute(struct str hello, struct remembered *out)
{
    struct client_hello h;
    const bool readable = client_hello_read(hello, &h);

    out->has_ja3 = readable && client_hello_ja3(&h, out->ja3);
    out->has_ja4 = readable && client_hello_ja4(&h, out->ja4);
    return !readable || (out->has_ja3 && out->has_ja4 == h.has_alpn);
}

static const struct remembered *look_up(struct str hello, struct remembered *scratch)
{
    struct remembered *r = &table[place_of(hello)];

    if (hello.len > REMEMBERED_HELLO_MAX) {
        (void)compute(hello, scratch);
        return scratch;
    }
    if (str_eq(hello, (struct str){r->hello, r->hello_len}))
        return r;
    r->hello_len = 0;
    if (compute(hello, r)) {
        memcpy(r->hello, hello.p, hello.len);
        r->hello_len = hello.len;
    }
    return r;
}

bool handshake_facts(const struct request_args *args, struct arena *a, struct expr_viewer *out)
{
    *out = (struct expr_viewer){0};
    if (args->tls && args->hello.len > 0) {
        struct remembered scratch;
        const struct remembered *r = look_up(args->hello, &scratch);

        /* Copied: the place may be another hello's before this request ends. */
        if (r->has_ja3 && !arena_copy_str(a, (struct str){r->ja3, JA3_LEN}, &out->ja3))
            return false;
        if (r->has_ja4 && !arena_copy_str(a, (struct str){r->ja4, JA4_LEN}, &out->ja4))
            return false;
    }
    if (args->tls && args->has_cert) {
        out->cert.present = true;
        out->cert.verified = args->cert_verify == 0;
        out->cert.subject = args->cert_subject;
        out->cert.issuer = args->cert_issuer;
        out->cert.serial = args->cert_serial.len <= SERIAL_MAX ? args->cert_serial : STR_NONE;
        out->cert.sha256 = args->cert_sha256;
    }
    return true;
}
