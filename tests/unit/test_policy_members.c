/* The members of the document: each has rows that prove how it is read, and what it becomes. */
#include <CUnit/CUnit.h>

#include "common/policy/members.h"
#include "tests/unit/cases.h"
#include "tests/unit/policy_cases.h"

/* Where an object stands in a document, as a pointer with "*" for any one segment. NULL: rows of its own prove it. */
static const char *place_of(enum policy_object o)
{
    switch (o) {
    case OBJECT_CONFIG:
        return "";
    case OBJECT_KILL_SWITCH:
        return "/kill_switch";
    case OBJECT_GLOBAL:
        return "/global";
    case OBJECT_GLOBAL_RATE_LIMIT:
        return "/global/rate_limit";
    case OBJECT_BACKSTOP:
        return "/global/backstop";
    case OBJECT_DEFAULTS:
        return "/global/defaults";
    case OBJECT_RESPONSE:
        return "/global/responses/*";
    case OBJECT_CORS_POLICY:
        return "/global/cors_policies/*";
    case OBJECT_LOCALE:
        return "/global/locale";
    case OBJECT_GLOBAL_REQUEST_HEADERS:
        return "/global/request_headers";
    case OBJECT_FORWARD:
        return "/global/request_headers/forward";
    case OBJECT_AUTH:
        return "/auth";
    case OBJECT_ISSUER:
        return "/auth/issuers/*";
    case OBJECT_CONFIG_RULE:
        return "/config_rules/*";
    case OBJECT_SETTINGS:
        return "/config_rules/*/settings";
    case OBJECT_AUTH_SETTING:
        return "/config_rules/*/settings/auth";
    case OBJECT_ENVELOPE:
        return "";
    case OBJECT_KEYS:
        return "/keys/*";
    case OBJECT_VERIFIED_BOTS:
        return "/verified_bots/*";
    case OBJECT_RATE_RULE:
    case OBJECT_HEADER_RULE:
    case OBJECT_OP:
    case OBJECT_TESTED:
    case OBJECT_TEST:
    case OBJECT_TEST_REQUEST:
    case OBJECT_TEST_CERT:
    case OBJECT_TEST_EXPECT:
    case OBJECT_N:
        break;
    }
    return NULL;
}

/* Takes the next segment off a pointer that begins with '/'. */
static struct str segment(struct str *pointer)
{
    struct str rest = str_sub(*pointer, 1, pointer->len);
    size_t len = str_find_byte(rest, '/') == SIZE_MAX ? rest.len : str_find_byte(rest, '/');

    *pointer = str_sub(rest, len, rest.len);
    return str_sub(rest, 0, len);
}

/* Whether pointer is the member name at place, or below it. */
static bool is_at(struct str pointer, struct str place, const char *name)
{
    while (place.len > 0) {
        if (pointer.len == 0)
            return false;
        struct str want = segment(&place), have = segment(&pointer);
        if (!str_eq(want, STR("*")) && !str_eq(want, have))
            return false;
    }
    return pointer.len > 0 && str_eq(segment(&pointer), str_of(name));
}

static bool has_fault_row(const json_t *rows, const char *place, const char *name)
{
    const json_t *row, *fault;
    size_t i, k;

    json_array_foreach(rows, i, row) json_array_foreach(json_object_get(row, "errors"), k, fault)
    {
        if (is_at(case_str(fault, "path"), str_of(place), name) && !str_eq(case_str(fault, "code"), STR("unknown_member")))
            return true;
    }
    return false;
}

static bool has_member(const json_t *value, struct str place, const char *name)
{
    if (place.len == 0)
        return json_object_get(value, name) != NULL;
    struct str want = segment(&place);
    bool found = false;
    const char *key;
    json_t *child;
    size_t i;
    json_array_foreach(value, i, child) found = found || has_member(child, place, name);
    json_object_foreach((json_t *) (uintptr_t) value, key, child) if (str_eq(want, STR("*")) || str_eq(want, str_of(key)))
        found = found || has_member(child, place, name);
    return found;
}

