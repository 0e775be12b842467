/* "global" of a document, but for what has a file of its own. */
#include "common/policy/compile_priv.h"

#include <stdlib.h>

#include "common/policy/forward_priv.h"
#include "common/policy/warnings_priv.h"

enum { INFLIGHT_MAX = 1000000, ENTRIES_MIN = 1000, ENTRIES_MAX = 10000000, ENTRIES_DEFAULT = 1000000, FORWARD_NAMES_MAX = 100 };
enum { BODY_LIMIT_DEFAULT = 1024 * 1024, TIMEOUT_DEFAULT_MS = 30 * 1000, TIMEOUT_MAX_MS = 60 * 60 * 1000 };

static const int64_t body_limit_max = (int64_t) 1 << 40;

bool compile_body_limit(const struct jx *j, uint64_t *out)
{
    int64_t bytes;

    if (!jx_int(j, 0, body_limit_max, &bytes))
        return false;
    *out = (uint64_t) bytes;
    return true;
}

static void check_timeout(struct compile *c, const struct jx *j, uint64_t ms)
{
    char path[ERR_PATH_MAX];

    if (ms >= c->options->connect_timeout_ms || !c->in_force)
        return;
    jx_path(j, path);
    errlist_add(c->warnings, ERR_TIMEOUT_TOO_SHORT, path, "%ju ms is less than the %ju ms that connecting to the upstream alone may take", (uintmax_t) ms,
                (uintmax_t) c->options->connect_timeout_ms);
}

bool compile_upstream_timeout(struct compile *c, const struct jx *j, uint64_t *out_ms)
{
    if (!jx_duration_ms(j, 1, TIMEOUT_MAX_MS, out_ms))
        return false;
    check_timeout(c, j, *out_ms);
    return true;
}

static void compile_defaults(struct compile *c, const struct jx *defaults)
{
    struct policy *p = c->policy;

    p->limits.body_limit = BODY_LIMIT_DEFAULT;
    p->limits.upstream_timeout_ms = p->limits.body_read_timeout_ms = TIMEOUT_DEFAULT_MS;
    if (!compile_need_object(defaults))
        return;
    compile_members(c, defaults, OBJECT_DEFAULTS);
    struct jx body_limit = jx_member(defaults, "body_limit"), upstream = jx_member(defaults, "upstream_timeout"),
              body_read = jx_member(defaults, "body_read_timeout"), responses = jx_member(defaults, "responses");
    compile_body_limit(&body_limit, &p->limits.body_limit);
    if (!upstream.value)
        check_timeout(c, &upstream, p->limits.upstream_timeout_ms);
    compile_upstream_timeout(c, &upstream, &p->limits.upstream_timeout_ms);
    jx_duration_ms(&body_read, 1, TIMEOUT_MAX_MS, &p->limits.body_read_timeout_ms);
    if (compile_need_object(&responses))
        compile_template_choice(c, &responses, p->defaults);
}

static void compile_charge(struct compile *c, const struct jx *rate_limit)
{
    static const char *const names[] = {"independent", "all_or_nothing", NULL};
    int i;

    if (!jx_is_object(rate_limit))
        return;
    compile_members(c, rate_limit, OBJECT_GLOBAL_RATE_LIMIT);
    struct jx charge = jx_member(rate_limit, "charge");
    if (!jx_enum(&charge, names, &i) || i == 0)
        return;
    c->policy->charge = CHARGE_ALL_OR_NOTHING;
    compile_unsupported(c, &charge, "charging all limits or none");
}

static void compile_backstop(struct compile *c, const struct jx *backstop)
{
    struct rate_params *p = &c->policy->backstop.params;
    int64_t limit = 0, burst = 0, entries = ENTRIES_DEFAULT;
    char path[ERR_PATH_MAX];
    struct err e;

    if (!jx_is_object(backstop))
        return;
    compile_members(c, backstop, OBJECT_BACKSTOP);
    struct jx limit_j = jx_member(backstop, "limit"), period = jx_member(backstop, "period"), burst_j = jx_member(backstop, "burst"),
              entries_j = jx_member(backstop, "max_entries");
    bool ok = jx_need_int(&limit_j, 1, RATE_LIMIT_MAX, &limit);
    ok = jx_need_duration_ms(&period, RATE_PERIOD_MIN_MS, RATE_PERIOD_MAX_MS, &p->period_ms) && ok;
    burst = limit;
    ok = (!burst_j.value || jx_int(&burst_j, 1, RATE_BURST_MAX, &burst)) && ok;
    jx_int(&entries_j, ENTRIES_MIN, ENTRIES_MAX, &entries);
    p->limit = (uint64_t) limit;
    p->burst = (uint64_t) burst;
    c->policy->backstop.max_entries = (uint64_t) entries;
    err_clear(&e);
    jx_path(&burst_j, path);
    if (ok && !rate_params_ok(p, path, &e))
        errlist_add_err(c->errors, &e);
}

