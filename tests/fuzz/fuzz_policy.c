/* Any bytes as a policy document: it compiles or it has faults, and what compiles decides about every request. */
#include <jansson.h>

#include "common/policy/identify.h"
#include "common/policy/simulate.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/guarantee.h"

static const struct {
    struct str method, url, host, ip;
} requests[] = {
    {{"GET", 3}, {"/", 1}, {"shop.example", 12}, {"192.0.2.1", 9}},
    {{"POST", 4}, {"/v1/login?a=1&%zz", 17}, {"A.Example:8080", 14}, {"10.1.2.3", 8}},
    {{"DELETE", 6}, {"http://h/admin//x|;y", 20}, {"", 0}, {"2001:db8::1", 11}},
};

static void tell_limits(const struct policy *p, const struct limit_choice *limits, struct arena *a)
{
    struct limit_report reports[POLICY_SITE_WIDE_MAX + POLICY_LIMITED_RULES_MAX] = {0};
    struct response_edit edit = {0};

    for (size_t i = 0; i < limits->n; i++)
        reports[i].rule = &p->rate_rules[limits->index[i]];
    GUARANTEE(policy_limit_headers(reports, limits->n, a, &edit) && edit.n_deleted == (limits->n > 0 ? 2 : 0) && edit.n_added == edit.n_deleted);
    for (size_t i = 0; i < edit.n_added; i++)
        GUARANTEE(header_value_ok(edit.added[i].value));
}

static void check_subjects(const struct policy *p, const struct request_view *view)
{
    char storage[RATE_SUBJECT_MAX];
    struct buf b;

    for (size_t i = 0; i < p->n_rate_rules; i++) {
        buf_init(&b, storage, sizeof storage);
        policy_limit_subject(&p->rate_rules[i], view, &b);
        GUARANTEE(!b.full && b.len > 1 && (b.p[0] == RATE_DOMAIN_KEY || b.p[0] == RATE_DOMAIN_FALLBACK_IP));
        buf_init(&b, storage, sizeof storage);
        policy_limit_display(&p->rate_rules[i], view, &b);
        GUARANTEE(!b.full && b.len > 0 && b.len <= LIMIT_DISPLAY_MAX && str_is_utf8(buf_str(&b)));
    }
}

static void decide_all(const struct policy *p, struct request_view *view, struct arena *a)
{
    struct settings settings;
    struct rule_hits hits;
    struct limit_choice limits;
    struct count_choice counts;
    struct header_edit edit;
    struct headers added;

    GUARANTEE(p->max_inflight <= 1000000);
    GUARANTEE(policy_config(p, view, a, &settings, &hits) && hits.n <= p->n_config_rules);
    for (int k = 0; k < KIND_N; k++)
        GUARANTEE(settings.responses[k] && settings.responses[k]->status == kind_status((enum kind) k));
    GUARANTEE(settings.auth != AUTH_UNSET && settings.block != BLOCK_UNSET && (settings.auth != AUTH_NONE) == (settings.accepted != 0));
    GUARANTEE((uint64_t) settings.accepted >> p->n_issuers == 0);
    GUARANTEE(!settings.cors || (settings.cors >= p->cors_policies && settings.cors < p->cors_policies + p->n_cors_policies));
    GUARANTEE(!settings.locale || p->locale.supported.n > 0);
    GUARANTEE(settings.upstream_timeout_ms > 0 && settings.body_read_timeout_ms > 0);
    GUARANTEE(policy_select_limits(p, view, a, 0, &limits) && limits.n <= POLICY_SITE_WIDE_MAX + POLICY_LIMITED_RULES_MAX);
    tell_limits(p, &limits, a);
    GUARANTEE(policy_select_counts(p, view, a, 1, &counts) && counts.n <= POLICY_COUNTING_RULES_MAX && (counts.n == 0 || p->counts_answers));
    check_subjects(p, view);
    if (!policy_headers(p, view, a, &edit, &hits))
        return; /* more than the lists hold */
    GUARANTEE(hits.n <= p->n_header_rules);
    GUARANTEE((edit.add.len > 0) == (edit.del.len > 0));
    if (edit.add.len > 0) {
        GUARANTEE(headers_decode(edit.add, a, &added));
        for (size_t i = 0; i < added.n; i++)
            GUARANTEE(header_name_ok(added.items[i].name) && !header_name_reserved(added.items[i].name) && header_value_ok(added.items[i].value));
    }
}

static bool is_listed(const struct str_list *list, struct str s)
{
    for (size_t i = 0; i < list->n; i++)
        if (str_eq(list->items[i], s))
            return true;
    return false;
}

