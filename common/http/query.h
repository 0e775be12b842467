/* Parameters of a query (application/x-www-form-urlencoded, as browsers and most upstreams read it). */
#ifndef COMMON_HTTP_QUERY_H
#define COMMON_HTTP_QUERY_H

#include "common/base/arena.h"
#include "common/http/pairs.h"

/* query: without its '?'. Pairs stand between '&', a value behind the first '='; a pair without '=' has an empty value,
 * and an empty pair is none. In names and values '+' is a blank and %xx the byte it stands for, which may be any: the
 * result is not always UTF-8. A pair that target_clean_query drops (an escape that is none, a ';') is left out here too.
 * Order and duplicates are kept. Borrows query where nothing was decoded; takes at most 33 bytes a byte of it. False when
 * memory is refused. */
MUSTUSE bool query_parse(struct str query, struct arena *a, struct pairs *out);

#endif
