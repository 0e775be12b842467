/* Any bytes as a request to simulate: it has faults or it gets the whole answer, explained or not. */
#include <jansson.h>

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

/* A client can't hand the upstream what only the edge may say. */
static void check_answer(const json_t *out, const json_t *request)
{
    json_t *upstream = json_object_get(out, "upstream_headers"), *value;
    const char *name;
    bool forwarded = json_is_null(json_object_get(out, "rejected"));
    bool has_cors = json_is_string(json_object_get(json_object_get(out, "settings"), "cors_policy"));

    GUARANTEE(json_object_size(out) == 9 && json_object_size(json_object_get(out, "settings")) == 10);
    GUARANTEE((json_integer_value(json_object_get(out, "status")) == 0) == forwarded);
    GUARANTEE(has_cors || (json_object_size(json_object_get(out, "response_headers")) == 0) == forwarded);
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
        check_explained(t, request, out);
    }
    json_decref(out);
    json_decref(request);
    errlist_release(&errors);
    return 0;
}
