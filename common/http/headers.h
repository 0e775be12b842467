/* Header lists: HAProxy's binary form of a request's headers, and the binary operation lists that it applies. */
#ifndef COMMON_HTTP_HEADERS_H
#define COMMON_HTTP_HEADERS_H

#include "common/base/arena.h"
#include "common/base/str.h"

enum { HEADERS_MAX = 128 };

struct header {
    struct str name; /* lower case, as HAProxy delivers it */
    struct str value;
};

struct headers {
    struct header *items;
    size_t n;
};

/* bin: (varint len, name)(varint len, value)... 00 00, order and duplicates kept. Values are borrowed from bin.
 * False when it is truncated, unterminated, has bytes behind its end, an empty name, or more than HEADERS_MAX
 * headers, or memory is refused. */
MUSTUSE bool headers_decode(struct str bin, struct arena *a, struct headers *out);
/* The first value of that name (ASCII case ignored); false when absent. */
bool headers_get(const struct headers *h, struct str name, struct str *value);
size_t headers_count(const struct headers *h, struct str name);
/* The value of a header that stands there once; false when it is absent or stands there more often. */
bool headers_get_single(const struct headers *h, struct str name, struct str *value);
/* All values of that name as one, joined by ", " (RFC 9110 5.3): borrowed where there is one, empty where there is none. False: no memory. */
MUSTUSE bool headers_join(const struct headers *h, struct str name, struct arena *a, struct str *out);

/* Operation lists for `del-headers-bin` and `add-headers-bin` (and edge.lua, which reads the same bytes):
 * deletions  (varint len, name)... 00      additions  (varint len, name)(varint len, value)... 00 00
 * HAProxy validates nothing in them: header_name_ok and header_value_ok must hold before a put. */
void headers_put_del(struct buf *b, struct str name);
void headers_end_del(struct buf *b);
void headers_put_add(struct buf *b, struct str name, struct str value);
void headers_end_add(struct buf *b);

bool header_name_ok(struct str name); /* RFC 9110 token, at most 256 bytes */
/* RFC 9110 5.5: no control characters but HTAB, no DEL; no blank at either end; at most 8 KiB. */
bool header_value_ok(struct str value);
/* Whether an upstream may take one name for the other: case does not count, and '_' is read as '-'. */
bool header_names_alike(struct str a, struct str b);
/* A name that no rule may write or read, whatever its case and with '_' read as '-': schemas/reserved_headers.def.
 * Names of the deployment (source headers, ingress secret) are checked by their owner. */
bool header_name_reserved(struct str name);

#endif
