/* Simulation: a request from JSON, through the same decisions as live traffic, and what they were as JSON. */
#include "common/policy/simulate.h"

#include "common/policy/compile_priv.h"
#include "common/policy/identify.h"
#include "common/policy/wire_max_priv.h"

enum { ARENA_BLOCK = 16 * 1024, ARENA_LIMIT = 16 * 1024 * 1024, HOST_MAX = 8 * 1024 };

struct sim {
    struct identify_input input;
    struct headers headers;
    struct settings settings;
    struct rule_hits config_hits, header_hits;
    struct limit_choice limits;
    struct header_edit edit;
    const char *rejected;             /* NULL: forwarded */
    const struct template *answer;    /* when rejected */
};

/* --- The request --- */

static void take_text(const struct jx *j, size_t max, struct str *out)
{
    if (jx_need_str(j, out) && out->len > max)
        jx_fault(j, ERR_LIMIT_EXCEEDED, "%zu bytes; at most %zu are allowed", out->len, max);
}

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
    char *lower = arena_take_bytes(a, j->key.len);

    if (!lower) {
        compile_no_memory(j);
        return false;
    }
    for (size_t i = 0; i < j->key.len; i++)
        lower[i] = ascii_lower(j->key.p[i]);
    *out = (struct str){lower, j->key.len};
    if (!header_name_ok(*out))
        jx_fault(j, ERR_BAD_VALUE, "no header name");
    else if (str_eq(*out, STR("host")))
        jx_fault(j, ERR_BAD_VALUE, "give Host as the request's own member \"host\"");
    else
        return true;
    return false;
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
}

/* Facts that no rule of this build reads: only their types are checked. */
static void check_unread(const struct jx *request)
{
    static const char *const texts[] = {"http_version", "country", "continent", "ja3", "ja4", "jwt_issuer"};
    struct jx ssl = jx_member(request, "ssl"), asnum = jx_member(request, "asnum"), claims = jx_member(request, "jwt_claims");
    struct str text;
    bool flag;
    int64_t number;

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct jx j = jx_member(request, texts[i]);
        jx_str(&j, &text);
    }
    jx_bool(&ssl, &flag);
    jx_int(&asnum, 0, UINT32_MAX, &number);
    jx_is_object(&claims);
}

static void take_request(const struct jx *request, struct arena *a, struct sim *s)
{
    static const char *const names[] = {"method",  "host",      "path",  "ip",  "headers", "http_version", "ssl",
                                        "country", "continent", "asnum", "ja3", "ja4",     "jwt_claims",   "jwt_issuer", NULL};
    struct str host = STR_NONE, ip = STR_NONE;

    if (!jx_is_object(request))
        return;
    jx_only(request, names);
    struct jx method = jx_member(request, "method"), host_j = jx_member(request, "host"), path = jx_member(request, "path"),
              ip_j = jx_member(request, "ip"), headers = jx_member(request, "headers");
    take_text(&method, WIRE_ARG_METHOD_MAX, &s->input.method);
    take_text(&host_j, HOST_MAX, &host);
    take_text(&path, WIRE_ARG_URL_MAX, &s->input.url);
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
    check_unread(request);
    s->input.headers = &s->headers;
}

/* --- The decisions --- */

static void reject(struct sim *s, const char *why, enum kind kind)
{
    s->rejected = why;
    s->answer = s->settings.responses[kind];
}

/* False: no memory. */
static bool decide(const struct policy *p, struct sim *s, struct arena *a)
{
    struct identify_input input = s->input;
    struct identity id;
    struct request_view view = {.headers = &s->headers};

    s->settings.block = BLOCK_NONE;
    memcpy(s->settings.responses, p->defaults, sizeof s->settings.responses);
    input.has_src = true; /* live traffic without an address never gets here; a question without one is answered */
    identify(&input, a, &id);
    if (id.refused == DECISION_UNAVAILABLE)
        return false;
    if (id.refused != DECISION_ALLOW) {
        reject(s, decision_name(id.refused), KIND_BAD_REQUEST);
        return true;
    }
    view.facts = id.facts;
    view.facts.has_ip = s->input.has_src;
    if (!policy_config(p, &view, a, &s->settings, &s->config_hits))
        return false;
    if (s->settings.block == BLOCK_BLOCK) {
        reject(s, "block", KIND_FORBIDDEN);
        return true;
    }
    if (!policy_select_limits(p, &view, a, &s->limits))
        return false;
    if (s->limits.reject_missing_key) {
        reject(s, "missing_key", KIND_BAD_REQUEST);
        return true;
    }
    return policy_headers(p, &view, a, &s->edit, &s->header_hits);
}

/* --- The result; a value of NULL makes any set below fail --- */

static json_t *text_json(struct str s)
{
    return json_stringn(s.p ? s.p : "", s.len);
}

static bool put(json_t *object, const char *name, json_t *value)
{
    return json_object_set_new(object, name, value) == 0;
}

static json_t *finished(json_t *value, bool ok)
{
    if (ok)
        return value;
    json_decref(value);
    return NULL;
}

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

