/* The document's objects and their members, as schemas/policy.def lists them: what the decoder accepts, in canonical order. */
#ifndef COMMON_POLICY_MEMBERS_H
#define COMMON_POLICY_MEMBERS_H

#include "common/base/jx.h"

enum policy_object {
#define OBJECT_ROW(id, title, meaning) OBJECT_##id,
#include "schemas/policy.def"
    OBJECT_N
};

/* NULL-terminated, in canonical order. Any thread. */
const char *const *policy_members(enum policy_object o);
/* jx_only with that list. */
void policy_only(const struct jx *j, enum policy_object o);

#endif
