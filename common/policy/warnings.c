/* Warnings about rules that are valid but do not do what their author expects. */
#include "common/policy/warnings_priv.h"

#include "common/policy/forward_priv.h"

static void rule_path(const struct jx *rules, size_t index, char *out)
{
    struct jx rule = jx_item(rules, index);
    jx_path(&rule, out);
}

/* --- Config rules --- */

/* Settings as bits: below these one for each kind of response. */
enum { SET_AUTH = 1 << KIND_N, SET_CORS = 2 << KIND_N, SET_LOCALE = 4 << KIND_N, SET_BODY_LIMIT = 8 << KIND_N, SET_TIMEOUT = 16 << KIND_N,
       SET_HEADERS = 32 << KIND_N, SET_BLOCK = 64 << KIND_N };

static uint32_t settings_of(const struct config_rule *rule)
{
    uint32_t set = 0;

    for (int k = 0; k < KIND_N; k++)
        set |= rule->responses[k] ? 1u << k : 0;
    set |= rule->auth != AUTH_UNSET ? SET_AUTH : 0;
    set |= rule->has_cors ? SET_CORS : 0;
    set |= rule->locale != TOGGLE_UNSET ? SET_LOCALE : 0;
    set |= rule->has_body_limit ? SET_BODY_LIMIT : 0;
    set |= rule->upstream_timeout_ms != 0 ? SET_TIMEOUT : 0;
    set |= rule->ratelimit_headers != TOGGLE_UNSET ? SET_HEADERS : 0;
    set |= rule->block != BLOCK_UNSET ? SET_BLOCK : 0;
    return set;
}

static void find_overwritten(const struct config_note *notes, size_t n, bool overwritten[static POLICY_RULES_MAX])
{
    uint32_t later = 0;

    for (size_t i = n; i-- > 0;) {
        uint32_t set = settings_of(notes[i].rule);
        overwritten[i] = set != 0 && (set & ~later) == 0;
        if (expr_is_true(notes[i].x))
            later |= set;
    }
}

static void warn_of_exclusion(struct compile *c, const char *path, struct str id, const char *what)
{
    errlist_add(c->warnings, ERR_SPOOFABLE_EXCLUSION, path,
                "rule \"%.*s\" leaves out traffic by something that the client chooses, so that a client can leave itself out of the %s: leave it out by "
                "ip.src or a verified claim",
                STR_ARG(id), what);
}

void compile_config_warnings(struct compile *c, const struct jx *rules, const struct config_note *notes, size_t n)
{
    bool overwritten[POLICY_RULES_MAX] = {false};
    const struct config_rule *blocking = NULL;
    char path[ERR_PATH_MAX];

    find_overwritten(notes, n, overwritten);
    for (size_t i = 0; i < n; i++) {
        const struct config_rule *rule = notes[i].rule;
        bool lifts = rule->block == BLOCK_LOG || rule->block == BLOCK_NONE;
        struct expr_traits traits;
        rule_path(rules, notes[i].index, path);
        expr_traits(notes[i].x, &traits);
        if (overwritten[i])
            errlist_add(c->warnings, ERR_RULE_OVERWRITTEN, path, "rule \"%.*s\" has no effect: later rules with the expression `true` set all that it sets",
                        STR_ARG(rule->id));
        if (lifts && blocking && traits.reads_client)
            errlist_add(c->warnings, ERR_BLOCK_WEAKENED, path,
                        "rule \"%.*s\" lifts the block of \"%.*s\" for what a client sends: the last matching block setting wins; put this rule first, or match on ip.src",
                        STR_ARG(rule->id), STR_ARG(blocking->id));
        if (rule->block != BLOCK_BLOCK)
            continue;
        if (traits.excludes_client)
            warn_of_exclusion(c, path, rule->id, "block");
        blocking = rule;
    }
}

/* --- Limits --- */

void compile_rate_warnings(struct compile *c, const struct jx *rules, const struct rate_note *notes, size_t n)
{
    int64_t now_ms = c->options->now_ms;
    char path[ERR_PATH_MAX];

    for (size_t i = 0; i < n; i++) {
        const struct rate_rule *rule = notes[i].rule;
        struct jx j = jx_item(rules, notes[i].index), expires_at = jx_member(&j, "expires_at");
        struct expr_traits traits;
        expr_traits(notes[i].x, &traits);
        if (traits.excludes_client) {
            rule_path(rules, notes[i].index, path);
            warn_of_exclusion(c, path, rule->id, "limit");
        }
        if (now_ms == 0 || rule->expires_at_ms == 0 || rule->expires_at_ms > now_ms)
            continue;
        jx_path(&expires_at, path);
        errlist_add(c->warnings, ERR_RULE_EXPIRED, path, "rule \"%.*s\" has expired and does not run: remove it, or its expires_at", STR_ARG(rule->id));
    }
}

