/* Bytes of a URI that path and query share: which may stand raw, and the escaping of the rest. */
#ifndef COMMON_HTTP_URI_BYTES_PRIV_H
#define COMMON_HTTP_URI_BYTES_PRIV_H

#include "common/base/arena.h"
#include "common/base/str.h"

/* The byte that the escape at s.p[at], which is a '%', stands for; -1 when two hex digits do not follow. */
int uri_escape_at(struct str s, size_t at);
/* A path: RFC 3986 3.3, pchar and '/'. A query: all visible ASCII but '#', since clients send brackets and the like raw and upstreams
 * take them; what would break a request line is escaped. '%' counts as legal: escapes are checked before. */
enum uri_part { URI_PATH, URI_QUERY };
bool uri_bytes_ok(struct str s, enum uri_part part);
/* Percent-encodes (upper-case digits) the bytes that part can't carry raw; borrows s when there are none, else takes
 * at most 3 * s.len bytes. False when memory is refused. */
MUSTUSE bool uri_escape(struct str s, enum uri_part part, struct arena *a, struct str *out);

#endif
