/* What simulate found, as JSON. */
#include "common/base/parse.h"
#include "common/policy/simulate_priv.h"

enum { DURATION_MAX = 32, MADE_VALUE_MAX = 8 * 1024 };

static const char *block_name(enum block_mode mode)
{
    switch (mode) {
    case BLOCK_LOG:
        return "log";
    case BLOCK_BLOCK:
        return "block";
    case BLOCK_UNSET:
    case BLOCK_NONE:
        break;
    }
    return "none";
}

static const char *auth_name(enum auth_mode mode)
{
    switch (mode) {
    case AUTH_OPTIONAL:
        return "optional";
    case AUTH_REQUIRED:
        return "required";
    case AUTH_UNSET:
    case AUTH_NONE:
        break;
    }
    return "none";
}

static json_t *duration(uint64_t ms)
{
    char text[DURATION_MAX];

    return json_stringn(text, parse_render_duration(ms, text, sizeof text));
}

static json_t *accepted(const struct policy *p, uint32_t issuers)
{
    json_t *out = json_array();
    bool ok = true;

    for (size_t i = 0; i < p->n_issuers; i++)
        if ((issuers >> i & 1) != 0)
            ok = json_array_append_new(out, simulate_text(p->issuers[i].id)) == 0 && ok;
    return simulate_finished(out, ok);
}

static json_t *responses(const struct settings *s)
{
    json_t *out = json_object();
    bool ok = true;

    for (int k = 0; k < KIND_N; k++)
        ok = simulate_put(out, kind_name((enum kind) k), simulate_text(s->responses[k]->name)) && ok;
    return simulate_finished(out, ok);
}

static json_t *settings(const struct policy *p, const struct settings *s)
{
    json_t *out = json_object();
    bool ok = simulate_put(out, "auth_mode", json_string(auth_name(s->auth)));

    ok = simulate_put(out, "auth_accepted", accepted(p, s->accepted)) && ok;
    ok = simulate_put(out, "cors_policy", s->cors ? simulate_text(s->cors->name) : json_null()) && ok;
    ok = simulate_put(out, "locale", json_boolean(s->locale)) && ok;
    ok = simulate_put(out, "responses", responses(s)) && ok;
    ok = simulate_put(out, "body_limit", json_integer((json_int_t) s->body_limit)) && ok;
    ok = simulate_put(out, "upstream_timeout", duration(s->upstream_timeout_ms)) && ok;
    ok = simulate_put(out, "body_read_timeout", duration(s->body_read_timeout_ms)) && ok;
    ok = simulate_put(out, "ratelimit_headers", json_boolean(s->ratelimit_headers)) && ok;
    ok = simulate_put(out, "block", json_string(block_name(s->block))) && ok;
    return simulate_finished(out, ok);
}

static json_t *config_rules(const struct simulation *s)
{
    json_t *out = json_array();
    bool ok = true;

    for (size_t i = 0; i < s->config_hits.n; i++)
        ok = json_array_append_new(out, simulate_text(s->policy->config_rules[s->config_hits.index[i]].id)) == 0 && ok;
    return simulate_finished(out, ok);
}

static json_t *rate_rules(const struct simulation *s)
{
    json_t *out = json_array();
    bool ok = true;

    for (size_t i = 0; i < s->limits.n; i++)
        ok = json_array_append_new(out, simulate_text(s->policy->rate_rules[s->limits.index[i]].id)) == 0 && ok;
    return simulate_finished(out, ok);
}

static json_t *header_rules(const struct simulation *s)
{
    json_t *out = json_array();
    bool ok = true;

    for (size_t i = 0; i < s->header_hits.n; i++)
        ok = json_array_append_new(out, simulate_text(s->policy->header_rules[s->header_hits.index[i]].id)) == 0 && ok;
    return simulate_finished(out, ok);
}

/* Bytes that are no UTF-8 become U+FFFD: placeholders bring them in from queries, at most MADE_VALUE_MAX long. */
static json_t *readable(struct str value)
{
    char storage[3 * MADE_VALUE_MAX];
    struct buf b;

    if (str_is_utf8(value))
        return simulate_text(value);
    buf_init(&b, storage, sizeof storage);
    buf_put_utf8(&b, value);
    return simulate_text(buf_str(&b));
}

static bool put_header(json_t *out, struct str name, struct str value)
{
    json_t *text = readable(value), *there = json_object_getn(out, name.p, name.len);

    if (!there)
        return json_object_setn_new(out, name.p, name.len, text) == 0;
    if (json_is_array(there))
        return json_array_append_new(there, text) == 0;
    json_t *both = json_array();
    bool ok = json_array_append(both, there) == 0;
    ok = json_array_append_new(both, text) == 0 && ok;
    return json_object_setn_new(out, name.p, name.len, both) == 0 && ok;
}

