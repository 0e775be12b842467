/* Any policy and any headers: a response says of CORS only what the policy allows the request. */
#include "common/http/cors.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/guarantee.h"

/* The first byte's bits; then lines: origins, methods, request headers and exposed headers (words apart by blanks), the method, "name:value"... */
enum { ANY_ORIGIN = 1, CREDENTIALS = 2, AGE = 4, ALL_METHODS = 8, ALL_REQUEST_HEADERS = 16, ALL_EXPOSED_HEADERS = 32, AS_PREFLIGHT = 64 };
enum { NAMES_MAX = 16 };

#define ORIGIN STR("origin")
#define ASKED_METHOD STR("access-control-request-method")
#define ASKED_HEADERS STR("access-control-request-headers")
#define ALLOW_ORIGIN STR("access-control-allow-origin")
#define ALLOW_CREDENTIALS STR("access-control-allow-credentials")
#define ALLOW_METHODS STR("access-control-allow-methods")
#define ALLOW_HEADERS STR("access-control-allow-headers")
#define EXPOSE_HEADERS STR("access-control-expose-headers")
#define MAX_AGE STR("access-control-max-age")

static struct str line_take(struct str *rest)
{
    size_t end = str_find_byte(*rest, '\n');
    struct str line = str_sub(*rest, 0, end);

    *rest = end == SIZE_MAX ? STR_NONE : str_sub(*rest, end + 1, rest->len);
    return line;
}

static bool list_has(const struct str_list *list, struct str s)
{
    for (size_t i = 0; i < list->n; i++)
        if (str_eq(list->items[i], s))
            return true;
    return false;
}

/* What a policy's check lets through: of origins any text, of names tokens in lower case, of methods tokens; each once. */
static bool is_word(struct str word, bool origin)
{
    if (word.len == 0 || str_eq(word, STR("*")) || str_eq(word, STR("null")))
        return false;
    return origin ? header_value_ok(word) : str_is_token(word);
}

static struct str lower(struct str s, struct arena *a)
{
    char *copy = arena_take_bytes(a, s.len);

    GUARANTEE(copy != NULL);
    for (size_t i = 0; i < s.len; i++)
        copy[i] = ascii_lower(s.p[i]);
    return (struct str){copy, s.len};
}

static struct str_list words(struct str line, bool origin, bool in_lower, struct str *storage, struct arena *a)
{
    struct str_list list = {storage, 0};

    while (line.len > 0 && list.n < NAMES_MAX) {
        size_t end = str_find_byte(line, ' ');
        struct str word = str_sub(line, 0, end);

        if (in_lower)
            word = lower(word, a);
        if (is_word(word, origin) && !list_has(&list, word))
            storage[list.n++] = word;
        line = end == SIZE_MAX ? STR_NONE : str_sub(line, end + 1, line.len);
    }
    return list;
}

static struct str joined(const struct str_list *list, struct arena *a)
{
    struct buf b;
    size_t size = 0;
    char *storage;

    for (size_t i = 0; i < list->n; i++)
        size += list->items[i].len + 2;
    if (size > CORS_JOINED_MAX)
        return STR_NONE;
    storage = arena_take_bytes(a, size);
    GUARANTEE(storage != NULL);
    buf_init(&b, storage, size);
    for (size_t i = 0; i < list->n; i++) {
        buf_put_cstr(&b, i == 0 ? "" : ", ");
        buf_put(&b, list->items[i]);
    }
    GUARANTEE(!b.full);
    return buf_str(&b);
}

static struct str_list star(struct str *storage, bool and_authorization)
{
    storage[0] = STR("*");
    storage[1] = STR("authorization");
    return (struct str_list){storage, and_authorization ? 2 : 1};
}

/* A policy as its check lets it through: at least one origin, and with credentials no "*" at all. */
static struct cors_policy policy_make(uint8_t bits, struct str *rest, struct str storage[4][NAMES_MAX], struct arena *a)
{
    struct cors_policy p = {.name = STR("web"), .any_origin = bits & ANY_ORIGIN};