/* --- Header rules and filters --- */

void compile_forward_warning(struct compile *c, const struct jx *j, const struct forward_filter *filter)
{
    static const struct {
        struct str name;
        const char *text;
    } needed[] = {{{"authorization", 13}, "Authorization"}, {{"cookie", 6}, "Cookie"}, {{"content-type", 12}, "Content-Type"}};
    char path[ERR_PATH_MAX], list[64];
    struct buf b;

    buf_init(&b, list, sizeof list - 1);
    for (size_t i = 0; i < sizeof needed / sizeof needed[0]; i++) {
        if (forward_keeps(filter, needed[i].name))
            continue;
        buf_put_cstr(&b, b.len == 0 ? "" : ", ");
        buf_put_cstr(&b, needed[i].text);
    }
    list[b.len] = '\0';
    if (b.len == 0 || filter->mode != FORWARD_ALLOWLIST || !c->in_force)
        return;
    jx_path(j, path);
    errlist_add(c->warnings, ERR_FORWARD_DROPS, path, "this allowlist drops %s: add to names what the upstream needs; what it shall not get, add and take away by remove", list);
}

/* Every header rule in force, and the policy's own filter. */
struct header_view {
    struct compile *c;
    const struct jx *rules;
    const struct header_note *notes;
    size_t n;
};

/* Whose filter can drop name before an operation reads it; NULL: none can. */
static const char *who_drops(const struct header_view *v, struct str name, struct str *rule_id)
{
    if (!forward_keeps(&v->c->policy->forward, name))
        return "the policy's filter";
    for (size_t i = 0; i < v->n; i++) {
        const struct header_rule *rule = v->notes[i].rule;
        for (size_t k = 0; k < rule->n_ops; k++) {
            if (rule->ops[k].kind != HEADER_FORWARD || forward_keeps(&rule->ops[k].filter, name))
                continue;
            *rule_id = rule->id;
            return "the filter of rule ";
        }
    }
    return NULL;
}

/* Whether an operation of the same rule writes the source first, so that no filter gets to see it. */
static bool is_made_here(const struct header_rule *rule, const struct header_op *op)
{
    for (const struct header_op *earlier = rule->ops; earlier < op; earlier++)
        if (earlier->kind != HEADER_REMOVE && str_eq(earlier->name, op->from))
            return true;
    return false;
}

static bool is_trace_header(struct str name)
{
    return str_eq(name, STR("traceparent")) || str_eq(name, STR("tracestate"));
}

static void warn_of_op(const struct header_view *v, const struct jx *op, const struct header_rule *rule, const struct header_op *compiled)
{
    bool moves = compiled->kind == HEADER_COPY || compiled->kind == HEADER_RENAME;
    struct jx from = jx_member(op, "from"), name = jx_member(op, moves ? "to" : "name");
    struct str id = STR_NONE;
    const char *who = moves && !is_made_here(rule, compiled) ? who_drops(v, compiled->from, &id) : NULL;
    char path[ERR_PATH_MAX];

    if (who) {
        jx_path(&from, path);
        errlist_add(v->c->warnings, ERR_SOURCE_DROPPED, path, "%s%.*s can drop \"%.*s\" before it is taken from here: let it keep the header", who, STR_ARG(id),
                    STR_ARG(compiled->from));
    }
    bool takes_trace = compiled->kind == HEADER_RENAME && is_trace_header(compiled->from);
    if (!takes_trace && !is_trace_header(compiled->name))
        return;
    jx_path(takes_trace ? &from : &name, path);
    errlist_add(v->c->warnings, ERR_TRACE_HEADER, path, "tracing writes this header too, after the rules, and then overwrites what this does");
}

void compile_header_warnings(struct compile *c, const struct jx *rules, const struct header_note *notes, size_t n)
{
    struct header_view v = {.c = c, .rules = rules, .notes = notes, .n = n};

    for (size_t i = 0; i < n; i++) {
        struct jx rule = jx_item(rules, notes[i].index), ops = jx_member(&rule, "ops");
        for (size_t k = 0; k < notes[i].rule->n_ops; k++) {
            struct jx op = jx_item(&ops, k);
            warn_of_op(&v, &op, notes[i].rule, &notes[i].rule->ops[k]);
        }
    }
}