static int by_bytes(const void *a, const void *b)
{
    return str_cmp(*(const struct str *) a, *(const struct str *) b);
}

/* What always passes can be allowed, which changes nothing, but not denied. */
static void check_denied(const struct jx *names, const struct str_list *list)
{
    for (size_t i = 0; i < list->n; i++) {
        if (!forward_always_keeps(list->items[i]))
            continue;
        struct jx item = jx_item(names, i);
        jx_fault(&item, ERR_RESERVED, "\"%.*s\" belongs to the edge or to the connection: no filter drops it", STR_ARG(list->items[i]));
    }
}

bool compile_forward(struct compile *c, const struct jx *filter, struct forward_filter *out)
{
    static const char *const mode_names[] = {"all", "allowlist", "denylist", NULL};
    static const struct list_rules rules = {.min = 1, .max = FORWARD_NAMES_MAX, .what = "header name", .read = compile_read_header_name};
    struct jx mode = jx_member(filter, "mode"), names = jx_member(filter, "names");
    int i = 0;

    if (!mode.value)
        jx_fault(&mode, ERR_MISSING, "is required: \"all\", \"allowlist\" or \"denylist\"");
    if (!jx_enum(&mode, mode_names, &i))
        return false;
    out->mode = i == 0 ? FORWARD_ALL : i == 1 ? FORWARD_ALLOWLIST : FORWARD_DENYLIST;
    if (out->mode == FORWARD_ALL) {
        if (jx_array_len(&names) > 0)
            jx_fault(&names, ERR_CONFLICT, "mode \"all\" takes no names: remove them, or use \"allowlist\" or \"denylist\"");
        return !names.value || (json_is_array(names.value) && json_array_size(names.value) == 0);
    }
    if (!compile_need_list(c, &names, &rules, &out->names))
        return false;
    if (out->mode == FORWARD_DENYLIST)
        check_denied(&names, &out->names);
    struct str *sorted = ARENA_NEW_N(&c->policy->arena, out->names.n, struct str);
    if (!sorted) {
        compile_no_memory(filter);
        return false;
    }
    memcpy(sorted, out->names.items, out->names.n * sizeof *sorted);
    qsort(sorted, out->names.n, sizeof *sorted, by_bytes);
    out->names.items = sorted;
    return true;
}

static void compile_request_headers(struct compile *c, const struct jx *request_headers)
{
    struct jx forward = jx_member(request_headers, "forward");

    if (!jx_is_object(request_headers))
        return;
    compile_members(c, request_headers, OBJECT_GLOBAL_REQUEST_HEADERS);
    if (!jx_is_object(&forward))
        return;
    compile_members(c, &forward, OBJECT_FORWARD);
    if (compile_forward(c, &forward, &c->policy->forward))
        compile_forward_warning(c, &forward, &c->policy->forward);
}

void compile_global(struct compile *c, const struct jx *global)
{
    int64_t n_inflight = 0;

    if (!compile_need_object(global))
        return;
    compile_members(c, global, OBJECT_GLOBAL);
    struct jx max_inflight = jx_member(global, "max_inflight"), rate_limit = jx_member(global, "rate_limit"), backstop = jx_member(global, "backstop"),
              defaults = jx_member(global, "defaults"), responses = jx_member(global, "responses"), cors = jx_member(global, "cors_policies"),
              locale = jx_member(global, "locale"), request_headers = jx_member(global, "request_headers");
    if (jx_int(&max_inflight, 1, INFLIGHT_MAX, &n_inflight))
        c->policy->max_inflight = (uint64_t) n_inflight;
    compile_charge(c, &rate_limit);
    compile_backstop(c, &backstop);
    /* Defaults refer to templates. */
    compile_templates(c, &responses);
    compile_defaults(c, &defaults);
    compile_cors_policies(c, &cors);
    compile_locale(c, &locale);
    compile_request_headers(c, &request_headers);
}
