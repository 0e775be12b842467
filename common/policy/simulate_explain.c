/* Why simulate found what it found: every rule of the phases that were reached, with its condition as the request meets it. Disabled rules
 * and trees of conditions stand only in the document. */
#include "common/policy/simulate_priv.h"

enum { ARENA_BLOCK = 64 * 1024, ARENA_LIMIT = 64 * 1024 * 1024 };

/* One explanation: the rules' trees are read into its arena. */
struct explaining {
    const struct simulation *s;
    struct arena arena;
    struct errlist errors; /* of reading trees: none but for want of memory, since the document compiled */
};

static bool is_enabled(const json_t *rule)
{
    return !json_is_false(json_object_get(rule, "enabled"));
}

static struct str id_of(const json_t *rule)
{
    const json_t *id = json_object_get(rule, "id");

    return (struct str){json_string_value(id), json_string_length(id)};
}

/* The condition of a rule with what the request has there. */
static json_t *condition(struct explaining *e, const json_t *rule)
{
    struct jx_doc doc = {.arena = &e->arena, .errors = &e->errors};
    struct jx root = jx_root(json_object_get(rule, "expression"), &doc);
    const struct expr *x = expr_decode(&root, &e->arena);

    return x ? expr_explain(x, &e->s->view.facts) : NULL;
}

/* {"id", "enabled", "result", "condition"}; result and condition of a disabled rule are null. */
static json_t *rule_entry(struct explaining *e, const json_t *rule)
{
    json_t *out = json_object(), *tree = is_enabled(rule) ? condition(e, rule) : json_null();
    json_t *result = json_object_get(tree, "result");
    bool ok = simulate_put(out, "id", simulate_text(id_of(rule)));

    ok = simulate_put(out, "enabled", json_boolean(is_enabled(rule))) && ok;
    ok = simulate_put(out, "result", result ? json_incref(result) : json_null()) && ok;
    ok = simulate_put(out, "condition", tree) && ok;
    return simulate_finished(out, ok);
}

/* An entry for each rule of the list, none where its phase was not reached. */
static bool put_rules(struct explaining *e, json_t *out, const char *list, const json_t *config, enum simulate_phase phase)
{
    json_t *entries = json_array(), *rule;
    bool ok = true;
    size_t i;

    if (e->s->reached >= phase)
        json_array_foreach(json_object_get(config, list), i, rule) ok = json_array_append_new(entries, rule_entry(e, rule)) == 0 && ok;
    return simulate_put(out, list, entries) && ok;
}

/* --- Limits --- */

static const struct rate_rule *find_limit(const struct policy *p, struct str id, size_t *index)
{
    for (*index = 0; *index < p->n_rate_rules; (*index)++)
        if (str_eq(p->rate_rules[*index].id, id))
            return &p->rate_rules[*index];
    return NULL;
}

static bool is_chosen(const struct limit_choice *c, size_t index, bool *enforced)
{
    for (size_t i = 0; i < c->n; i++)
        if (c->index[i] == index) {
            *enforced = c->enforce[i];
            return true;
        }
    return false;
}

/* Why a limit does not count the request. */
static const char *limit_reason(const struct simulation *s, const struct rate_rule *rule, const json_t *result)
{
    if (!rule)
        return "disabled";
    if (json_is_false(result))
        return "no_match";
    if (rule->count_statuses)
        return "counts_answers";
    if (!simulate_has_key(s, rule))
        return "missing_key";
    if (!simulate_has_value(s, rule))
        return "missing_value";
    if (s->limits.reject_missing_key)
        return "rejected";
    return "cap";
}

static bool put_limits(struct explaining *e, json_t *out, const json_t *config)
{
    const json_t *rules = json_object_get(config, "rate_limit_rules");
    bool ok = put_rules(e, out, "rate_limit_rules", config, SIMULATE_LIMITS);
    json_t *entry;
    size_t i, index;

    json_array_foreach(json_object_get(out, "rate_limit_rules"), i, entry)
    {
        const struct rate_rule *limit = find_limit(e->s->policy, id_of(json_array_get(rules, i)), &index);
        bool enforced = false, counted = limit && is_chosen(&e->s->limits, index, &enforced);
        const char *reason = counted ? NULL : limit_reason(e->s, limit, json_object_get(entry, "result"));
        ok = simulate_put(entry, "counted", json_boolean(counted)) && ok;
        ok = simulate_put(entry, "enforced", json_boolean(enforced)) && ok;
        ok = simulate_put(entry, "reason", reason ? json_string(reason) : json_null()) && ok;
    }
    return ok;
}

