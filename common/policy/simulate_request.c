/* The request that is simulated, from its JSON: object TEST_REQUEST of schemas/policy.def. */
#include "common/policy/compile_priv.h"
#include "common/policy/ingress.h"
#include "common/policy/members.h"
#include "common/policy/simulate_priv.h"
#include "common/policy/wire_max_priv.h"

enum { HOST_MAX = 8 * 1024, TEXT_MAX = 8 * 1024 };

static bool within(const struct jx *j, struct str s, size_t max)
{
    if (s.len > max)
        jx_fault(j, ERR_LIMIT_EXCEEDED, "%zu bytes; at most %zu are allowed", s.len, max);
    return s.len <= max;
}

static void need_text(const struct jx *request, const char *name, size_t max, struct str *out)
{
    struct jx j = jx_member(request, name);

    if (jx_need_str(&j, out))
        within(&j, *out, max);
}

/* Empty when absent. */
static struct str take_text(const struct jx *object, const char *name)
{
    struct jx j = jx_member(object, name);
    struct str text = STR_NONE;

    return jx_str(&j, &text) && within(&j, text, TEXT_MAX) ? text : STR_NONE;
}

static bool take_flag(const struct jx *object, const char *name)
{
    struct jx j = jx_member(object, name);
    bool flag = false;

    jx_bool(&j, &flag);
    return flag;
}

/* --- Headers --- */

static void add_value(const struct jx *j, struct str name, struct headers *h)
{
    struct str value;

    if (!jx_str(j, &value))
        return;
    if (!header_value_ok(value))
        jx_fault(j, ERR_BAD_VALUE, "no header value: at most 8 KiB, without control characters and without blanks at its ends");
    else if (h->n == HEADERS_MAX)
        jx_fault(j, ERR_LIMIT_EXCEEDED, "more than %d headers, Host included", HEADERS_MAX);
    else
        h->items[h->n++] = (struct header){.name = name, .value = value};
}

static bool take_name(const struct jx *j, struct arena *a, struct str *out)
{
    if (!arena_copy_lower(a, j->key, out)) {
        compile_no_memory(j);
        return false;
    }
    if (!header_name_ok(*out))
        jx_fault(j, ERR_BAD_VALUE, "no header name");
    else if (str_eq(*out, STR("host")))
        jx_fault(j, ERR_BAD_VALUE, "give Host as the request's own member \"host\"");
    else
        return true;
    return false;
}

/* HAProxy deletes these before the agent is asked. */
static void strip_edge_headers(struct headers *h)
{
    size_t kept = 0;

    for (size_t i = 0; i < h->n; i++)
        if (!identify_is_edge_header(h->items[i].name))
            h->items[kept++] = h->items[i];
    h->n = kept;
}

static void take_headers(const struct jx *headers, struct arena *a, struct headers *h)
{
    void *iter = NULL;
    struct jx member;
    struct str name;

    if (!jx_is_object(headers))
        return;
    while (compile_next_member(headers, &iter, &member)) {
        if (!take_name(&member, a, &name))
            continue;
        if (!json_is_array(member.value)) {
            add_value(&member, name, h);
            continue;
        }
        for (size_t i = 0; i < jx_array_len(&member); i++) {
            struct jx item = jx_item(&member, i);
            add_value(&item, name, h);
        }
    }
    strip_edge_headers(h);
}

/* --- The client's connection --- */

static void take_certificate(const struct jx *request, struct expr_viewer *out)
{
    struct jx cert = jx_member(request, "cert");

    if (!cert.value || !jx_is_object(&cert))
        return;
    policy_only(&cert, OBJECT_TEST_CERT);
    out->cert.present = true;
    out->cert.verified = take_flag(&cert, "verified");
    out->cert.subject = take_text(&cert, "subject");
    out->cert.issuer = take_text(&cert, "issuer");
    out->cert.serial = take_text(&cert, "serial");
    out->cert.sha256 = take_text(&cert, "sha256");
}

static void take_viewer(const struct jx *request, struct arena *a, struct expr_viewer *out)
{
    struct jx ssl = jx_member(request, "ssl"), asnum = jx_member(request, "asnum");
    bool has_handshake = json_object_get(request->value, "ja3") || json_object_get(request->value, "ja4") || json_object_get(request->value, "cert");

    out->http_version = identify_http_version(take_text(request, "http_version"));
    out->ssl = ssl.value ? take_flag(request, "ssl") : has_handshake;
    if (!ingress_country(take_text(request, "country"), a, &out->country))
        compile_no_memory(request);
    out->continent = ingress_continent(take_text(request, "continent"));
    out->has_asnum = jx_int(&asnum, 0, UINT32_MAX, &out->asnum) && out->asnum > 0;
    /* Only TLS has fingerprints, so where it is known that there was none a source's word for one is not believed. */
    struct str ja3 = take_text(request, "ja3"), ja4 = take_text(request, "ja4");
    out->ja3 = out->ssl && expr_ja3_ok(ja3) ? ja3 : STR_NONE;
    out->ja4 = out->ssl && expr_ja4_ok(ja4) ? ja4 : STR_NONE;
    take_certificate(request, out);
}

/* --- The token --- */

static void take_issuer(const struct jx *j, struct simulation *s)
{
    struct str id;

    if (!jx_str(j, &id) || !s->policy)
        return;
    for (size_t i = 0; i < s->policy->n_issuers; i++)
        if (str_eq(s->policy->issuers[i].id, id)) {
            s->has_issuer = true;
            s->issuer = i;
            return;
        }
    jx_fault(j, ERR_UNKNOWN_REFERENCE, "the policy has no issuer \"%.*s\": give the id of one in auth.issuers", STR_ARG(str_cut_utf8(id, 64)));
}

static void take_token(const struct jx *request, struct arena *a, struct simulation *s)
{
    struct jx claims = jx_member(request, "jwt_claims"), issuer = jx_member(request, "jwt_issuer");

    s->has_claims = claims.value != NULL;
    simulate_claims(&claims, a, &s->claims);
    take_issuer(&issuer, s);
    if (issuer.value && !s->has_claims)
        jx_fault(&issuer, ERR_CONFLICT, "says who issued jwt_claims, which are missing: add them ({} for a token without any), or leave this out");
}

void simulate_request(const struct jx *request, struct arena *a, struct simulation *s)
{
    struct str host = STR_NONE, ip;

    if (!jx_is_object(request))
        return;
    policy_only(request, OBJECT_TEST_REQUEST);
    struct jx headers = jx_member(request, "headers"), ip_j = jx_member(request, "ip");
    need_text(request, "method", WIRE_ARG_METHOD_MAX, &s->input.method);
    need_text(request, "host", HOST_MAX, &host);
    need_text(request, "path", WIRE_ARG_URL_MAX, &s->input.url);
    if (jx_str(&ip_j, &ip)) {
        s->input.has_src = addr_parse(ip, &s->input.src);
        if (!s->input.has_src)
            jx_fault(&ip_j, ERR_BAD_VALUE, "must be an IPv4 or IPv6 address");
    }
    s->headers.items = ARENA_NEW_N(a, HEADERS_MAX, struct header);
    if (!s->headers.items) {
        compile_no_memory(request);
        return;
    }
    s->headers.items[s->headers.n++] = (struct header){.name = STR("host"), .value = host};
    take_headers(&headers, a, &s->headers);
    take_viewer(request, a, &s->viewer);
    s->verified_bot = take_flag(request, "verified_bot");
    s->says_verified_bot = json_object_get(request->value, "verified_bot") != NULL;
    take_token(request, a, s);
    s->input.headers = &s->headers;
}
