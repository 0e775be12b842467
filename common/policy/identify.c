/* Identification: host, method and path in their one form, and the refusal of what has none. */
#include "common/policy/identify.h"

#include "common/http/target.h"
#include "common/policy/identify_guards_priv.h"

enum { METHOD_MAX = 256 };

static bool is_method(struct str s)
{
    for (size_t i = 0; i < s.len; i++)
        if (ascii_lower(s.p[i]) == s.p[i] && ascii_is_alpha(s.p[i]))
            return false;
    return s.len <= METHOD_MAX && str_is_token(s);
}

/* The Host header's value; false when there are several that differ. */
static bool find_host(const struct headers *h, struct str *host)
{
    bool found = false;

    *host = STR_NONE;
    for (size_t i = 0; i < h->n; i++) {
        if (!str_eq_nocase(h->items[i].name, STR("host")))
            continue;
        if (found && !str_eq(h->items[i].value, *host))
            return false;
        *host = h->items[i].value;
        found = true;
    }
    return true;
}

/* The host of an absolute target is judged by the Host header, so both must name the same one: an upstream may believe either. Userinfo
 * would make them look alike. */
static bool authority_agrees(const struct target *t, struct str host, struct arena *a, bool *memory)
{
    struct str named = STR_NONE;

    if (!t->absolute)
        return true;
    if (str_find_byte(t->authority, '@') != SIZE_MAX)
        return false;
    if (!target_host(t->authority, a, &named))
        *memory = false;
    return str_eq(named, host);
}

/* Path and query as sent, over any HTTP version; the whole url where it has no path. */
static struct str origin_form(struct str url, const struct target *t)
{
    if (t->path.len == 0)
        return url;
    return (struct str){t->path.p, t->path.len + (t->has_query ? 1 + t->query.len : 0)}; /* the query follows the path */
}

/* Puts path and cleaned query together; borrows the url's own bytes where nothing changed. False: no memory. */
static bool build_uri(const struct target *t, const struct path *path, struct arena *a, struct identity *out)
{
    struct str query = STR_NONE;

    if (t->has_query && !target_clean_query(t->query, a, &query))
        return false;
    out->facts.query = query;
    if (str_eq(path->forward, t->path) && str_eq(query, t->query)) {
        out->forward_uri = out->facts.uri;
        return true;
    }
    bool has_query = query.len > 0 || (t->has_query && t->query.len == 0);
    struct buf b;
    if (!arena_take_buf(a, path->forward.len + 1 + query.len, &b))
        return false;
    buf_put(&b, path->forward);
    if (has_query) {
        buf_put_byte(&b, '?');
        buf_put(&b, query);
    }
    out->forward_uri = buf_str(&b);
    out->uri_changed = true;
    return true;
}

static void take_client(const struct identify_input *in, struct identity *out)
{
    if (in->client == NULL) {
        out->facts.ip = in->src;
        out->facts.has_ip = in->has_src;
        out->identity_refusal = in->has_src ? IDENTITY_OK : IDENTITY_NO_PEER;
        return;
    }
    out->facts.ip = in->client->ip;
    out->facts.has_ip = in->client->refusal == IDENTITY_OK;
    out->facts.viewer = in->client->viewer;
    out->identity_refusal = in->client->refusal;
}

void identify(const struct identify_input *in, struct arena *a, struct identity *out)
{
    struct target t;
    struct path path = {0};
    struct str host;

    *out = (struct identity){.refused = DECISION_ALLOW};
    target_split(in->url, &t);
    bool one_host = find_host(in->headers, &host);
    bool memory = expr_facts_begin(&out->facts, a);
    out->facts.method = in->method;
    out->facts.path = t.path;
    out->facts.uri = origin_form(in->url, &t);
    out->facts.headers = in->headers;
    take_client(in, out);
    memory = target_host(host, a, &out->facts.host) && memory;
    out->path_verdict = path_normalise(t.path, a, &path);
    if (out->path_verdict == PATH_OK)
        out->facts.path = path.normal;
    bool one_target = authority_agrees(&t, out->facts.host, a, &memory) && target_bytes_ok(in->url);
    memory = memory && out->path_verdict != PATH_NO_MEMORY;

    if (!memory)
        out->refused = DECISION_UNAVAILABLE;
    else if (out->identity_refusal != IDENTITY_OK)
        out->refused = DECISION_IDENTITY;
    else if (out->path_verdict != PATH_OK)
        out->refused = DECISION_PATH;
    else if (!is_method(in->method))
        out->refused = DECISION_METHOD;
    else if (!one_host || !one_target || !identify_host_ok(host, in->http_version) || !identify_framing_ok(in->headers, in->http_version) ||
             !identify_values_ok(in->headers))
        out->refused = DECISION_BAD_REQUEST;
    else if (!build_uri(&t, &path, a, out))
        out->refused = DECISION_UNAVAILABLE;
}