static bool each_member(bool (*has)(const json_t *where, const char *place, const char *name), const json_t *where, enum policy_object o)
{
    bool all = true;

    for (const char *const *name = policy_members(o); *name; name++) {
        /* The row is made up for the report: an object and a member that nothing proves. */
        json_t *report = json_pack("{s:s, s:s}", "object", place_of(o), "member", *name);
        all = CASE_CHECK(report, has(where, place_of(o), *name)) && all;
        json_decref(report);
    }
    return all;
}

static void every_member_has_a_fault_row(void)
{
    json_t *rows = cases_load("tests/cases/policy/member_faults.json"), *older = cases_load("tests/cases/policy/faults.json");

    CU_ASSERT_EQUAL_FATAL(json_array_extend(rows, older), 0);
    for (int o = 0; o < OBJECT_N; o++)
        if (place_of((enum policy_object) o))
            CU_ASSERT(each_member(has_fault_row, rows, (enum policy_object) o));
    json_decref(older);
    json_decref(rows);
}

static bool has_valid_row(const json_t *documents, const char *place, const char *name)
{
    const json_t *document;
    size_t i;

    json_array_foreach(documents, i, document) if (has_member(document, str_of(place), name)) return true;
    return false;
}

/* The three documents compile, as rows of their own prove. */
static void every_member_has_a_valid_row(void)
{
    static const char *const bases[] = {"complete", "snapshot", "full"};
    json_t *documents = json_array();

    for (size_t i = 0; i < sizeof bases / sizeof bases[0]; i++) {
        json_t *row = json_pack("{s:s}", "base", bases[i]);
        json_array_append_new(documents, policy_case_document(row));
        json_decref(row);
    }
    for (int o = 0; o < OBJECT_N; o++)
        if (place_of((enum policy_object) o))
            CU_ASSERT(each_member(has_valid_row, documents, (enum policy_object) o));
    json_decref(documents);
}

/* --- What members become --- */

static struct policy *complete;

static int set_up(void)
{
    struct errlist errors, warnings;

    if (!errlist_init(&errors, 0) || !errlist_init(&warnings, 0))
        return 1;
    bool ok = policy_load("tests/cases/policy/complete.json", &policy_options_any, &complete, &errors, &warnings);
    errlist_release(&errors);
    errlist_release(&warnings);
    return ok ? 0 : 1;
}

static int tear_down(void)
{
    policy_free(&complete);
    return 0;
}

static bool is_list(const struct str_list *list, const char *joined)
{
    char storage[256];
    struct buf b;

    buf_init(&b, storage, sizeof storage);
    for (size_t i = 0; i < list->n; i++) {
        buf_put(&b, list->items[i]);
        buf_put_byte(&b, ' ');
    }
    return str_eq(buf_str(&b), str_of(joined));
}

static void global(void)
{
    CU_ASSERT_EQUAL(complete->charge, CHARGE_INDEPENDENT);
    CU_ASSERT(complete->backstop.params.limit == 200 && complete->backstop.params.burst == 400 && complete->backstop.params.period_ms == 1000);
    CU_ASSERT_EQUAL(complete->backstop.max_entries, 50000);
    CU_ASSERT(complete->limits.body_limit == 2048 && complete->limits.upstream_timeout_ms == 5000 && complete->limits.body_read_timeout_ms == 7000);
    CU_ASSERT(!complete->locale.enabled && is_list(&complete->locale.supported, "en de-CH zh-Hant-TW "));
    CU_ASSERT(str_eq(complete->locale.fallback, STR("de-CH")));
    CU_ASSERT(complete->forward.mode == FORWARD_DENYLIST && is_list(&complete->forward.names, "x-admin x-debug "));
}

