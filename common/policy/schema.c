/* Which schema a document needs, and what this build enforces of it. */
#include "common/policy/compile_priv.h"

enum { SCHEMA_OF_BLOCK = 4, NAMES_MAX = 32 };

/* Beside policy_members: in the table an object stands before its members. */
static const int64_t schemas[] = {
#define OBJECT_ROW(id, title, meaning) 0,
#define MEMBER_ROW(object, name, type, need, dflt, schema, meaning) schema,
#include "schemas/policy.def"
};

/* Where o's first member stands in the table. */
static const int64_t *schemas_of(enum policy_object o)
{
    const int64_t *at = schemas;

    for (int skipped = 0; skipped < (int) o; skipped++)
        for (at++; *at != 0; at++)
            continue;
    return at + 1;
}

void compile_needs(struct compile *c, int64_t schema)
{
    if (schema > c->policy->needs_schema)
        c->policy->needs_schema = schema;
    c->uses_schema_4 = c->uses_schema_4 || schema == SCHEMA_OF_BLOCK;
}

void compile_only_in_schema_1(const struct compile *c, const struct jx *j, const char *const *names, const char *gone)
{
    const char *all[NAMES_MAX + 2];
    size_t n = 0;

    for (; names[n] && n < NAMES_MAX; n++)
        all[n] = names[n];
    if (c->policy->schema == 1)
        all[n++] = gone;
    all[n] = NULL;
    jx_only(j, all);
}

static void note_needs(struct compile *c, const struct jx *j, enum policy_object o)
{
    const char *const *names = policy_members(o);
    const int64_t *schema = schemas_of(o);

    for (size_t i = 0; names[i]; i++)
        if (json_object_get(j->value, names[i]))
            compile_needs(c, schema[i]);
}

void compile_members(struct compile *c, const struct jx *j, enum policy_object o)
{
    if (o == OBJECT_SETTINGS)
        compile_only_in_schema_1(c, j, policy_members(o), "upstream");
    else
        policy_only(j, o);
    note_needs(c, j, o);
}

void compile_unsupported(struct compile *c, const struct jx *j, const char *what)
{
    char path[ERR_PATH_MAX];

    if (!c->in_force)
        return;
    if (c->options->to_serve) {
        jx_fault(j, ERR_UNSUPPORTED, "this build does not enforce %s: leave it out, or run a build that does", what);
        return;
    }
    jx_path(j, path);
    errlist_add(c->warnings, ERR_WARN_UNSUPPORTED, path, "this build does not enforce %s, so that its edge refuses this policy", what);
}
