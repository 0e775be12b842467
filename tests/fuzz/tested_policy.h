/* The policy that the targets of simulate and config tests ask: something of every phase. */
#ifndef TESTS_FUZZ_TESTED_POLICY_H
#define TESTS_FUZZ_TESTED_POLICY_H

#include <jansson.h>

#include "common/policy/policy.h"
#include "tests/fuzz/guarantee.h"

struct tested_policy {
    struct policy *policy;
    json_t *document;
};

/* Written in JSON with ' for ". */
static const char tested_document[] =
    "{'schema':6,'version':1,'global':{'defaults':{'responses':{'bad_request':'400','unauthorized':'401','forbidden':'403','payload_too_large':'413',"
    "'rate_limited':'429','bad_gateway':'502','unavailable':'503','overloaded':'503','gateway_timeout':'504'}},'responses':{"
    "'400':{'status':400,'content_type':'text/plain','body':''},'401':{'status':401,'content_type':'text/plain','body':''},"
    "'403':{'status':403,'content_type':'text/plain','body':''},'413':{'status':413,'content_type':'text/plain','body':''},"
    "'429':{'status':429,'content_type':'text/plain','body':''},'502':{'status':502,'content_type':'text/plain','body':''},"
    "'503':{'status':503,'content_type':'text/plain','body':''},'504':{'status':504,'content_type':'text/plain','body':''}},"
    "'locale':{'enabled':true,'supported':['en','de-CH'],'default':'en'},"
    "'cors_policies':{'web':{'origins':['https://a.example','https://b.example'],'methods':['PUT'],'request_headers':['x-a'],'exposed_headers':['x-e'],"
    "'credentials':true,'max_age':'1m'}}},"
    "'auth':{'issuers':[{'id':'corp','issuer':'i','audiences':['a'],'jwks_url':'https://i.example/j','algorithm':'RS256'},"
    "{'id':'other','issuer':'o','audiences':['a'],'jwks_url':'https://o.example/j','algorithm':'ES256'}],'default_accepted':['corp']},"
    "'config_rules':[{'id':'b','expression':'starts_with(http.request.uri.path, \\'/admin\\')','settings':{'block':'block'}},"
    "{'id':'off','enabled':false,'expression':'true','settings':{'block':'block'}},"
    "{'id':'c','expression':'http.host eq \\'a\\' or ssl eq true or client.signals eq \\'no_accept\\'','settings':{'cors_policy':'web','auth':{'mode':'optional'}}},"
    "{'id':'r','expression':'http.request.uri.args[\\'auth\\'] eq \\'1\\' and not ip.src.country in {\\'DE\\' \\'FR\\'}','settings':{'auth':{'mode':'required'}}}],"
    "'rate_limit_rules':[{'id':'l','expression':'http.request.method eq \\'POST\\'','algorithm':'token_bucket','limit':1,'period':'1s','key':['ip'],"
    "'on_missing_key':'reject'},{'id':'k','expression':'http.request.jwt.claims[\\'t\\'] eq \\'1\\'','algorithm':'token_bucket','limit':1,'period':'1s',"
    "'key':['ip'],'on_missing_key':'skip'}],"
    "'request_header_rules':[{'id':'h','expression':'true','ops':[{'op':'set','name':'x-tenant','value':'shop'}]},"
    "{'id':'j','expression':'tls.client.ja4 ne \\'\\' or http.request.jwt.claims[\\'t\\'] eq \\'1\\'','ops':[{'op':'set','name':'x-t','value':'1'}]}]}";

/* Compiled once. */
static inline const struct tested_policy *tested_policy(void)
{
    static struct tested_policy t;
    static char text[sizeof tested_document];
    struct errlist errors, warnings;
    struct err e;

    if (t.policy)
        return &t;
    for (size_t i = 0; i < sizeof tested_document; i++)
        text[i] = tested_document[i] == '\'' ? '"' : tested_document[i];
    err_clear(&e);
    GUARANTEE(errlist_init(&errors, 0) && errlist_init(&warnings, 0));
    GUARANTEE(jx_parse((struct str){text, sizeof tested_document - 1}, JX_DOCUMENT_MAX_BYTES, &t.document, &e));
    GUARANTEE(policy_compile(t.document, &policy_options_any, &t.policy, &errors, &warnings));
    errlist_release(&errors);
    errlist_release(&warnings);
    return &t;
}

#endif