/* What HAProxy deletes, or says itself from what only the deployment and the connection know; and Host, which it leaves alone. */
static bool is_left_out(const struct simulation *s, struct str name)
{
    const struct expr_deployment *d = s->deployment;

    return str_eq(name, STR("host")) || str_eq(name, STR("connection")) || identify_is_stripped(name, d ? d->unreadable : NULL, d ? d->n_unreadable : 0);
}

/* X-Edge-Auth-*, last, so that nothing overrides them. A subject that a header can't carry is not sent. */
static bool put_identity(const struct simulation *s, json_t *out)
{
    struct str subject;
    bool ok = put_header(out, STR("x-edge-auth-issuer"), s->verified_by->id);

    if (expr_facts_claim(&s->view.facts, STR("sub"), &subject) && subject.len > 0 && header_value_ok(subject))
        ok = put_header(out, STR("x-edge-auth-sub"), subject) && ok;
    return ok;
}

static bool is_known(const struct simulation *s, enum expr_source source)
{
    return s->deployment == NULL || (s->deployment->sources >> source & 1) != 0;
}

/* X-Edge-Geo-* and X-Edge-TLS-JA4, of what is known in this deployment. */
static bool put_viewer(const struct simulation *s, json_t *out)
{
    const struct expr_viewer *v = &s->view.facts.viewer;
    char storage[24];
    struct buf asnum;
    bool ok = true;

    buf_init(&asnum, storage, sizeof storage);
    buf_put_i64(&asnum, v->asnum);
    if (v->country.len > 0 && is_known(s, EXPR_SOURCE_COUNTRY))
        ok = put_header(out, STR("x-edge-geo-country"), v->country) && ok;
    if (v->continent.len > 0 && is_known(s, EXPR_SOURCE_CONTINENT))
        ok = put_header(out, STR("x-edge-geo-continent"), v->continent) && ok;
    if (v->has_asnum && is_known(s, EXPR_SOURCE_ASNUM))
        ok = put_header(out, STR("x-edge-geo-asn"), buf_str(&asnum)) && ok;
    if (v->ja4.len > 0 && is_known(s, EXPR_SOURCE_JA4))
        ok = put_header(out, STR("x-edge-tls-ja4"), v->ja4) && ok;
    return ok;
}

static json_t *upstream_headers(const struct simulation *s)
{
    json_t *out = json_object();
    bool ok = true;

    if (!s->rejected) {
        const struct headers *h = &s->edit.result;
        const struct str locale = expr_facts_locale(&s->view.facts);
        for (size_t i = 0; i < h->n; i++)
            if (!is_left_out(s, h->items[i].name))
                ok = put_header(out, h->items[i].name, h->items[i].value) && ok;
        ok = put_viewer(s, out) && ok;
        if (locale.len > 0)
            ok = put_header(out, STR("x-edge-locale"), locale) && ok;
        if (s->verified_by)
            ok = put_identity(s, out) && ok;
    }
    return simulate_finished(out, ok);
}

static json_t *response_headers(const struct simulation *s)
{
    json_t *out = json_object();
    bool ok = true;

    if (s->rejected) {
        ok = simulate_put(out, "cache-control", json_string("no-store"));
        ok = simulate_put(out, "x-content-type-options", json_string("nosniff")) && ok;
    }
    if (s->answer)
        ok = simulate_put(out, "content-type", simulate_text(s->answer->content_type)) && ok;
    for (size_t i = 0; i < s->response_edit.n_added; i++)
        ok = put_header(out, s->response_edit.added[i].name, s->response_edit.added[i].value) && ok;
    if (s->challenge)
        ok = simulate_put(out, "www-authenticate", json_string(s->challenge)) && ok;
    return simulate_finished(out, ok);
}

/* Of a request that is answered too, once its settings are known. */
static json_t *chosen_locale(const struct simulation *s)
{
    const struct str locale = expr_facts_locale(&s->view.facts);

    return locale.len > 0 ? simulate_text(locale) : json_null();
}

json_t *simulate_result(const struct simulation *s)
{
    json_t *out = json_object();
    bool ok = simulate_put(out, "rejected", s->rejected ? json_string(s->rejected) : json_null());

    ok = simulate_put(out, "status", json_integer(s->status)) && ok;
    ok = simulate_put(out, "config_rules", config_rules(s)) && ok;
    ok = simulate_put(out, "settings", settings(s->policy, &s->settings)) && ok;
    ok = simulate_put(out, "rate_limit_rules", rate_rules(s)) && ok;
    ok = simulate_put(out, "request_header_rules", header_rules(s)) && ok;
    ok = simulate_put(out, "upstream_headers", upstream_headers(s)) && ok;
    ok = simulate_put(out, "response_headers", response_headers(s)) && ok;
    ok = simulate_put(out, "locale", chosen_locale(s)) && ok;
    return simulate_finished(out, ok);
}
