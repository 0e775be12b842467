/* CORS policies of a document. */
#include "common/policy/compile_priv.h"
#include "common/policy/limits_priv.h"
#include "common/policy/shapes_priv.h"
#include "common/policy/wire_max_priv.h"

enum { POLICIES_MAX = 100, MAX_AGE_MAX_MS = 24 * 60 * 60 * 1000, SECONDS_TEXT_MAX = 8 };
enum { CHALLENGE_MAX = 256 }; /* WWW-Authenticate */
_Static_assert(LIMIT_HEADERS_MAX + CORS_RESPONSE_MAX + CHALLENGE_MAX <= RESPONSE_ROOM_BYTES, "all that is added to an upstream's response finds room on it");
_Static_assert((int) CORS_PREFLIGHT_MAX <= (int) WIRE_VAR_RES_ADD_MAX && (int) RESPONSE_ROOM_BYTES <= (int) WIRE_VAR_RES_ADD_MAX, "all that is added to any response can be sent");
_Static_assert((int) CORS_ORIGIN_MAX <= (int) WIRE_VAR_ALLOW_ORIGIN_MAX && (int) CORS_EXPOSED_MAX <= (int) WIRE_VAR_EXPOSE_HEADERS_MAX, "what has a variable of its own fits it");

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

static const struct list_rules origin_rules = {.min = 1, .max = CORS_NAMES_MAX, .what = "origin", .read = read_origin};
static const struct list_rules method_rules = {.max = CORS_NAMES_MAX, .what = "method", .read = read_method};
static const struct list_rules header_rules = {.max = CORS_NAMES_MAX, .what = "header name", .read = compile_read_header_name};

static bool has_any(const struct str_list *list)
{
    for (size_t i = 0; i < list->n; i++)
        if (is_any(list->items[i]))
            return true;
    return false;
}

static void check_no_credentials(const struct jx *list, const struct str_list *items, bool credentials)
{
    if (credentials && has_any(items))
        jx_fault(list, ERR_CONFLICT, "\"*\" is not allowed together with credentials: list each, or set credentials to false");
}

/* "*" stands for all, so it stands alone, and never with credentials. */
static void check_any(const struct jx *list, const struct str_list *items, bool credentials)
{
    if (has_any(items) && items->n > 1)
        jx_fault(list, ERR_CONFLICT, "\"*\" stands for all: remove it, or the other entries");
    check_no_credentials(list, items, credentials);
}

/* Of request headers "*" stands for all but one (Fetch, "CORS non-wildcard request-header name"). */
static void check_any_request_header(const struct jx *list, const struct str_list *items, bool credentials)
{
    bool others = false;

    for (size_t i = 0; i < items->n; i++)
        others = others || !(is_any(items->items[i]) || str_eq(items->items[i], STR("authorization")));
    if (has_any(items) && others)
        jx_fault(list, ERR_CONFLICT,
                 "\"*\" stands for all request headers but authorization: remove it, or every other entry; [\"*\", \"authorization\"] is really all");
    check_no_credentials(list, items, credentials);
}

/* What a response says of the list; nothing when it is empty. */
static void join(struct compile *c, const struct jx *list, const struct str_list *items, size_t max, struct str *out)
{
    static const struct str between = {", ", 2};
    size_t len = 0;
    struct buf b;

    if (items->n == 0)
        return;
    for (size_t i = 0; i < items->n; i++)
        len += (i > 0 ? between.len : 0) + items->items[i].len;
    if (len > max) {
        jx_fault(list, ERR_LIMIT_EXCEEDED, "%zu bytes as one header, the names joined by \", \"; at most %zu are allowed: list fewer, or shorter ones", len,
                 max);
        return;
    }
    if (!arena_take_buf(&c->policy->arena, len, &b)) {
        compile_no_memory(list);
        return;
    }
    for (size_t i = 0; i < items->n; i++) {
        if (i > 0)
            buf_put(&b, between);
        buf_put(&b, items->items[i]);
    }
    *out = buf_str(&b);
}

static void read_max_age(struct compile *c, const struct jx *j, struct cors_policy *out)
{
    uint64_t ms;
    struct buf text;

    if (!jx_duration_ms(j, 0, MAX_AGE_MAX_MS, &ms))
        return;
    if (ms % 1000 != 0)
        jx_fault(j, ERR_BAD_VALUE, "must be whole seconds: browsers are told nothing finer");
    if (!arena_take_buf(&c->policy->arena, SECONDS_TEXT_MAX, &text)) {
        compile_no_memory(j);
        return;
    }
    buf_put_u64(&text, ms / 1000);
    out->max_age = buf_str(&text);
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
    join(c, &methods, &out->methods, CORS_JOINED_MAX, &out->allow_methods);
    compile_list(c, &request_headers, &header_rules, &out->request_headers);
    check_any_request_header(&request_headers, &out->request_headers, out->credentials);
    join(c, &request_headers, &out->request_headers, CORS_JOINED_MAX, &out->allow_headers);
    compile_list(c, &exposed_headers, &header_rules, &out->exposed_headers);
    check_any(&exposed_headers, &out->exposed_headers, out->credentials);
    join(c, &exposed_headers, &out->exposed_headers, CORS_EXPOSED_MAX, &out->expose_headers);
    read_max_age(c, &max_age, out);
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
}
