/* What is known of the client's connection to the front, or to the edge itself, in the one form that rules compare. */
#include "common/base/parse.h"
#include "common/policy/identify.h"
#include "common/policy/ingress.h"
#include "common/policy/ingress_priv.h"

enum { CERT_TEXT_MAX = 1024 };

/* A source's value: empty when it has no header, or the header is not there, or there several times. */
static struct str value_of(const struct ingress *in, const struct ingress_found *found, enum expr_source source)
{
    if (in->viewer[source].len == 0)
        return STR_NONE;
    const size_t place = ingress_own_place(in, in->viewer[source]);
    return found->n[place] == 1 ? found->value[place] : STR_NONE;
}

static bool is_yes(struct str s, struct str other)
{
    return str_eq_nocase(s, STR("true")) || str_eq_nocase(s, other);
}

bool ingress_country(struct str s, struct arena *a, struct str *out)
{
    char *p;

    if (s.len != 2 || !ascii_is_alpha(s.p[0]) || !ascii_is_alpha(s.p[1]) || str_eq_nocase(s, STR("XX")) || str_eq_nocase(s, STR("ZZ")))
        return true;
    if (s.p[0] <= 'Z' && s.p[1] <= 'Z') {
        *out = s;
        return true;
    }
    p = arena_take_bytes(a, s.len);
    if (p == NULL)
        return false;
    for (size_t i = 0; i < s.len; i++)
        p[i] = (char) (s.p[i] & ~0x20);
    *out = (struct str){p, s.len};
    return true;
}

struct str ingress_continent(struct str s)
{
    static const struct str continents[] = {STR("AF"), STR("AN"), STR("AS"), STR("EU"), STR("NA"), STR("OC"), STR("SA")};

    for (size_t i = 0; i < sizeof continents / sizeof continents[0]; i++)
        if (str_eq_nocase(s, continents[i]))
            return continents[i];
    return STR_NONE;
}

static void read_asnum(struct str s, struct expr_viewer *out)
{
    uint64_t n;

    if (str_eq_nocase(str_sub(s, 0, 2), STR("AS")))
        s = str_sub(s, 2, s.len);
    if (!parse_digits(s, UINT32_MAX, &n) || n == 0)
        return;
    out->asnum = (int64_t) n;
    out->has_asnum = true;
}

static struct str cert_text(struct str s)
{
    return s.len <= CERT_TEXT_MAX && str_is_utf8(s) ? s : STR_NONE;
}

bool ingress_viewer_of_headers(const struct ingress *in, const struct ingress_found *found, struct arena *a, struct expr_viewer *out)
{
    struct expr_viewer v = {.ssl = is_yes(value_of(in, found, EXPR_SOURCE_SSL), STR("https"))};
    const bool in_clear = in->viewer[EXPR_SOURCE_SSL].len > 0 && !v.ssl; /* only TLS has fingerprints */
    const struct str ja3 = value_of(in, found, EXPR_SOURCE_JA3), ja4 = value_of(in, found, EXPR_SOURCE_JA4);

    if (!ingress_country(value_of(in, found, EXPR_SOURCE_COUNTRY), a, &v.country))
        return false;
    v.http_version = identify_http_version(value_of(in, found, EXPR_SOURCE_HTTP_VERSION));
    v.continent = ingress_continent(value_of(in, found, EXPR_SOURCE_CONTINENT));
    read_asnum(value_of(in, found, EXPR_SOURCE_ASNUM), &v);
    if (!in_clear && expr_ja3_ok(ja3))
        v.ja3 = ja3;
    if (!in_clear && expr_ja4_ok(ja4))
        v.ja4 = ja4;
    v.cert.present = is_yes(value_of(in, found, EXPR_SOURCE_CERT_PRESENT), STR("1"));
    v.cert.verified = is_yes(value_of(in, found, EXPR_SOURCE_CERT_VERIFIED), STR("1"));
    v.cert.subject = cert_text(value_of(in, found, EXPR_SOURCE_CERT_SUBJECT));
    v.cert.issuer = cert_text(value_of(in, found, EXPR_SOURCE_CERT_ISSUER));
    v.cert.serial = cert_text(value_of(in, found, EXPR_SOURCE_CERT_SERIAL));
    v.cert.sha256 = cert_text(value_of(in, found, EXPR_SOURCE_CERT_SHA256));
    *out = v;
    return true;
}

void ingress_viewer_of_handshake(const struct ingress_connection *c, struct expr_viewer *out)
{
    *out = (struct expr_viewer){.ssl = c->tls, .http_version = identify_http_version(c->http_version)};
    if (!c->tls)
        return;
    out->ja3 = c->handshake.ja3;
    out->ja4 = c->handshake.ja4;
    out->cert = c->handshake.cert;
    out->cert.subject = cert_text(c->handshake.cert.subject);
    out->cert.issuer = cert_text(c->handshake.cert.issuer);
    out->cert.serial = cert_text(c->handshake.cert.serial);
    out->cert.sha256 = cert_text(c->handshake.cert.sha256);
}
