/* The request target (RFC 9112 3.2) in the forms HTTP/1 and HTTP/2 deliver it, cut into path and query; host names. */
#ifndef COMMON_HTTP_TARGET_H
#define COMMON_HTTP_TARGET_H

#include "common/base/arena.h"
#include "common/base/str.h"

struct target {
    struct str path;  /* begins with '/', or "" when the target has none (CONNECT, "*", "http://host") */
    struct str query; /* behind the first '?', without it */
    bool has_query;   /* "/a?" has an empty query */
    bool absolute;    /* "scheme://authority...": HTTP/2 always, HTTP/1 when the client wrote it so */
    struct str authority; /* of an absolute target, as sent */
};

/* url as HAProxy delivers it: origin-form "/a?b", absolute-form "http://host/a?b" (HTTP/2 always), "*" or
 * authority-form. Whatever has no path beginning with '/' gives an empty path, which path_normalise refuses. That
 * includes an absolute-form without a path: HAProxy writes HTTP/2's "OPTIONS *" so, and adds the "/" itself where an
 * HTTP/1 target has neither path nor query. */
void target_split(struct str url, struct target *out);

/* Host for rules and logs: lower case, without port, brackets or one trailing dot. Lower-casing takes from the arena
 * when needed. False when memory is refused. The port is what stands behind the first ':' (or the ']'), whether it
 * is a number or not; an IPv6 address without brackets stays whole. */
MUSTUSE bool target_host(struct str host_header, struct arena *a, struct str *out);

/* A target holds only visible ASCII without '#'. HAProxy refuses the rest over HTTP/1, but not over HTTP/2. */
bool target_bytes_ok(struct str url);

/* The query without parameters that do not parse (a key or value with a '%' not followed by two hex digits, or a ';'
 * anywhere in the pair), with bytes that would break a request line (controls, blanks, '#', not ASCII) percent-encoded; all else, empty pairs
 * too, stays in order and byte for byte. *out borrows query when nothing changes, else takes at most 4 * query.len
 * bytes. */
MUSTUSE bool target_clean_query(struct str query, struct arena *a, struct str *out);

#endif