    p.origins = words(line_take(rest), true, false, storage[0], a);
    p.methods = words(line_take(rest), false, false, storage[1], a);
    p.request_headers = words(line_take(rest), false, true, storage[2], a);
    p.exposed_headers = words(line_take(rest), false, true, storage[3], a);
    if (p.any_origin || p.origins.n == 0) {
        storage[0][0] = p.any_origin ? STR("*") : STR("https://a.example");
        p.origins.n = 1;
    }
    if (bits & ALL_METHODS)
        p.methods = star(storage[1], false);
    if (bits & ALL_REQUEST_HEADERS)
        p.request_headers = star(storage[2], list_has(&p.request_headers, STR("authorization")));
    if (bits & ALL_EXPOSED_HEADERS)
        p.exposed_headers = star(storage[3], false);
    p.credentials = (bits & CREDENTIALS) && !(bits & (ANY_ORIGIN | ALL_METHODS | ALL_REQUEST_HEADERS | ALL_EXPOSED_HEADERS));
    p.allow_methods = joined(&p.methods, a);
    p.allow_headers = joined(&p.request_headers, a);
    p.expose_headers = joined(&p.exposed_headers, a);
    p.max_age = (bits & AGE) ? STR("600") : STR_NONE;
    return p;
}

/* Names in lower case, as HAProxy delivers them. */
static void headers_make(struct str rest, struct header *items, struct headers *out, struct arena *a)
{
    *out = (struct headers){items, 0};
    while (rest.len > 0 && out->n < HEADERS_MAX) {
        struct str line = line_take(&rest);
        size_t colon = str_find_byte(line, ':');

        if (colon != SIZE_MAX && colon > 0)
            items[out->n++] = (struct header){lower(str_sub(line, 0, colon), a), str_sub(line, colon + 1, line.len)};
    }
}

/* The value of the one header of that name; false when there is none. */
static bool added(const struct response_edit *e, struct str name, struct str *value)
{
    size_t n = 0;

    for (size_t i = 0; i < e->n_added; i++)
        if (str_eq(e->added[i].name, name)) {
            *value = e->added[i].value;
            n++;
        }
    GUARANTEE(n <= 1);
    return n == 1;
}

/* There when it should be, with that text; an empty one is left out. */
static void check_text(const struct response_edit *e, struct str name, bool there, struct str text)
{
    struct str value = STR_NONE;

    GUARANTEE(added(e, name, &value) == (there && text.len > 0));
    GUARANTEE(!there || str_eq(value, text));
}

static bool name_allowed(const struct cors_policy *p, struct str name)
{
    for (size_t i = 0; i < p->request_headers.n; i++)
        if (str_eq_nocase(p->request_headers.items[i], name))
            return true;
    return list_has(&p->request_headers, STR("*")) && !str_eq_nocase(name, STR("authorization"));
}

static bool names_allowed(const struct cors_policy *p, struct str names)
{
    while (names.len > 0) {
        size_t end = str_find_byte(names, ',');
        struct str name = str_trim(str_sub(names, 0, end));

        if (name.len > 0 && !name_allowed(p, name))
            return false;
        names = end == SIZE_MAX ? STR_NONE : str_sub(names, end + 1, names.len);
    }
    return true;
}

static bool method_allowed(const struct cors_policy *p, struct str m)
{
    return str_eq(m, STR("GET")) || str_eq(m, STR("HEAD")) || str_eq(m, STR("POST")) || list_has(&p->methods, m) || list_has(&p->methods, STR("*"));
}

/* The origin that may be named to this request: the only one of its header, when the policy lists it. */
static bool origin_allowed(const struct cors_policy *p, const struct headers *h)
{
    struct str origin = STR_NONE;

    return p->any_origin || (headers_count(h, ORIGIN) == 1 && headers_get(h, ORIGIN, &origin) && list_has(&p->origins, origin));
}