static void cors(void)
{
    CU_ASSERT_EQUAL_FATAL(complete->n_cors_policies, 2);
    const struct cors_policy *web = &complete->cors_policies[0], *open = &complete->cors_policies[1];
    CU_ASSERT(str_eq(web->name, STR("web")) && !web->any_origin && web->credentials);
    CU_ASSERT(is_list(&web->origins, "https://a.example http://localhost:3000 https://[2001:db8::1]:8443 app://localhost "));
    CU_ASSERT(is_list(&web->methods, "PUT DELETE ") && is_list(&web->request_headers, "x-api-key content-type ") && is_list(&web->exposed_headers, "x-request-id "));
    CU_ASSERT(open->any_origin && !open->credentials && is_list(&open->methods, "* "));
    CU_ASSERT(str_eq(web->allow_methods, STR("PUT, DELETE")) && str_eq(web->allow_headers, STR("x-api-key, content-type")) && str_eq(web->max_age, STR("600")));
    CU_ASSERT(str_eq(web->expose_headers, STR("x-request-id")) && str_eq(open->allow_headers, STR("*")) && str_eq(open->max_age, STR("0")));
}

static void auth(void)
{
    CU_ASSERT_EQUAL_FATAL(complete->n_issuers, 2);
    const struct issuer *corp = &complete->issuers[0], *local = &complete->issuers[1];
    CU_ASSERT(str_eq(corp->id, STR("corp")) && str_eq(corp->issuer, STR("https://i.example/")) && corp->algorithm == JWS_RS256);
    CU_ASSERT(is_list(&corp->audiences, "api web ") && str_eq(corp->jwks_url, STR("https://i.example/.well-known/jwks.json?v=1")) && corp->jwks_file.len == 0);
    CU_ASSERT(local->algorithm == JWS_EDDSA && local->jwks_url.len == 0 && str_eq(local->jwks_file, STR("/etc/edge/keys.json")));
    CU_ASSERT_EQUAL(complete->default_accepted, 1);
}

static void rules(void)
{
    CU_ASSERT_EQUAL_FATAL(complete->n_config_rules, 3);
    const struct config_rule *everyone = &complete->config_rules[0], *orders = &complete->config_rules[1], *open = &complete->config_rules[2];
    CU_ASSERT(everyone->auth == AUTH_OPTIONAL && !everyone->has_accepted && everyone->cors == &complete->cors_policies[0] && everyone->locale == TOGGLE_ON);
    CU_ASSERT(everyone->has_body_limit && everyone->body_limit == 1024 && everyone->upstream_timeout_ms == 3000 && everyone->ratelimit_headers == TOGGLE_ON);
    CU_ASSERT(orders->auth == AUTH_REQUIRED && orders->has_accepted && orders->accepted == 3 && orders->has_cors && !orders->cors);
    CU_ASSERT(orders->locale == TOGGLE_OFF && orders->has_body_limit && orders->body_limit == 0 && orders->upstream_timeout_ms == 0);
    CU_ASSERT(open->auth == AUTH_NONE && open->has_cors && open->cors == &complete->cors_policies[1] && !open->has_body_limit && open->locale == TOGGLE_UNSET);
}

static void absent(void)
{
    json_t *row = json_pack("{s:s}", "base", "minimal");
    struct policy *p = policy_case_compile(row);

    CU_ASSERT(p->limits.body_limit == 1048576 && p->limits.upstream_timeout_ms == 30000 && p->limits.body_read_timeout_ms == 30000);
    CU_ASSERT(p->backstop.params.limit == 0 && p->forward.mode == FORWARD_ALL && p->locale.supported.n == 0 && !p->locale.enabled);
    CU_ASSERT(p->n_issuers == 0 && p->default_accepted == 0 && p->n_cors_policies == 0 && p->charge == CHARGE_INDEPENDENT);
    policy_free(&p);
    json_decref(row);
}

void test_policy_members_register(void)
{
    CU_pSuite s = CU_add_suite("policy_members", set_up, tear_down);
    CU_add_test(s, "every member of the language has a row in which it is wrong", every_member_has_a_fault_row);
    CU_add_test(s, "every member of the language has a document in which it is right", every_member_has_a_valid_row);
    CU_add_test(s, "what holds for all requests is in the policy as the document said", global);
    CU_add_test(s, "CORS policies are in the policy as the document said, header names in lower case", cors);
    CU_add_test(s, "issuers are in the policy as the document said", auth);
    CU_add_test(s, "settings of rules are in the policy as the document said, and apart from those that are not set", rules);
    CU_add_test(s, "what a document leaves out has the default of the table", absent);
}
