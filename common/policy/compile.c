/* From a document to a policy: the envelope, the top level, and what all parts of a compilation share. */
#include "common/policy/compile_priv.h"

#include <stdlib.h>

enum { ARENA_BLOCK = 64 * 1024, ARENA_LIMIT = 512 * 1024 * 1024, MEMBERS_MAX = 32, NAME_LEN_MAX = 64, INFLIGHT_MAX = 1000000 };

/* Whole numbers that every JSON reader keeps exactly. */
static const int64_t version_max = ((int64_t) 1 << 53) - 1;

bool compile_check_name(const struct jx *j, struct str name)
{
    bool ok = name.len >= 1 && name.len <= NAME_LEN_MAX;

    for (size_t i = 0; ok && i < name.len; i++) {
        char c = name.p[i];
        ok = ascii_is_alpha(c) || ascii_is_digit(c) || c == '.' || c == '_' || c == '-';
    }
    if (!ok)
        jx_fault(j, ERR_BAD_VALUE, "\"%.*s\" is no name: use 1 to %d letters, digits, '.', '_' and '-'", STR_ARG(str_cut_utf8(name, NAME_LEN_MAX)),
                 NAME_LEN_MAX);
    return ok;
}

void compile_only(const struct jx *j, const char *const *names, const char *const *unsupported)
{
    const char *all[MEMBERS_MAX + 1];
    size_t n = 0;

    for (; *names && n < MEMBERS_MAX; names++)
        all[n++] = *names;
    for (const char *const *u = unsupported; *u && n < MEMBERS_MAX; u++)
        all[n++] = *u;
    all[n] = NULL;
    jx_only(j, all);
    for (; *unsupported; unsupported++) {
        struct jx member = jx_member(j, *unsupported);
        if (member.value)
            jx_fault(&member, ERR_UNSUPPORTED, "\"%s\" is not supported by this build: leave it out", *unsupported);
    }
}

bool compile_need_object(const struct jx *j)
{
    if (!j->value)
        jx_fault(j, ERR_MISSING, "is required");
    return jx_is_object(j);
}

void compile_no_memory(const struct jx *j)
{
    jx_fault(j, ERR_NO_MEMORY, "no memory to compile this");
}

bool compile_next_member(const struct jx *j, void **iter, struct jx *member)
{
    json_t *object = (json_t *) (uintptr_t) j->value; /* only read, but jansson has no const form of its iterator */

    *iter = *iter ? json_object_iter_next(object, *iter) : json_object_iter(object);
    if (!*iter)
        return false;
    *member = (struct jx){.value = json_object_iter_value(*iter),
                          .parent = j,
                          .key = {json_object_iter_key(*iter), json_object_iter_key_len(*iter)},
                          .doc = j->doc};
    return true;
}

/* False: the schema is too new for anything else in the document to be judged. */
static bool compile_schema(struct compile *c, const struct jx *config)
{
    struct jx schema = jx_member(config, "schema");

    if (!jx_need_int(&schema, INT64_MIN, INT64_MAX, &c->policy->schema))
        return true;
    if (c->policy->schema > POLICY_SCHEMA_MAX) {
        jx_fault(&schema, ERR_SCHEMA_TOO_NEW, "schema %jd is newer than this build reads (%d to %d): upgrade the edge, or publish an older schema",
                 (intmax_t) c->policy->schema, POLICY_SCHEMA_MIN, POLICY_SCHEMA_MAX);
        return false;
    }
    if (c->policy->schema < POLICY_SCHEMA_MIN)
        jx_fault(&schema, ERR_BAD_VALUE, "schema %jd is not read by this build: it must be %d to %d", (intmax_t) c->policy->schema, POLICY_SCHEMA_MIN,
                 POLICY_SCHEMA_MAX);
    return true;
}

static void compile_kill_switch(struct compile *c, const struct jx *kill)
{
    static const char *const names[] = {"rate_limit", "auth", "block", NULL};

    if (!jx_is_object(kill))
        return;
    jx_only(kill, names);
    struct jx rate_limit = jx_member(kill, "rate_limit"), auth = jx_member(kill, "auth"), block = jx_member(kill, "block");
    bool auth_off = false;
    jx_bool(&rate_limit, &c->policy->kill_switch.rate_limit);
    if (jx_bool(&auth, &auth_off) && auth_off)
        jx_fault(&auth, ERR_UNSUPPORTED, "this build has no auth to switch off: leave it out, or false");
    jx_bool(&block, &c->policy->kill_switch.block);
    c->uses_schema_4 = c->uses_schema_4 || c->policy->kill_switch.block;
}