static void check_parts(const struct policy *p)
{
    GUARANTEE(p->needs_schema >= POLICY_SCHEMA_MIN && p->needs_schema <= POLICY_SCHEMA_MAX);
    GUARANTEE(p->n_issuers <= POLICY_ISSUERS_MAX && (uint64_t) p->default_accepted >> p->n_issuers == 0);
    for (size_t i = 0; i < p->n_issuers; i++)
        GUARANTEE(p->issuers[i].audiences.n > 0 && (p->issuers[i].jwks_url.len > 0) != (p->issuers[i].jwks_file.len > 0));
    for (size_t i = 0; i < p->n_cors_policies; i++) {
        const struct cors_policy *cors = &p->cors_policies[i];
        GUARANTEE(cors->origins.n > 0 && cors->any_origin == is_listed(&cors->origins, STR("*")) && !(cors->any_origin && cors->credentials));
    }
    GUARANTEE(p->locale.supported.n == 0 || is_listed(&p->locale.supported, p->locale.fallback));
    GUARANTEE((p->forward.mode == FORWARD_ALL) == (p->forward.names.n == 0));
    GUARANTEE(p->backstop.params.limit == 0 || p->backstop.params.burst >= 1);
}

/* What may be served is valid, and nothing in it goes unenforced. */
static void compile_to_serve(const json_t *document, bool valid)
{
    struct policy_options options = policy_options_any;
    struct policy *p = NULL;
    struct errlist errors, warnings;

    options.to_serve = true;
    GUARANTEE(errlist_init(&errors, 0) && errlist_init(&warnings, 0));
    bool ok = policy_compile(document, &options, &p, &errors, &warnings);
    GUARANTEE(ok == (errors.n == 0) && ok == (p != NULL) && (valid || !ok));
    for (size_t i = 0; i < warnings.n; i++)
        GUARANTEE(warnings.items[i].code != ERR_WARN_UNSUPPORTED);
    policy_free(&p);
    errlist_release(&errors);
    errlist_release(&warnings);
}

static void ask(const struct policy *p, size_t n, bool with_address)
{
    struct header items[] = {{STR("host"), requests[n].host},
                             {STR("x-tenant"), STR("evil")},
                             {STR("x-tenant"), STR("worse")},
                             {STR("user-agent"), STR(" a\r\nx-edge-auth-sub: b\0\x7f\xff\t")},
                             {STR("cookie"), STR("s=1; t=\x01")}};
    struct headers h = {.items = items, .n = sizeof items / sizeof items[0]};
    struct identify_input in = {.method = requests[n].method, .url = requests[n].url, .headers = &h, .has_src = true};
    struct arena a;
    struct identity id;

    arena_init(&a, 16 * 1024, 0);
    GUARANTEE(addr_parse(requests[n].ip, &in.src));
    identify(&in, &a, &id);
    struct request_view view = {.facts = id.facts, .headers = &h};
    view.facts.has_ip = with_address;
    view.facts.headers = &h;
    decide_all(p, &view, &a);
    arena_release(&a);
}

static void simulate_one(const struct policy *p)
{
    json_t *request = json_pack("{s:s, s:s, s:s, s:s}", "method", "GET", "host", "shop.example", "path", "/admin", "ip", "192.0.2.1"), *out = NULL;
    const struct simulate_options options = {0};
    struct errlist errors;

    GUARANTEE(request && errlist_init(&errors, 0));
    GUARANTEE(simulate(p, &options, request, &out, &errors) && errors.n == 0 && json_object_size(out) == 9);
    json_decref(out);
    json_decref(request);
    errlist_release(&errors);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    json_t *document = NULL;
    struct policy *p = NULL;
    struct errlist errors, warnings;
    struct err e;

    err_clear(&e);
    if (!jx_parse((struct str){(const char *) data, size}, JX_DOCUMENT_MAX_BYTES, &document, &e))
        return 0;
    GUARANTEE(errlist_init(&errors, 0) && errlist_init(&warnings, 0));
    bool ok = policy_compile(document, &policy_options_any, &p, &errors, &warnings);
    compile_to_serve(document, ok);
    json_decref(document); /* the policy must not need it any more */
    GUARANTEE(ok == (errors.n == 0) && ok == (p != NULL));
    if (ok) {
        check_parts(p);
        for (size_t i = 0; i < sizeof requests / sizeof requests[0]; i++) {
            ask(p, i, true);
            ask(p, i, false);
        }
        simulate_one(p);
    }
    policy_free(&p);
    errlist_release(&errors);
    errlist_release(&warnings);
    return 0;
}
