/* CORS policies of a document. */
#include "common/policy/compile_priv.h"
#include "common/policy/shapes_priv.h"

enum { POLICIES_MAX = 100, ENTRIES_MAX = 100, MAX_AGE_MAX_MS = 24 * 60 * 60 * 1000 };

static bool is_any(struct str s)
{
    return str_eq(s, STR("*"));
}

static bool read_origin(struct compile *c, const struct jx *j, struct str *text)
{
    (void) c;
    const char *fault = is_any(*text) ? NULL : shape_origin_fault(*text);

    if (fault)
        jx_fault(j, ERR_BAD_VALUE, "\"%.*s\" is no origin: %s", STR_ARG(str_cut_utf8(*text, 64)), fault);
    return !fault;
}

static bool read_method(struct compile *c, const struct jx *j, struct str *text)
{
    bool ok = str_is_token(*text);

    (void) c;
    for (size_t i = 0; ok && i < text->len; i++)
        ok = text->p[i] < 'a' || text->p[i] > 'z';
    if (!ok)
        jx_fault(j, ERR_BAD_VALUE, "\"%.*s\" is no method: write it in upper case, as in \"PUT\"", STR_ARG(str_cut_utf8(*text, 64)));
    return ok;
}

static const struct list_rules origin_rules = {.min = 1, .max = ENTRIES_MAX, .what = "origin", .read = read_origin};
static const struct list_rules method_rules = {.max = ENTRIES_MAX, .what = "method", .read = read_method};
static const struct list_rules header_rules = {.max = ENTRIES_MAX, .what = "header name", .read = compile_read_header_name};

static bool has_any(const struct str_list *list)
{
    for (size_t i = 0; i < list->n; i++)
        if (is_any(list->items[i]))
            return true;
    return false;
}

/* "*" stands for all, so it stands alone, and never with credentials. */
static void check_any(const struct jx *list, const struct str_list *items, bool credentials)
{
    if (!has_any(items))
        return;
    if (items->n > 1)
        jx_fault(list, ERR_CONFLICT, "\"*\" stands for all: remove it, or the other entries");
    if (credentials)
        jx_fault(list, ERR_CONFLICT, "\"*\" is not allowed together with credentials: list each, or set credentials to false");
}

static void read_max_age(const struct jx *j, struct cors_policy *out)
{
    uint64_t ms;

    if (!jx_duration_ms(j, 0, MAX_AGE_MAX_MS, &ms))
        return;
    if (ms % 1000 != 0)
        jx_fault(j, ERR_BAD_VALUE, "must be whole seconds: browsers are told nothing finer");
    out->has_max_age = true;
    out->max_age_s = (uint32_t) (ms / 1000);
}

static void compile_cors_policy(struct compile *c, const struct jx *j, struct cors_policy *out)
{
    if (compile_check_name(j, out->name) && str_eq(out->name, STR("none")))
        jx_fault(j, ERR_RESERVED, "\"none\" is what a rule writes to take the CORS policy away: use another name");
    if (!jx_is_object(j))
        return;
    compile_members(c, j, OBJECT_CORS_POLICY);
    struct jx origins = jx_member(j, "origins"), methods = jx_member(j, "methods"), request_headers = jx_member(j, "request_headers"),
              exposed_headers = jx_member(j, "exposed_headers"), credentials = jx_member(j, "credentials"), max_age = jx_member(j, "max_age");
    jx_bool(&credentials, &out->credentials);
    compile_need_list(c, &origins, &origin_rules, &out->origins);
    check_any(&origins, &out->origins, out->credentials);
    compile_list(c, &methods, &method_rules, &out->methods);
    check_any(&methods, &out->methods, out->credentials);
    compile_list(c, &request_headers, &header_rules, &out->request_headers);
    check_any(&request_headers, &out->request_headers, out->credentials);
    compile_list(c, &exposed_headers, &header_rules, &out->exposed_headers);
    check_any(&exposed_headers, &out->exposed_headers, out->credentials);
    read_max_age(&max_age, out);
    out->any_origin = has_any(&out->origins);
}

void compile_cors_policies(struct compile *c, const struct jx *policies)
{
    void *iter = NULL, *existing;
    struct jx member;
    size_t n_all = json_object_size(policies->value), n = 0;

    if (!jx_is_object(policies))
        return;
    if (n_all > POLICIES_MAX) {
        jx_fault(policies, ERR_LIMIT_EXCEEDED, "%zu CORS policies; at most %d are allowed", n_all, POLICIES_MAX);
        return;
    }
    struct cors_policy *all = ARENA_NEW_N(&c->policy->arena, n_all, struct cors_policy);
    if (!all) {
        compile_no_memory(policies);
        return;
    }
    while (compile_next_member(policies, &iter, &member)) {
        struct cors_policy *policy = &all[n++];
        if (!arena_copy_str(&c->policy->arena, member.key, &policy->name) || !map_add(&c->cors_policies, policy->name, policy, &existing)) {
            compile_no_memory(&member);
            return;
        }
        compile_cors_policy(c, &member, policy);
    }
    c->policy->cors_policies = all;
    c->policy->n_cors_policies = n;
}

void compile_cors_choice(struct compile *c, const struct jx *j, struct config_rule *out)
{
    struct str name;

    if (!jx_str(j, &name))
        return;
    out->has_cors = true;
    if (str_eq(name, STR("none")))
        return;
    out->cors = map_get(&c->cors_policies, name);
    if (!out->cors)
        jx_fault(j, ERR_UNKNOWN_REFERENCE, "global.cors_policies has no policy \"%.*s\"", STR_ARG(str_cut_utf8(name, 64)));
    else
        compile_unsupported(c, j, "CORS policies");
}
