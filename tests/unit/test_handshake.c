/* Facts of our own TLS handshake: the rows of tests/cases/request/handshake.json, and the table of hellos that were seen before. */
#include <CUnit/CUnit.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/net/client_hello.h"
#include "spoa/request/handshake.h"
#include "tests/unit/cases.h"
#include "tests/unit/refuse_memory.h"

static bool flag(const json_t *row, const char *name)
{
    return json_is_true(json_object_get(row, name));
}

static void check_row(const json_t *row, const struct expr_viewer *v)
{
    const struct {
        const char *name;
        struct str got;
    } texts[] = {{"ja3", v->ja3}, {"ja4", v->ja4}, {"subject", v->cert.subject}, {"issuer", v->cert.issuer}, {"serial", v->cert.serial}, {"sha256", v->cert.sha256}};
    const json_t *want = json_object_get(row, "want");

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        CASE_CHECK_GOT(row, str_eq(texts[i].got, case_str(want, texts[i].name)), texts[i].got);
    CASE_CHECK(row, v->cert.present == flag(want, "present") && v->cert.verified == flag(want, "verified"));
    CASE_CHECK(row, !v->ssl && v->http_version.len == 0 && v->country.len == 0 && v->continent.len == 0 && !v->has_asnum);
}

static void rows(void)
{
    json_t *rows = cases_load("tests/cases/request/handshake.json"), *row;
    size_t i;

    json_array_foreach(rows, i, row)
    {
        const json_t *verify = json_object_get(row, "verify");
        const struct request_args args = {
            .tls = flag(row, "tls"),
            .hello = case_str(row, "hello"),
            .has_cert = verify != NULL,
            .cert_verify = json_integer_value(verify),
            .cert_subject = case_str(row, "subject"),
            .cert_issuer = case_str(row, "issuer"),
            .cert_serial = case_str(row, "serial"),
            .cert_sha256 = case_str(row, "sha256"),
        };
        struct expr_viewer v = {.ssl = true, .has_asnum = true, .ja3 = STR("old"), .cert = {.present = true}};
        struct arena a;

        arena_init(&a, 4096, 0);
        CASE_CHECK(row, handshake_facts(&args, &a, &v));
        check_row(row, &v);
        arena_release(&a);
    }
    json_decref(rows);
}

/* Hello n: of few shapes that differ in one number; every seventh is too long to be remembered. */
static struct str hello_of(unsigned n, char *out, size_t cap)
{
    int len = snprintf(out, cap, "771 %04X%04X 000A0010 001D 00 0304 0403", n, n % 5);

    for (unsigned i = 0; n % 7 == 0 && i < 300; i++)
        len += snprintf(out + len, cap - (size_t)len, "%04X", n);
    len += snprintf(out + len, cap - (size_t)len, " 6832");
    return (struct str){out, (size_t)len};
}

static void remembered(void)
{
    enum { HELLOS = 1000, LOOKS = 20000 };
    static struct client_hello direct;
    unsigned short seed[3] = {1, 2, 3};
    bool same = true;
    struct arena a;

    arena_init(&a, 4096, 0);
    for (int i = 0; i < LOOKS; i++) {
        /* Mostly few of them, so that they are found again, among many that take their places. */
        const unsigned n = (unsigned)nrand48(seed) % (i % 3 == 0 ? HELLOS : 10);
        char text[2048], ja3[JA3_LEN], ja4[JA4_LEN];
        const struct request_args args = {.tls = true, .hello = hello_of(n, text, sizeof(text))};
        struct expr_viewer v;

        same = same && handshake_facts(&args, &a, &v) && client_hello_read(args.hello, &direct) && client_hello_ja3(&direct, ja3) &&
               client_hello_ja4(&direct, ja4) && str_eq(v.ja3, (struct str){ja3, JA3_LEN}) && str_eq(v.ja4, (struct str){ja4, JA4_LEN});
        arena_reset(&a);
    }
    CU_ASSERT(same);
    arena_release(&a);
}

static bool has_both(const struct expr_viewer *v)
{
    return v->ja3.len == JA3_LEN && v->ja4.len == JA4_LEN;
}

/* Of a hello that was never seen before, which the next request brings again: what a digest failed for is not remembered. */
static bool attempt(void *arg, size_t n)
{
    enum { UNSEEN = 20001 };
    char text[2048];
    const struct request_args args = {.tls = true, .hello = hello_of(UNSEEN + 7 * (unsigned)n, text, sizeof(text))};
    struct expr_viewer v;
    struct arena a;
    bool *sound = (bool *)arg;

    arena_init(&a, 16, 0);
    refuse_memory(n);
    const bool ok = handshake_facts(&args, &a, &v);
    const bool refused = refuse_memory_end();

    *sound = *sound && (refused ? !ok || !has_both(&v) : ok && has_both(&v));
    *sound = *sound && handshake_facts(&args, &a, &v) && has_both(&v);
    arena_release(&a);
    return refused;
}

static void without_memory(void)
{
    bool sound = true;

    CU_ASSERT(refuse_memory_everywhere(attempt, &sound) >= 5);
    CU_ASSERT(sound);
}

/* Whatever place in the table a hello without all of its digests is computed in, one that was there before is not taken for it. */
static void half_remembered(void)
{
    enum { FIRST = 30001, OTHERS = 1000 /* many times the places of the table */ };
    char text[2048], other[2048], ja3[JA3_LEN];
    const struct request_args args = {.tls = true, .hello = hello_of(FIRST, text, sizeof(text))};
    static struct client_hello direct;
    struct expr_viewer v;
    struct arena a;
    bool same = client_hello_read(args.hello, &direct) && client_hello_ja3(&direct, ja3);

    arena_init(&a, 4096, 0);
    for (unsigned i = 1; i <= OTHERS; i++) {
        const struct request_args next = {.tls = true, .hello = hello_of(FIRST + 7 * i, other, sizeof(other))};

        same = same && handshake_facts(&args, &a, &v) && has_both(&v) && str_eq(v.ja3, (struct str){ja3, JA3_LEN});
        refuse_memory(1); /* the second digest: JA3 is there, JA4 is not */
        same = same && handshake_facts(&next, &a, &v) && v.ja3.len == JA3_LEN && v.ja4.len == 0;
        same = refuse_memory_end() && same;
        same = same && handshake_facts(&args, &a, &v) && has_both(&v) && str_eq(v.ja3, (struct str){ja3, JA3_LEN});
        arena_reset(&a);
    }
    CU_ASSERT(same);
    arena_release(&a);
}

void test_handshake_register(void)
{
    CU_pSuite s = CU_add_suite("handshake", NULL, NULL);
    CU_add_test(s, "of a handshake is told what HAProxy kept of it in the agreed form, and nothing without TLS", rows);
    CU_add_test(s, "a hello seen before has its own fingerprints, whichever were seen since (seed 1 2 3)", remembered);
    CU_add_test(s, "a hello seen before keeps its fingerprints where another one's could not be computed", half_remembered);
    CU_add_test(s, "where memory is refused there are no facts, or one fingerprint less, and the next request has them all", without_memory);
}
