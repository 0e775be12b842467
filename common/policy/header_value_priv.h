/* Header values that come from a request. */
#ifndef COMMON_POLICY_HEADER_VALUE_PRIV_H
#define COMMON_POLICY_HEADER_VALUE_PRIV_H

#include "common/policy/policy.h"

/* value without control characters (but tabs inside) and without blanks at its ends, so that header_value_ok holds. Borrowed where nothing had to go,
 * else in a. False: longer than a header value may be, or no memory. */
MUSTUSE bool header_value_clean(struct str value, struct arena *a, struct str *out);
/* The text of parts with the request's values, cleaned; a placeholder without a value adds nothing. False: as above. */
MUSTUSE bool header_value_render(const struct value_part *parts, size_t n, const struct request_view *r, struct arena *a, struct str *out);

#endif