/* --- Settings --- */

/* Every setting with nothing that set it. */
static json_t *unset(void)
{
    static const char *const names[] = {"auth_mode", "auth_accepted", "cors_policy", "locale", "body_limit", "upstream_timeout", "body_read_timeout", "ratelimit_headers", "block"};
    json_t *out = json_object(), *responses = json_object();
    bool ok = true;

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        ok = simulate_put(out, names[i], json_null()) && ok;
    for (int k = 0; k < KIND_N; k++)
        ok = simulate_put(responses, kind_name((enum kind) k), json_null()) && ok;
    return simulate_finished(out, simulate_put(out, "responses", responses) && ok);
}

/* Whether the rule's setting holds where its condition can't be judged. */
static bool protects(const char *name, const json_t *value)
{
    const char *word = json_string_value(strcmp(name, "auth") == 0 ? json_object_get(value, "mode") : value);

    return word && ((strcmp(name, "auth") == 0 && strcmp(word, "required") == 0) || (strcmp(name, "block") == 0 && strcmp(word, "block") == 0));
}

static bool set_by_rule(json_t *out, const json_t *rule, bool certain)
{
    json_t *settings = json_object_get(rule, "settings"), *id = json_object_get(rule, "id"), *value, *template;
    json_t *responses = json_object_get(out, "responses");
    const char *name, *kind;
    bool ok = true;

    json_object_foreach(settings, name, value)
    {
        if (!certain && !protects(name, value))
            continue;
        if (strcmp(name, "responses") == 0) {
            /* a schema 1 document may have a kind that is not kept */
            json_object_foreach(value, kind, template) ok = (!json_object_get(responses, kind) || json_object_set(responses, kind, id) == 0) && ok;
        } else if (strcmp(name, "auth") == 0) {
            ok = json_object_set(out, "auth_mode", id) == 0 && json_object_set(out, "auth_accepted", id) == 0 && ok;
        } else {
            ok = json_object_set(out, name, id) == 0 && ok;
        }
    }
    return ok;
}

/* {setting: id of the rule that set it last, or null: as defaults have it}, responses by kind. */
static json_t *set_by(const json_t *config, const json_t *entries)
{
    json_t *out = unset(), *rule;
    bool ok = out != NULL;
    size_t i;

    json_array_foreach(json_object_get(config, "config_rules"), i, rule)
    {
        const json_t *result = json_object_get(json_array_get(entries, i), "result");
        if (json_is_true(result) || json_is_string(result))
            ok = set_by_rule(out, rule, json_is_true(result)) && ok;
    }
    return simulate_finished(out, ok);
}

static json_t *kill_switch(const struct policy *p)
{
    return json_pack("{s:b, s:b, s:b}", "rate_limit", p->kill_switch.rate_limit, "auth", p->kill_switch.auth, "block", p->kill_switch.block);
}

static bool explain(struct explaining *e, const json_t *config, json_t *out)
{
    bool ok = put_rules(e, out, "config_rules", config, SIMULATE_CONFIG);

    ok = simulate_put(out, "set_by", set_by(config, json_object_get(out, "config_rules"))) && ok;
    ok = put_limits(e, out, config) && ok;
    ok = put_rules(e, out, "request_header_rules", config, SIMULATE_HEADERS) && ok;
    return simulate_put(out, "kill_switch", kill_switch(e->s->policy)) && ok;
}

json_t *simulate_explanation(const struct simulation *s, const json_t *document)
{
    const json_t *active = json_object_get(document, "active");
    struct explaining e = {.s = s};
    json_t *out = json_object();

    arena_init(&e.arena, ARENA_BLOCK, ARENA_LIMIT);
    bool ok = errlist_init(&e.errors, 0) && explain(&e, active ? active : document, out);
    errlist_release(&e.errors);
    arena_release(&e.arena);
    return simulate_finished(out, ok);
}
