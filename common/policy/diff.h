/* What one policy has that another has not: rules and issuers by id, templates and CORS policies by name, everything else by member. */
#ifndef COMMON_POLICY_DIFF_H
#define COMMON_POLICY_DIFF_H

#include "common/base/jx.h"

/* Both documents are such that policy_compile accepts. Of envelopes the active policies are compared, and what concerns a canary. Expressions
 * are compared and shown as canonical text, so that a text and a tree of the same meaning are the same.
 *
 * An array of changes, empty when there is none, in the order of the old document, what is added behind that:
 *   {"change": "added" | "removed", "section": "config_rules", "id": "r1", "value": {...}}
 *   {"change": "changed", "section": "config_rules", "id": "r1", "path": "settings.block", "old": ..., "new": ...}
 *   {"change": "moved", "section": "config_rules", "id": "r1", "old": 3, "new": 1, "behind": "r0" or null when it is the first now}
 * "section" is dotted, as "global.responses"; it is "" and "id" absent for members of the policy itself. "old" or "new" is absent where the
 * member is. Moves: the fewest rules that have to change places, which are counted from 1. A candidate's sections begin with "candidate.".
 * The caller owns it; NULL when memory is refused. */
json_t *policy_diff(const json_t *old, const json_t *new);

#endif
