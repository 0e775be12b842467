/* Values of a request: each is extracted when it is first asked for, once a request, into the request's arena. */
#include "common/expr/values_priv.h"

#include "common/http/cookies.h"
#include "common/http/query.h"

_Static_assert(offsetof(struct header, name) == 0 && offsetof(struct pair, name) == 0 && offsetof(struct expr_claim, name) == 0,
               "name_at reads names at the beginning");

bool expr_facts_begin(struct expr_facts *f, struct arena *a)
{
    struct expr_lazy *lazy = ARENA_NEW(a, struct expr_lazy);

    if (lazy == NULL)
        return false;
    lazy->arena = a;
    *f = (struct expr_facts){.lazy = lazy};
    return true;
}

const struct headers *facts_headers(const struct expr_facts *f)
{
    static const struct headers none;

    return f->headers == NULL ? &none : f->headers;
}

/* ---- headers ---- */

bool facts_header_readable(const struct expr_facts *f, struct str name)
{
    const struct expr_deployment *d = f->deployment;

    if (header_name_reserved(name))
        return false;
    for (size_t i = 0; d != NULL && i < d->n_unreadable; i++)
        if (str_eq_nocase(d->unreadable[i], name))
            return false;
    return true;
}

/* One value stays where it was received; several are gathered. */
static bool header_texts(const struct expr_facts *f, struct str name, struct texts *out)
{
    const struct headers *h = facts_headers(f);
    const struct str *last = NULL;
    struct str *items;
    size_t n = 0;

    *out = (struct texts){0};
    for (size_t i = 0; i < h->n; i++) {
        if (str_eq_nocase(h->items[i].name, name)) {
            last = &h->items[i].value;
            n++;
        }
    }
    if (n == 0 || !facts_header_readable(f, name))
        return true;
    if (n == 1) {
        *out = (struct texts){last, 1};
        return true;
    }
    items = arena_take_n(f->lazy->arena, n, sizeof(*items));
    if (items == NULL)
        return false;
    for (size_t i = 0; i < h->n; i++)
        if (str_eq_nocase(h->items[i].name, name))
            items[out->n++] = h->items[i].value;
    out->items = items;
    return true;
}

static bool header_names(const struct expr_facts *f, struct texts *out)
{
    const struct headers *h = facts_headers(f);
    struct str *items = ARENA_NEW_N(f->lazy->arena, h->n, struct str);

    *out = (struct texts){0};
    if (items == NULL)
        return false;
    for (size_t i = 0; i < h->n; i++)
        if (facts_header_readable(f, h->items[i].name))
            items[out->n++] = h->items[i].name;
    out->items = items;
    return true;
}

/* The first value, kept at *kept; without one the text is empty and not missing. */
static void first_header(const struct expr_facts *f, struct str name, struct str *kept, struct texts *out)
{
    if (!headers_get(facts_headers(f), name, kept))
        *kept = STR_NONE;
    *out = (struct texts){kept, 1};
}

static bool forwarded_for(const struct expr_facts *f, struct texts *out)
{
    if (!f->lazy->has_forwarded_for && !headers_join(facts_headers(f), STR("x-forwarded-for"), f->lazy->arena, &f->lazy->forwarded_for))
        return false;
    f->lazy->has_forwarded_for = true;
    *out = (struct texts){&f->lazy->forwarded_for, 1};
    return true;
}

/* ---- the address as a whole ---- */

/* A bare IPv6 address gets its brackets back: the host has lost them. */
static bool join_full_uri(const struct expr_facts *f)
{
    bool bare = str_find_byte(f->host, ':') != SIZE_MAX;
    struct str scheme = f->viewer.ssl ? STR("https://") : STR("http://");
    size_t cap = scheme.len + f->host.len + 2 + f->uri.len;
    struct buf b;

    if (!arena_take_buf(f->lazy->arena, cap, &b))
        return false;
    buf_put(&b, scheme);
    buf_put_cstr(&b, bare ? "[" : "");
    buf_put(&b, f->host);
    buf_put_cstr(&b, bare ? "]" : "");
    buf_put(&b, f->uri);
    f->lazy->full_uri = buf_str(&b);
    return true;
}