static json_t *settings_json(const struct settings *s)
{
    json_t *responses = json_object(), *out = json_object();
    bool ok = true;

    for (int k = 0; k < KIND_N; k++)
        ok = put(responses, kind_name((enum kind) k), text_json(s->responses[k]->name)) && ok;
    ok = put(out, "auth_mode", json_string("none")) && ok;
    ok = put(out, "auth_accepted", json_array()) && ok;
    ok = put(out, "cors_policy", json_null()) && ok;
    ok = put(out, "locale", json_false()) && ok;
    ok = put(out, "responses", responses) && ok;
    ok = put(out, "ratelimit_headers", json_boolean(s->ratelimit_headers)) && ok;
    ok = put(out, "block", json_string(block_name(s->block))) && ok;
    return finished(out, ok);
}

static bool has_prefix_twin(struct str name, struct str prefix)
{
    for (size_t i = 0; i < prefix.len; i++)
        if (i >= name.len || (name.p[i] == '_' ? '-' : name.p[i]) != prefix.p[i])
            return false;
    return true;
}

/* What the edge removes from every request before rules see the result, with '_' read as '-'; and Host, which it leaves alone. */
static bool is_left_out(struct str name)
{
    static const struct str prefixes[] = {{"x-edge-", 7}, {"x-forwarded-", 12}};
    static const struct str whole[] = {{"forwarded", 9}, {"x-request-id", 12}, {"host", 4}};

    for (size_t i = 0; i < sizeof prefixes / sizeof prefixes[0]; i++)
        if (has_prefix_twin(name, prefixes[i]))
            return true;
    for (size_t i = 0; i < sizeof whole / sizeof whole[0]; i++)
        if (name.len == whole[i].len && has_prefix_twin(name, whole[i]))
            return true;
    return false;
}

static bool put_header(json_t *out, struct str name, struct str value)
{
    json_t *text = text_json(value), *there = json_object_getn(out, name.p, name.len);

    if (!there)
        return json_object_setn_new(out, name.p, name.len, text) == 0;
    if (json_is_array(there))
        return json_array_append_new(there, text) == 0;
    json_t *both = json_array();
    bool ok = json_array_append(both, there) == 0;
    ok = json_array_append_new(both, text) == 0 && ok;
    return json_object_setn_new(out, name.p, name.len, both) == 0 && ok;
}

static json_t *upstream_json(const struct headers *h)
{
    json_t *out = json_object();
    bool ok = true;

    for (size_t i = 0; i < h->n; i++)
        if (!is_left_out(h->items[i].name))
            ok = put_header(out, h->items[i].name, h->items[i].value) && ok;
    return finished(out, ok);
}

static json_t *answer_json(const struct template *answer)
{
    json_t *out = json_object();
    bool ok = true;

    if (answer) {
        ok = put(out, "content-type", text_json(answer->content_type)) && ok;
        ok = put(out, "cache-control", json_string("no-store")) && ok;
        ok = put(out, "x-content-type-options", json_string("nosniff")) && ok;
    }
    return finished(out, ok);
}

static json_t *result_json(const struct policy *p, const struct sim *s)
{
    json_t *out = json_object(), *config = json_array(), *rate = json_array(), *header = json_array();
    bool ok = true;

    for (size_t i = 0; i < s->config_hits.n; i++)
        ok = json_array_append_new(config, text_json(p->config_rules[s->config_hits.index[i]].id)) == 0 && ok;
    for (size_t i = 0; i < s->limits.n; i++)
        ok = json_array_append_new(rate, text_json(p->rate_rules[s->limits.index[i]].id)) == 0 && ok;
    for (size_t i = 0; i < s->header_hits.n; i++)
        ok = json_array_append_new(header, text_json(p->header_rules[s->header_hits.index[i]].id)) == 0 && ok;
    ok = put(out, "rejected", s->rejected ? json_string(s->rejected) : json_null()) && ok;
    ok = put(out, "status", json_integer(s->answer ? s->answer->status : 0)) && ok;
    ok = put(out, "config_rules", config) && ok;
    ok = put(out, "settings", settings_json(&s->settings)) && ok;
    ok = put(out, "rate_limit_rules", rate) && ok;
    ok = put(out, "request_header_rules", header) && ok;
    ok = put(out, "upstream_headers", upstream_json(&s->edit.result)) && ok;
    ok = put(out, "response_headers", answer_json(s->answer)) && ok;
    ok = put(out, "locale", json_null()) && ok;
    return finished(out, ok);
}

bool simulate(const struct policy *p, const json_t *request, json_t **out, struct errlist *errors)
{
    size_t n_before = errors->n + errors->n_dropped;
    struct arena a;
    struct jx_doc doc = {.arena = &a, .errors = errors};
    struct jx root = jx_root(request, &doc);
    struct sim s = {0};
    json_t *result = NULL;

    arena_init(&a, ARENA_BLOCK, ARENA_LIMIT);
    take_request(&root, &a, &s);
    if (errors->n + errors->n_dropped == n_before) {
        result = decide(p, &s, &a) ? result_json(p, &s) : NULL;
        if (!result)
            errlist_add(errors, ERR_NO_MEMORY, "", "no memory for this simulation");
    }
    arena_release(&a);
    if (result)
        *out = result;
    return result != NULL;
}
