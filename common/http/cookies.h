/* Cookies of a request (RFC 6265 4.2), in one header as HTTP/1 sends them or in several as HTTP/2 may. */
#ifndef COMMON_HTTP_COOKIES_H
#define COMMON_HTTP_COOKIES_H

#include "common/base/arena.h"
#include "common/http/headers.h"
#include "common/http/pairs.h"

/* Every Cookie header is cut at ';' and each part at its first '=', without blanks around either half; quotes and
 * escapes stay as sent. A part without '=' or without a name is no cookie and left out. Order and duplicates are kept.
 * Borrows the headers' bytes; takes at most 32 bytes a byte of them. False when memory is refused. */
MUSTUSE bool cookies_parse(const struct headers *headers, struct arena *a, struct pairs *out);

#endif
