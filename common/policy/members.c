/* Members of the document's objects, from the table. */
#include "common/policy/members.h"

/* In the table an object stands before its members: here a NULL ends one list and the next begins behind it. */
static const char *const names[] = {
#define OBJECT_ROW(id, title, meaning) NULL,
#define MEMBER_ROW(object, name, type, need, dflt, schema, meaning) name,
#include "schemas/policy.def"
    NULL};

const char *const *policy_members(enum policy_object o)
{
    const char *const *at = names;

    for (int skipped = 0; skipped < (int) o; skipped++)
        for (at++; *at; at++)
            continue;
    return at + 1;
}

void policy_only(const struct jx *j, enum policy_object o)
{
    jx_only(j, policy_members(o));
}
