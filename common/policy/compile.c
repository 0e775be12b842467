/* From a document to a policy: the envelope, the top level, and what all parts of a compilation share. */
#include "common/policy/compile_priv.h"

#include <stdlib.h>

/* A compiled policy larger than COMPILED_MAX is refused in words; the arenas' own limit is far behind it. */
enum { ARENA_BLOCK = 64 * 1024, ARENA_LIMIT = 512 * 1024 * 1024, COMPILED_MAX = 64 * 1024 * 1024 };
enum { MEMBERS_MAX = 32, NAME_LEN_MAX = 64, SCHEMA_OF_BLOCK = 4 };

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

static void compile_schema(struct compile *c, const struct jx *config)
{
    struct jx schema = jx_member(config, "schema");

    if (jx_need_int(&schema, INT64_MIN, INT64_MAX, &c->policy->schema) && c->policy->schema < POLICY_SCHEMA_MIN)
        jx_fault(&schema, ERR_BAD_VALUE, "schema %jd is not read by this build: it must be %d to %d", (intmax_t) c->policy->schema, POLICY_SCHEMA_MIN,
                 POLICY_SCHEMA_MAX);
}

static void compile_kill_switch(struct compile *c, const struct jx *kill)
{
    if (!jx_is_object(kill))
        return;
    policy_only(kill, OBJECT_KILL_SWITCH);
    struct jx rate_limit = jx_member(kill, "rate_limit"), auth = jx_member(kill, "auth"), block = jx_member(kill, "block");
    jx_bool(&rate_limit, &c->policy->kill_switch.rate_limit);
    jx_bool(&auth, &c->policy->kill_switch.auth);
    /* Off is what every schema means: only a switch that is on needs one. */
    if (jx_bool(&block, &c->policy->kill_switch.block) && c->policy->kill_switch.block)
        compile_needs(c, SCHEMA_OF_BLOCK);
}

/* Which kinds must be mapped is only known once the rules are read. */
static void check_defaults(struct compile *c, const struct jx *config)
{
    struct jx global = jx_member(config, "global"), wanted = jx_member(&global, "defaults"), responses = jx_member(&wanted, "responses");

    if (json_is_object(responses.value))
        compile_fill_defaults(c, &responses, c->policy->defaults);
}

/* A policy may stand beside its tests where it is edited, but not here: whoever leaves them there is told where they go. */
static void only_without_tests(const struct jx *j, enum policy_object o, const char *what)
{
    const char *names[MEMBERS_MAX + 2];
    const char *const *known = policy_members(o);
    struct jx tests = jx_member(j, "tests");
    size_t n = 0;

    for (; known[n] && n < MEMBERS_MAX; n++)
        names[n] = known[n];
    names[n] = "tests";
    names[n + 1] = NULL;
    jx_only(j, names);
    if (tests.value)
        jx_fault(&tests, ERR_UNKNOWN_MEMBER, "tests are no part of %s: run them with `edge-spoa test`", what);
}

void compile_config(struct compile *c, const struct jx *config)
{
    if (!jx_is_object(config))
        return;
    compile_schema(c, config);
    only_without_tests(config, OBJECT_CONFIG, "a policy");
    struct jx version = jx_member(config, "version"), kill = jx_member(config, "kill_switch"), global = jx_member(config, "global"),
              auth = jx_member(config, "auth"), config_rules = jx_member(config, "config_rules"), rate_rules = jx_member(config, "rate_limit_rules"),
              header_rules = jx_member(config, "request_header_rules");
    jx_need_int(&version, 1, version_max, &c->policy->version);
    compile_kill_switch(c, &kill);
    compile_global(c, &global);
    compile_auth(c, &auth);
    compile_config_rules(c, &config_rules);
    c->in_force = true;
    compile_check_default_accepted(c, &auth);
    compile_rate_rules(c, &rate_rules);
    c->in_force = true;
    compile_header_rules(c, &header_rules);
    c->in_force = true;
    check_defaults(c, config);
}

/* Nothing else of such a document can be judged, so that this is its only fault. */
static bool is_too_new(const struct jx *config)
{
    struct jx schema = {.value = json_object_get(config->value, "schema"), .parent = config, .key = STR("schema"), .doc = config->doc};

    if (!json_is_integer(schema.value) || json_integer_value(schema.value) <= POLICY_SCHEMA_MAX)
        return false;
    jx_fault(&schema, ERR_SCHEMA_TOO_NEW, "schema %jd is newer than this build reads (%d to %d): upgrade the edge, or publish an older schema",
             (intmax_t) json_integer_value(schema.value), POLICY_SCHEMA_MIN, POLICY_SCHEMA_MAX);
    return true;
}

static bool make_sets(struct policy *p)
{
    return expr_set_new(&p->arena, &p->config_set) && expr_set_new(&p->arena, &p->rate_set) && expr_set_new(&p->arena, &p->header_set);
}

static bool finish_sets(struct policy *p)
{
    return expr_set_finish(p->config_set) && expr_set_finish(p->rate_set) && expr_set_finish(p->header_set);
}

