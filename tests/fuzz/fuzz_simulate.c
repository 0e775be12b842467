/* Any bytes as a request to simulate: it has faults or it gets the whole answer. */
#include <jansson.h>

#include "common/policy/simulate.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/guarantee.h"

/* Written in JSON with ' for ". */
static const char document[] =
    "{'schema':6,'version':1,'global':{'defaults':{'responses':{'bad_request':'400','unauthorized':'401','forbidden':'403','payload_too_large':'413',"
    "'rate_limited':'429','bad_gateway':'502','unavailable':'503','overloaded':'503','gateway_timeout':'504'}},'responses':{"
    "'400':{'status':400,'content_type':'text/plain','body':''},'401':{'status':401,'content_type':'text/plain','body':''},"
    "'403':{'status':403,'content_type':'text/plain','body':''},'413':{'status':413,'content_type':'text/plain','body':''},"
    "'429':{'status':429,'content_type':'text/plain','body':''},'502':{'status':502,'content_type':'text/plain','body':''},"
    "'503':{'status':503,'content_type':'text/plain','body':''},'504':{'status':504,'content_type':'text/plain','body':''}}},"
    "'config_rules':[{'id':'b','expression':{'field':'http.request.uri.path','operator':'starts_with','value':'/admin'},'settings':{'block':'block'}}],"
    "'rate_limit_rules':[{'id':'l','expression':{'field':'http.request.method','operator':'eq','value':'POST'},'algorithm':'token_bucket','limit':1,"
    "'period':'1s','key':['ip'],'on_missing_key':'reject'}],"
    "'request_header_rules':[{'id':'h','expression':'true','ops':[{'op':'set','name':'x-tenant','value':'shop'}]}]}";

static const struct policy *policy(void)
{
    static struct policy *p;
    static char text[sizeof document];
    struct errlist errors, warnings;
    json_t *parsed = NULL;
    struct err e;

    if (p)
        return p;
    for (size_t i = 0; i < sizeof document; i++)
        text[i] = document[i] == '\'' ? '"' : document[i];
    err_clear(&e);
    GUARANTEE(errlist_init(&errors, 0) && errlist_init(&warnings, 0));
    GUARANTEE(jx_parse((struct str){text, sizeof document - 1}, JX_DOCUMENT_MAX_BYTES, &parsed, &e));
    GUARANTEE(policy_compile(parsed, &policy_options_any, &p, &errors, &warnings));
    json_decref(parsed);
    errlist_release(&errors);
    errlist_release(&warnings);
    return p;
}

static bool is_edge_header(const char *name)
{
    return strncmp(name, "x-edge-", 7) == 0 || strncmp(name, "x-forwarded-", 12) == 0 || strcmp(name, "forwarded") == 0 || strcmp(name, "x-request-id") == 0;
}

/* A client can't hand the upstream what only the edge may say. */
static void check_answer(const json_t *out)
{
    json_t *upstream = json_object_get(out, "upstream_headers"), *value;
    const char *name;
    bool forwarded = json_is_null(json_object_get(out, "rejected"));

    GUARANTEE(json_object_size(out) == 9);
    GUARANTEE((json_integer_value(json_object_get(out, "status")) == 0) == forwarded);
    GUARANTEE((json_object_size(json_object_get(out, "response_headers")) == 0) == forwarded);
    json_object_foreach(upstream, name, value) GUARANTEE(!is_edge_header(name) && (json_is_string(value) || json_array_size(value) > 1));
    if (forwarded)
        GUARANTEE(strcmp(json_string_value(json_object_get(upstream, "x-tenant")), "shop") == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    json_t *request = NULL, *out = NULL;
    struct errlist errors;
    struct err e;

    err_clear(&e);
    if (!jx_parse((struct str){(const char *) data, size}, JX_DOCUMENT_MAX_BYTES, &request, &e))
        return 0;
    GUARANTEE(errlist_init(&errors, 0));
    bool ok = simulate(policy(), request, &out, &errors);
    GUARANTEE(ok == (errors.n == 0) && ok == (out != NULL));
    if (ok)
        check_answer(out);
    json_decref(out);
    json_decref(request);
    errlist_release(&errors);
    return 0;
}