static bool full_uri(const struct expr_facts *f, struct texts *out)
{
    if (!f->lazy->has_full_uri && !join_full_uri(f))
        return false;
    f->lazy->has_full_uri = true;
    *out = (struct texts){&f->lazy->full_uri, 1};
    return true;
}

/* ---- parameters and cookies ---- */

bool facts_arguments(const struct expr_facts *f, const struct pairs **out)
{
    if (!f->lazy->has_arguments && !query_parse(f->query, f->lazy->arena, &f->lazy->arguments))
        return false;
    f->lazy->has_arguments = true;
    *out = &f->lazy->arguments;
    return true;
}

bool facts_cookies(const struct expr_facts *f, const struct pairs **out)
{
    if (!f->lazy->has_cookies && !cookies_parse(facts_headers(f), f->lazy->arena, &f->lazy->cookies))
        return false;
    f->lazy->has_cookies = true;
    *out = &f->lazy->cookies;
    return true;
}

static bool pair_values(const struct expr_facts *f, const struct pairs *pairs, struct str name, struct texts *out)
{
    struct str *items;
    size_t n = 0;

    *out = (struct texts){0};
    for (size_t i = 0; i < pairs->n; i++)
        n += str_eq(pairs->items[i].name, name);
    if (n == 0)
        return true;
    items = arena_take_n(f->lazy->arena, n, sizeof(*items));
    if (items == NULL)
        return false;
    for (size_t i = 0; i < pairs->n; i++)
        if (str_eq(pairs->items[i].name, name))
            items[out->n++] = pairs->items[i].value;
    out->items = items;
    return true;
}

static bool argument_names(const struct expr_facts *f, struct texts *out)
{
    const struct pairs *pairs;
    struct str *items;

    if (!facts_arguments(f, &pairs))
        return false;
    items = arena_take_n(f->lazy->arena, pairs->n, sizeof(*items));
    if (items == NULL)
        return false;
    for (size_t i = 0; i < pairs->n; i++)
        items[i] = pairs->items[i].name;
    *out = (struct texts){items, pairs->n};
    return true;
}

/* ---- claims ---- */

void facts_claim(const struct expr_facts *f, struct str name, struct texts *out)
{
    *out = (struct texts){0};
    for (size_t i = 0; f->claims != NULL && i < f->claims->n; i++)
        if (str_eq(f->claims->items[i].name, name)) {
            *out = (struct texts){f->claims->items[i].values, f->claims->items[i].n_values};
            return;
        }
}

struct str expr_facts_locale(const struct expr_facts *f)
{
    struct str languages = STR_NONE;

    if (f->locale == NULL || f->lazy == NULL)
        return STR_NONE;
    if (!f->lazy->has_locale) {
        if (!headers_join(facts_headers(f), STR("accept-language"), f->lazy->arena, &languages))
            languages = STR_NONE;
        f->lazy->locale = f->locale(f->locale_ctx, languages);
        f->lazy->has_locale = true;
    }
    return f->lazy->locale;
}

/* ---- by field ---- */

/* The text that lies in the facts themselves; NULL: this field's does not. */
static const struct str *plain_text(const struct expr_facts *f, enum field field)
{
#define AT(member) (1 + offsetof(struct expr_facts, member))
    static const size_t places[FIELD_N] = {
        [FIELD_HTTP_HOST] = AT(host),
        [FIELD_HTTP_METHOD] = AT(method),
        [FIELD_HTTP_VERSION] = AT(viewer.http_version),
        [FIELD_HTTP_URI] = AT(uri),
        [FIELD_HTTP_PATH] = AT(path),
        [FIELD_HTTP_QUERY] = AT(query),
        [FIELD_IP_COUNTRY] = AT(viewer.country),
        [FIELD_IP_CONTINENT] = AT(viewer.continent),
        [FIELD_TLS_JA3] = AT(viewer.ja3),
        [FIELD_TLS_JA4] = AT(viewer.ja4),
        [FIELD_CERT_SUBJECT] = AT(viewer.cert.subject),
        [FIELD_CERT_ISSUER] = AT(viewer.cert.issuer),
        [FIELD_CERT_SERIAL] = AT(viewer.cert.serial),
        [FIELD_CERT_SHA256] = AT(viewer.cert.sha256),
    };
#undef AT
    const char *facts = (const char *)f;

    return places[field] == 0 ? NULL : (const struct str *)(const void *)(facts + places[field] - 1);
}

