/* Warnings about config rules that are valid but do not do what their author expects. */
#include "common/policy/compile_priv.h"

/* Which settings a rule gives. */
struct settings_set {
    bool block, ratelimit_headers, responses[KIND_N];
};

static bool adds_nothing_to(const struct config_rule *rule, const struct settings_set *later)
{
    bool sets_any = rule->block != BLOCK_UNSET || rule->ratelimit_headers != TOGGLE_UNSET;

    if (rule->block != BLOCK_UNSET && !later->block)
        return false;
    if (rule->ratelimit_headers != TOGGLE_UNSET && !later->ratelimit_headers)
        return false;
    for (int k = 0; k < KIND_N; k++) {
        if (rule->responses[k] && !later->responses[k])
            return false;
        sets_any = sets_any || rule->responses[k];
    }
    return sets_any;
}

static void add_settings_of(const struct config_rule *rule, struct settings_set *set)
{
    set->block = set->block || rule->block != BLOCK_UNSET;
    set->ratelimit_headers = set->ratelimit_headers || rule->ratelimit_headers != TOGGLE_UNSET;
    for (int k = 0; k < KIND_N; k++)
        set->responses[k] = set->responses[k] || rule->responses[k];
}

static bool is_client_controlled(const char *field)
{
    static const struct {
        const char *name;
        bool client_controlled;
    } fields[] = {
#define FIELD_ROW(id, name, type, list, key, phases, source, client, absent, meaning) {name, client},
#include "schemas/fields.def"
#undef FIELD_ROW
    };
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
        if (strcmp(field, fields[i].name) == 0)
            return fields[i].client_controlled;
    return false;
}

/* Groups nest at most EXPR_NESTING_MAX deep. */
static bool ast_reads_client(const json_t *ast)
{
    const json_t *rules = json_object_get(ast, "rules");
    const json_t *field = json_object_get(ast, "field");

    if (json_is_string(field))
        return is_client_controlled(json_string_value(field));
    for (size_t i = 0; i < json_array_size(rules); i++)
        if (ast_reads_client(json_array_get(rules, i)))
            return true;
    return false;
}

static bool reads_client(const struct expr *x)
{
    json_t *ast = expr_to_json(x);
    bool yes = ast_reads_client(ast);

    json_decref(ast);
    return yes;
}

static void rule_path(const struct jx *rules, size_t index, char *out)
{
    struct jx rule = jx_item(rules, index);
    jx_path(&rule, out);
}

void compile_config_warnings(struct compile *c, const struct jx *rules, const struct config_note *notes, size_t n)
{
    bool overwritten[POLICY_RULES_MAX] = {false};
    struct settings_set later = {0};
    const struct config_rule *blocking = NULL;
    char path[ERR_PATH_MAX];

    for (size_t i = n; i-- > 0;) {
        overwritten[i] = adds_nothing_to(notes[i].rule, &later);
        if (expr_is_true(notes[i].x))
            add_settings_of(notes[i].rule, &later);
    }
    for (size_t i = 0; i < n; i++) {
        const struct config_rule *rule = notes[i].rule;
        bool lifts = rule->block == BLOCK_LOG || rule->block == BLOCK_NONE;
        rule_path(rules, notes[i].index, path);
        if (overwritten[i])
            errlist_add(c->warnings, ERR_RULE_OVERWRITTEN, path, "rule \"%.*s\" has no effect: later rules with the expression `true` set all that it sets",
                        STR_ARG(rule->id));
        if (lifts && blocking && reads_client(notes[i].x))
            errlist_add(c->warnings, ERR_BLOCK_WEAKENED, path,
                        "rule \"%.*s\" lifts the block of \"%.*s\" for what a client sends: the last matching block setting wins; put this rule first, or match on ip.src",
                        STR_ARG(rule->id), STR_ARG(blocking->id));
        if (rule->block == BLOCK_BLOCK)
            blocking = rule;
    }
}