static void compile_global(struct compile *c, const struct jx *global, const struct template *defaults[KIND_N])
{
    static const char *const names[] = {"max_inflight", "defaults", "responses", NULL};
    static const char *const unsupported[] = {"rate_limit", "backstop", "cors_policies", "locale", "request_headers", NULL};
    static const char *const default_names[] = {"responses", NULL};
    static const char *const default_unsupported[] = {"body_limit", "upstream_timeout", "body_read_timeout", NULL};

    if (!compile_need_object(global))
        return;
    compile_only(global, names, unsupported);
    struct jx max_inflight = jx_member(global, "max_inflight");
    int64_t n_inflight = 0;
    if (jx_int(&max_inflight, 1, INFLIGHT_MAX, &n_inflight))
        c->policy->max_inflight = (uint64_t) n_inflight;
    struct jx templates = jx_member(global, "responses");
    compile_templates(c, &templates);

    struct jx wanted = jx_member(global, "defaults");
    if (!compile_need_object(&wanted))
        return;
    compile_only(&wanted, default_names, default_unsupported);
    struct jx responses = jx_member(&wanted, "responses");
    if (compile_need_object(&responses))
        compile_template_choice(c, &responses, defaults);
}

/* Which kinds must be mapped is only known once the rules are read. */
static void check_defaults(struct compile *c, const struct jx *config, const struct template *defaults[KIND_N])
{
    struct jx global = jx_member(config, "global"), wanted = jx_member(&global, "defaults"), responses = jx_member(&wanted, "responses");

    if (json_is_object(responses.value))
        compile_fill_defaults(c, &responses, defaults);
}

static void compile_config(struct compile *c, const struct jx *config)
{
    static const char *const names[] = {"schema",       "version",          "kill_switch",          "global",
                                        "config_rules", "rate_limit_rules", "request_header_rules", "tests", NULL};
    static const char *const unsupported[] = {"auth", NULL};

    if (!jx_is_object(config) || !compile_schema(c, config))
        return;
    compile_only(config, names, unsupported);
    struct jx tests = jx_member(config, "tests");
    if (tests.value)
        jx_fault(&tests, ERR_UNKNOWN_MEMBER, "tests are no part of a policy: run them with `edge-spoa test`");

    struct jx version = jx_member(config, "version"), kill = jx_member(config, "kill_switch"), global = jx_member(config, "global");
    struct jx config_rules = jx_member(config, "config_rules"), rate_rules = jx_member(config, "rate_limit_rules"),
              header_rules = jx_member(config, "request_header_rules");
    jx_need_int(&version, 1, version_max, &c->policy->version);
    compile_kill_switch(c, &kill);
    compile_global(c, &global, c->policy->defaults);
    compile_config_rules(c, &config_rules);
    compile_rate_rules(c, &rate_rules);
    compile_header_rules(c, &header_rules);
    check_defaults(c, config, c->policy->defaults);
}

static bool two_digits(struct str s, size_t at, int min, int max)
{
    if (!ascii_is_digit(s.p[at]) || !ascii_is_digit(s.p[at + 1]))
        return false;
    int n = (s.p[at] - '0') * 10 + (s.p[at + 1] - '0');
    return n >= min && n <= max;
}

/* RFC 3339 5.6, upper case; whether the month has that day is left to whoever computes with it. */
static bool is_rfc3339(struct str s)
{
    size_t at = sizeof("2026-01-31T12:00:00") - 1;

    if (s.len <= at || s.p[4] != '-' || s.p[7] != '-' || s.p[10] != 'T' || s.p[13] != ':' || s.p[16] != ':')
        return false;
    if (!two_digits(s, 0, 0, 99) || !two_digits(s, 2, 0, 99) || !two_digits(s, 5, 1, 12) || !two_digits(s, 8, 1, 31) || !two_digits(s, 11, 0, 23) ||
        !two_digits(s, 14, 0, 59) || !two_digits(s, 17, 0, 60))
        return false;
    if (s.p[at] == '.') {
        size_t first = ++at;
        while (at < s.len && ascii_is_digit(s.p[at]))
            at++;
        if (at == first || at == s.len)
            return false;
    }
    if (s.p[at] == 'Z')
        return at + 1 == s.len;
    return s.len - at == sizeof("+01:00") - 1 && (s.p[at] == '+' || s.p[at] == '-') && two_digits(s, at + 1, 0, 23) && s.p[at + 3] == ':' &&
           two_digits(s, at + 4, 0, 59);
}