/* Which part of a document, by its member's name; NULL: the document itself. */
static void compile_part(const json_t *document, const char *member, const struct policy_options *options, struct policy *p, struct errlist *errors,
                         struct errlist *warnings)
{
    struct compile c = {.policy = p, .options = options, .errors = errors, .warnings = warnings, .in_force = true};
    size_t n_before = errors->n + errors->n_dropped;

    p->needs_schema = POLICY_SCHEMA_MIN;
    arena_init(&p->arena, ARENA_BLOCK, ARENA_LIMIT);
    arena_init(&c.scratch, ARENA_BLOCK, ARENA_LIMIT);
    c.doc = (struct jx_doc){.arena = &p->arena, .errors = errors};
    map_init(&c.templates, &c.scratch);
    map_init(&c.ids, &c.scratch);
    map_init(&c.header_names, &c.scratch);
    map_init(&c.cors_policies, &c.scratch);
    struct jx root = jx_root(document, &c.doc), part = member ? jx_member(&root, member) : root;
    if (make_sets(p))
        compile_config(&c, &part);
    else
        compile_no_memory(&part);
    if (errors->n + errors->n_dropped == n_before && !finish_sets(p))
        compile_no_memory(&part);
    if (errors->n + errors->n_dropped == n_before && p->arena.used_bytes > COMPILED_MAX)
        jx_fault(&part, ERR_LIMIT_EXCEEDED, "compiled, the policy takes %zu MiB; at most %d are allowed: write fewer or shorter rules and templates",
                 p->arena.used_bytes >> 20, COMPILED_MAX >> 20);
    arena_release(&c.scratch);
}

/* The candidate is held to the same rules and dropped. */
static void check_candidate(const json_t *document, const struct policy_options *options, struct errlist *errors, struct errlist *warnings)
{
    struct policy *candidate = calloc(1, sizeof *candidate);

    if (!candidate) {
        errlist_add(errors, ERR_NO_MEMORY, "/candidate", "no memory for a policy");
        return;
    }
    compile_part(document, "candidate", options, candidate, errors, warnings);
    policy_free(&candidate);
}

static void compile_snapshot(const json_t *document, const struct policy_options *options, struct policy *p, struct errlist *errors,
                             struct errlist *warnings)
{
    struct compile c = {.options = options, .errors = errors, .warnings = warnings, .in_force = true};
    struct jx root = jx_root(document, &c.doc), active = jx_member(&root, "active"), candidate = jx_member(&root, "candidate");
    bool active_too_new, candidate_too_new;
    size_t n_before = errors->n + errors->n_dropped;

    c.doc.errors = errors;
    active_too_new = is_too_new(&active);
    candidate_too_new = is_too_new(&candidate);
    if (active_too_new || candidate_too_new)
        return;
    arena_init(&c.scratch, ARENA_BLOCK, ARENA_LIMIT);
    c.doc.arena = &c.scratch;
    only_without_tests(&root, OBJECT_ENVELOPE, "an envelope");
    compile_envelope(&c, &root);
    arena_release(&c.scratch);
    compile_part(document, "active", options, p, errors, warnings);
    c.policy = p;
    if (errors->n + errors->n_dropped == n_before && p->reads_verified_bot)
        compile_verified_bots(&c, &root);
    if (candidate.value)
        check_candidate(document, options, errors, warnings);
}

static void compile_document(const json_t *document, const struct policy_options *options, struct policy *p, struct errlist *errors,
                             struct errlist *warnings)
{
    struct jx_doc doc = {.errors = errors};
    struct jx root = jx_root(document, &doc);

    if (!jx_is_object(&root))
        return;
    struct jx active = jx_member(&root, "active"), envelope = jx_member(&root, "envelope");
    if (active.value)
        compile_snapshot(document, options, p, errors, warnings);
    else if (envelope.value)
        jx_fault(&envelope, ERR_UNKNOWN_MEMBER, "this is an envelope together with its tests: give the envelope alone, or use `edge-spoa test`");
    else if (!is_too_new(&root))
        compile_part(document, NULL, options, p, errors, warnings);
}

/* Where memory was refused, other faults may only be what is missing for want of it: no fault of the document is told then. */
static void keep_no_memory(struct errlist *errors, size_t from)
{
    size_t kept = from;

    for (size_t i = from; i < errors->n; i++)
        if (errors->items[i].code == ERR_NO_MEMORY)
            errors->items[kept++] = errors->items[i];
    if (kept > from)
        errors->n = kept;
}

const struct policy_options policy_options_any = {.deployment = &expr_deployment_any};

bool policy_compile(const json_t *document, const struct policy_options *options, struct policy **out, struct errlist *errors,
                    struct errlist *warnings)
{
    struct policy *p = calloc(1, sizeof *p);
    size_t n_before = errors->n + errors->n_dropped, from = errors->n;

    if (!p) {
        errlist_add(errors, ERR_NO_MEMORY, "", "no memory for a policy");
        return false;
    }
    compile_document(document, options, p, errors, warnings);
    if (errors->n + errors->n_dropped != n_before) {
        keep_no_memory(errors, from);
        policy_free(&p);
        return false;
    }
    *out = p;
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
