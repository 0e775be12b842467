/* Forms of texts in a policy. Any bytes may be asked about; nothing is kept. */
#ifndef COMMON_POLICY_SHAPES_PRIV_H
#define COMMON_POLICY_SHAPES_PRIV_H

#include "common/http/cors.h"

enum { SHAPE_ORIGIN_MAX = CORS_ORIGIN_MAX, SHAPE_URL_MAX = 2048 };

/* An origin as browsers serialise it (RFC 6454 6.2): scheme://host or scheme://host:port, in lower case, without the scheme's own port. NULL when
 * it is one, else what is wrong with it. */
const char *shape_origin_fault(struct str s);
/* An absolute https URL without user, password and fragment (RFC 3986), as our own requests can use it. NULL, or what is wrong. */
const char *shape_https_fault(struct str s);

#endif