static bool preflight_allowed(const struct cors_policy *p, const struct headers *h)
{
    struct str asked = STR_NONE;

    if (!headers_get(h, ASKED_METHOD, &asked) || !method_allowed(p, asked))
        return false;
    for (size_t i = 0; i < h->n; i++)
        if (str_eq(h->items[i].name, ASKED_HEADERS) && !names_allowed(p, h->items[i].value))
            return false;
    return origin_allowed(p, h);
}

static void check_origin(const struct cors_policy *p, const struct headers *h, struct str allowed)
{
    struct str sent = STR_NONE;
    size_t at = 0;

    while (at < p->origins.n && !str_eq(p->origins.items[at], allowed))
        at++;
    GUARANTEE(at < p->origins.n && p->any_origin == str_eq(allowed, STR("*")));
    /* Borrowed from the policy: the request's own bytes are never sent back. */
    GUARANTEE(p->any_origin || allowed.p == p->origins.items[at].p);
    GUARANTEE(p->origins.n == 1 || (headers_get(h, ORIGIN, &sent) && str_eq(sent, allowed)));
}

static void check_all(const struct cors_policy *p, const struct headers *h, bool preflight, const struct response_edit *e)
{
    bool one = p->any_origin || p->origins.n == 1, allowed;
    struct str origin = STR_NONE, unused;

    GUARANTEE(e->cors && !e->full && e->n_deleted == 0);
    for (size_t i = 0; i < e->n_added; i++)
        GUARANTEE(header_value_ok(e->added[i].value));
    check_text(e, STR("vary"), !one || (preflight && !p->any_origin && !added(e, ALLOW_ORIGIN, &unused)), STR("Origin"));
    allowed = added(e, ALLOW_ORIGIN, &origin);
    if (preflight)
        GUARANTEE(!allowed || preflight_allowed(p, h));
    else
        GUARANTEE(allowed == (one || origin_allowed(p, h)));
    /* One of each is what browsers send; of anything else only what must not be allowed is said above. */
    if (preflight && preflight_allowed(p, h) && headers_count(h, ORIGIN) == 1 && headers_count(h, ASKED_METHOD) == 1 && headers_count(h, ASKED_HEADERS) == 0)
        GUARANTEE(allowed);
    if (allowed)
        check_origin(p, h, origin);
    check_text(e, ALLOW_CREDENTIALS, allowed && p->credentials, STR("true"));
    check_text(e, EXPOSE_HEADERS, allowed && !preflight, p->expose_headers);
    check_text(e, ALLOW_METHODS, allowed && preflight, p->allow_methods);
    check_text(e, ALLOW_HEADERS, allowed && preflight, p->allow_headers);
    check_text(e, MAX_AGE, allowed && preflight, p->max_age);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str rest = {(const char *)data, size}, method, value;
    struct str storage[4][NAMES_MAX];
    struct header items[HEADERS_MAX];
    struct cors_policy p;
    struct response_edit e;
    struct headers h;
    struct arena a;
    bool preflight;

    if (size == 0)
        return 0;
    str_skip(&rest, 1);
    arena_init(&a, 4096, 0);
    p = policy_make(data[0], &rest, storage, &a);
    method = line_take(&rest);
    headers_make(rest, items, &h, &a);
    preflight = cors_is_preflight(method, &h);
    GUARANTEE(!preflight || (str_eq(method, STR("OPTIONS")) && headers_get(&h, ORIGIN, &value) && headers_get(&h, ASKED_METHOD, &value)));
    response_edit_clear(&e);
    cors_respond(&p, &h, preflight || (data[0] & AS_PREFLIGHT), &e);
    check_all(&p, &h, preflight || (data[0] & AS_PREFLIGHT), &e);
    arena_release(&a);
    return 0;
}