static void compile_envelope(struct compile *c, const struct jx *root, const struct jx *active)
{
    static const char *const names[] = {"exported_at", "active", "fleet_size", "tests", NULL};
    static const char *const unsupported[] = {"candidate", "canary_percent", "canary_expires_at", "keys", "verified_bots", NULL};

    compile_only(root, names, unsupported);
    struct jx exported_at = jx_member(root, "exported_at"), fleet_size = jx_member(root, "fleet_size"), tests = jx_member(root, "tests");
    struct str time = STR_NONE;
    int64_t n_edges = 0;
    if (jx_str(&exported_at, &time) && !is_rfc3339(time))
        jx_fault(&exported_at, ERR_BAD_VALUE, "must be a time such as \"2026-01-31T12:00:00Z\" (RFC 3339)");
    jx_int(&fleet_size, 0, INT32_MAX, &n_edges);
    if (tests.value)
        jx_fault(&tests, ERR_UNKNOWN_MEMBER, "tests are no part of an envelope: run them with `edge-spoa test`");
    compile_config(c, active);
}

static void compile_document(struct compile *c, const json_t *document)
{
    struct jx root = jx_root(document, &c->doc);

    if (!jx_is_object(&root))
        return;
    struct jx active = jx_member(&root, "active"), envelope = jx_member(&root, "envelope");
    if (active.value)
        compile_envelope(c, &root, &active);
    else if (envelope.value)
        jx_fault(&envelope, ERR_UNKNOWN_MEMBER, "this is an envelope together with its tests: give the envelope alone, or use `edge-spoa test`");
    else
        compile_config(c, &root);
}

static bool make_sets(struct policy *p)
{
    return expr_set_new(&p->arena, &p->config_set) && expr_set_new(&p->arena, &p->rate_set) && expr_set_new(&p->arena, &p->header_set);
}

static bool finish_sets(struct policy *p)
{
    return expr_set_finish(p->config_set) && expr_set_finish(p->rate_set) && expr_set_finish(p->header_set);
}

const struct policy_options policy_options_any = {.deployment = &expr_deployment_any};

bool policy_compile(const json_t *document, const struct policy_options *options, struct policy **out, struct errlist *errors,
                    struct errlist *warnings)
{
    struct compile c = {.policy = calloc(1, sizeof *c.policy), .options = options, .errors = errors, .warnings = warnings};
    size_t n_before = errors->n + errors->n_dropped;

    if (!c.policy) {
        errlist_add(errors, ERR_NO_MEMORY, "", "no memory for a policy");
        return false;
    }
    arena_init(&c.policy->arena, ARENA_BLOCK, ARENA_LIMIT);
    arena_init(&c.scratch, ARENA_BLOCK, ARENA_LIMIT);
    c.doc = (struct jx_doc){.arena = &c.policy->arena, .errors = errors};
    map_init(&c.templates, &c.scratch);
    map_init(&c.ids, &c.scratch);
    map_init(&c.header_names, &c.scratch);
    if (make_sets(c.policy))
        compile_document(&c, document);
    else
        errlist_add(errors, ERR_NO_MEMORY, "", "no memory for a policy");
    arena_release(&c.scratch);
    if (errors->n + errors->n_dropped == n_before && !finish_sets(c.policy))
        errlist_add(errors, ERR_NO_MEMORY, "", "no memory for a policy");

    if (errors->n + errors->n_dropped != n_before) {
        policy_free(&c.policy);
        return false;
    }
    *out = c.policy;
    return true;
}

bool policy_load(const char *file, const struct policy_options *options, struct policy **out, struct errlist *errors, struct errlist *warnings)
{
    json_t *document = NULL;
    struct err e;

    err_clear(&e);
    if (!jx_load(file, JX_DOCUMENT_MAX_BYTES, &document, &e)) {
        errlist_add_err(errors, &e);
        return false;
    }
    bool ok = policy_compile(document, options, out, errors, warnings);
    json_decref(document);
    return ok;
}

void policy_free(struct policy **p)
{
    if (!*p)
        return;
    arena_release(&(*p)->arena);
    free(*p);
    *p = NULL;
}