/* Of a field whose values are extracted. */
static bool extracted_texts(const struct expr_facts *f, enum field field, struct str key, struct texts *out)
{
    const struct pairs *pairs;

    if (f->lazy == NULL)
        return false;
    if (field == FIELD_HTTP_HEADERS)
        return header_texts(f, key, out);
    if (field == FIELD_HTTP_HEADERS_NAMES)
        return header_names(f, out);
    if (field == FIELD_HTTP_ARGS)
        return facts_arguments(f, &pairs) && pair_values(f, pairs, key, out);
    if (field == FIELD_HTTP_ARGS_NAMES)
        return argument_names(f, out);
    if (field == FIELD_HTTP_COOKIES)
        return facts_cookies(f, &pairs) && pair_values(f, pairs, key, out);
    if (field == FIELD_HTTP_FULL_URI)
        return full_uri(f, out);
    if (field == FIELD_HTTP_X_FORWARDED_FOR)
        return forwarded_for(f, out);
    if (field == FIELD_EDGE_LOCALE) {
        expr_facts_locale(f);
        *out = (struct texts){&f->lazy->locale, 1};
        return true;
    }
    if (field == FIELD_HTTP_USER_AGENT)
        first_header(f, STR("user-agent"), &f->lazy->user_agent, out);
    else
        first_header(f, STR("referer"), &f->lazy->referer, out);
    return true;
}

bool facts_texts(const struct expr_facts *f, enum field field, struct str key, struct texts *out)
{
    const struct str *plain = plain_text(f, field);

    if (plain != NULL)
        *out = (struct texts){plain, 1};
    else if (field == FIELD_JWT_CLAIMS)
        facts_claim(f, key, out);
    else
        return extracted_texts(f, field, key, out);
    return true;
}

bool facts_names(const struct expr_facts *f, enum field field, struct names *out)
{
    const struct headers *h = facts_headers(f);
    const struct pairs *pairs;

    *out = (struct names){0};
    if (field == FIELD_HTTP_HEADERS) {
        *out = (struct names){(const char *)h->items, sizeof(*h->items), h->n};
    } else if (field == FIELD_JWT_CLAIMS) {
        if (f->claims != NULL)
            *out = (struct names){(const char *)f->claims->items, sizeof(*f->claims->items), f->claims->n};
    } else {
        if (f->lazy == NULL || !(field == FIELD_HTTP_ARGS ? facts_arguments(f, &pairs) : facts_cookies(f, &pairs)))
            return false;
        *out = (struct names){(const char *)pairs->items, sizeof(*pairs->items), pairs->n};
    }
    return true;
}

bool facts_int(const struct expr_facts *f, enum field field, int64_t *out)
{
    if (field != FIELD_IP_ASNUM || !f->viewer.has_asnum)
        return false;
    *out = f->viewer.asnum;
    return true;
}

bool facts_truth(const struct expr_facts *f, enum field field)
{
    if (field == FIELD_SSL)
        return f->viewer.ssl;
    if (field == FIELD_CERT_PRESENT)
        return f->viewer.cert.present;
    if (field == FIELD_CERT_VERIFIED)
        return f->viewer.cert.verified;
    if (field != FIELD_CLIENT_VERIFIED_BOT)
        return false;
    return f->verified_bot || (f->verified_bots != NULL && f->has_ip && addr_set_has(f->verified_bots, &f->ip));
}
