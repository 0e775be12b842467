/* Any bytes as a request to simulate: it has faults or it gets the whole answer, explained or not. */
#include <jansson.h>

#include "common/http/cors.h"
#include "common/policy/simulate.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/tested_policy.h"

static bool is_edge_header(const char *name)
{
    return strncmp(name, "x-edge-", 7) == 0 || strncmp(name, "x-forwarded-", 12) == 0 || strcmp(name, "forwarded") == 0 || strcmp(name, "x-request-id") == 0;
}

/* The member of the request that makes the edge say this of the client; NULL: none does. */
static const char *member_behind(const char *header)
{
    static const char *const pairs[][2] = {
        {"x-edge-auth-issuer", "jwt_claims"}, {"x-edge-auth-sub", "jwt_claims"}, {"x-edge-geo-country", "country"},
        {"x-edge-geo-continent", "continent"}, {"x-edge-geo-asn", "asnum"},      {"x-edge-tls-ja4", "ja4"},
    };

    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++)
        if (strcmp(pairs[i][0], header) == 0)
            return pairs[i][1];
    return NULL;
}

static void add_header(struct headers *h, const char *name, const json_t *value, struct arena *a)
{
    char *lower = arena_take_bytes(a, strlen(name));

    GUARANTEE(lower != NULL && h->n < HEADERS_MAX);
    for (size_t i = 0; name[i] != '\0'; i++)
        lower[i] = ascii_lower(name[i]);
    h->items[h->n++] = (struct header){{lower, strlen(name)}, {json_string_value(value), json_string_length(value)}};
}

static void read_headers(const json_t *request, struct header *items, struct headers *out, struct arena *a)
{
    json_t *value, *item;
    const char *name;
    size_t i;

    *out = (struct headers){items, 0};
    json_object_foreach(json_object_get(request, "headers"), name, value)
    {
        if (json_is_string(value))
            add_header(out, name, value, a);
        json_array_foreach(value, i, item)
            add_header(out, name, item, a);
    }
}

static void put(json_t *headers, struct str name, struct str value)
{
    GUARANTEE(json_object_getn(headers, name.p, name.len) == NULL);
    GUARANTEE(json_object_setn_new(headers, name.p, name.len, json_stringn(value.p, value.len)) == 0);
}

/* What the CORS policy in the settings, if there is one, says of this request. A preflight is told by the request alone. */
static void put_cors(const struct policy *p, const json_t *request, const json_t *settings, bool preflight, json_t *out)
{
    struct header items[HEADERS_MAX];
    struct response_edit edit;
    struct headers h;
    struct arena a;
    const char *method = json_string_value(json_object_get(request, "method"));

    arena_init(&a, 4096, 0);
    read_headers(request, items, &h, &a);
    bool asked = json_is_string(json_object_get(settings, "cors_policy")) && strcmp(json_string_value(json_object_get(settings, "block")), "block") != 0 &&
                 cors_is_preflight(str_of(method), &h);
    GUARANTEE(asked == preflight);
    if (json_is_string(json_object_get(settings, "cors_policy"))) {
        response_edit_clear(&edit);
        cors_respond(&p->cors_policies[0], &h, preflight, &edit);
        for (size_t i = 0; i < edit.n_added; i++)
            put(out, edit.added[i].name, edit.added[i].value);
    }
    arena_release(&a);
}

/* Nothing but what CORS asks for, and what every answer of the edge has. */
static void check_response(const struct policy *p, const json_t *out, const json_t *request)
{
    const json_t *rejected = json_object_get(out, "rejected");
    bool preflight = json_is_string(rejected) && strcmp(json_string_value(rejected), "preflight") == 0;
    json_t *expected = json_object();

    put_cors(p, request, json_object_get(out, "settings"), preflight, expected);
    if (json_is_string(rejected)) {
        put(expected, STR("cache-control"), STR("no-store"));
        put(expected, STR("x-content-type-options"), STR("nosniff"));
        if (!preflight)
            put(expected, STR("content-type"), p->defaults[0]->content_type);
        if (strcmp(json_string_value(rejected), "auth") == 0)
            put(expected, STR("www-authenticate"), json_object_get(request, "jwt_claims") ? STR("Bearer error=\"invalid_token\"") : STR("Bearer"));
    }
    GUARANTEE(json_equal(expected, json_object_get(out, "response_headers")));
    json_decref(expected);
}

/* A client can't hand the upstream what only the edge may say. */
static void check_answer(const json_t *out, const json_t *request)
{
    json_t *upstream = json_object_get(out, "upstream_headers"), *value;
    const char *name;
    bool forwarded = json_is_null(json_object_get(out, "rejected"));

    GUARANTEE(json_object_size(out) == 9 && json_object_size(json_object_get(out, "settings")) == 10);
    GUARANTEE((json_integer_value(json_object_get(out, "status")) == 0) == forwarded);
    GUARANTEE(forwarded || json_object_size(upstream) == 0);
    json_object_foreach(upstream, name, value)
    {
        const char *member = member_behind(name);
        bool is_chosen = strcmp(name, "x-edge-locale") == 0 && json_equal(value, json_object_get(out, "locale"));

        GUARANTEE(!is_edge_header(name) || is_chosen || (member != NULL && json_object_get(request, member) != NULL));
        GUARANTEE(json_is_string(value) || json_array_size(value) > 1);
    }
    if (forwarded)
        GUARANTEE(strcmp(json_string_value(json_object_get(upstream, "x-tenant")), "shop") == 0);
}

/* An explanation changes nothing else. */
static void check_explained(const struct tested_policy *t, const json_t *request, const json_t *bare)
{
    const struct simulate_options explained = {.document = t->document};
    json_t *out = NULL, *differences;
    struct errlist errors;

    GUARANTEE(errlist_init(&errors, 0));
    GUARANTEE(simulate(t->policy, &explained, request, &out, &errors) && json_object_size(out) == 10);
    GUARANTEE(json_object_size(json_object_get(out, "explain")) == 5);
    json_object_del(out, "explain");
    differences = simulate_differences(bare, out);
    GUARANTEE(json_is_true(json_object_get(differences, "same")));
    json_decref(differences);
    json_decref(out);
    errlist_release(&errors);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct tested_policy *t = tested_policy();
    const struct simulate_options bare = {0};
    json_t *request = NULL, *out = NULL;
    struct errlist errors;
    struct err e;

    err_clear(&e);
    if (!jx_parse((struct str){(const char *) data, size}, JX_DOCUMENT_MAX_BYTES, &request, &e))
        return 0;
    GUARANTEE(errlist_init(&errors, 0));
    bool ok = simulate(t->policy, &bare, request, &out, &errors);
    GUARANTEE(ok == (errors.n == 0) && ok == (out != NULL));
    if (ok) {
        check_answer(out, request);
        check_response(t->policy, out, request);
        check_explained(t, request, out);
    }
    json_decref(out);
    json_decref(request);
    errlist_release(&errors);
    return 0;
}
