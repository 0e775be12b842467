/* What a limit's key has in a request, shared by those that count it and those that show it. */
#ifndef COMMON_POLICY_LIMITS_PRIV_H
#define COMMON_POLICY_LIMITS_PRIV_H

#include "common/policy/policy.h"

enum { LIMITS_NUMBER_MAX = 20 };
/* An item of the headers that tell a client its limits: a rule's id (at most 64 bytes, none that a quoted string would have to escape), two parameters
 * of at most 20 digits, what stands between. Both headers of all rules that a request can meet, with their names and overhead. */
enum { LIMIT_ITEM_MAX = 128, LIMIT_HEADERS_MAX = 2 * ((POLICY_SITE_WIDE_MAX + POLICY_LIMITED_RULES_MAX) * LIMIT_ITEM_MAX + 64) };

/* The value that part has in the request; number: room for one. An empty value is none, as for expressions' plain strings: it tells nobody apart.
 * Addresses and constants are no text and have none here. */
struct str limits_value(const struct key_part *part, const struct expr_facts *f, char number[static LIMITS_NUMBER_MAX]);
/* Whether the request has all parts of rule's key. */
bool limits_has_key(const struct rate_rule *rule, const struct expr_facts *f);

#endif
