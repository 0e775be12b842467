/* CORS by the Fetch standard ("HTTP protocol extensions"): which headers a response carries so that a browser lets a page of another origin read it. */
#ifndef COMMON_HTTP_CORS_H
#define COMMON_HTTP_CORS_H

#include "common/http/headers.h"
#include "common/http/response_edit.h"

/* Names of one list; bytes of the allowed methods or request headers, joined, which stand on nothing but the edge's own empty answers; of the
 * exposed headers, which the upstream's responses have to make room for (RESPONSE_ROOM_BYTES); of an origin. */
enum { CORS_NAMES_MAX = 100, CORS_JOINED_MAX = 4096, CORS_EXPOSED_MAX = 1024, CORS_ORIGIN_MAX = 255 };
/* The most that a response's edit holds of a policy, names and their overhead included: on any response, on a preflight's answer. */
enum { CORS_RESPONSE_MAX = CORS_ORIGIN_MAX + CORS_EXPOSED_MAX + 4 * 64, CORS_PREFLIGHT_MAX = CORS_ORIGIN_MAX + 2 * CORS_JOINED_MAX + 6 * 64 };

struct cors_policy {
    struct str name;
    bool any_origin;         /* the one origin "*"; never with credentials */
    struct str_list origins; /* as browsers serialise them, each once; "*" alone stands for all */
    struct str_list methods; /* as written; "*" alone stands for all, never with credentials */
    struct str_list request_headers; /* lower case; "*" stands for all but "authorization", which may stand beside it; never with credentials */
    struct str_list exposed_headers; /* lower case; "*" alone stands for all, never with credentials */
    bool credentials;
    /* What responses say, made once: lists joined by ", ", seconds; empty: the header is left out. */
    struct str allow_methods, allow_headers, expose_headers, max_age;
};

/* A CORS-preflight request: OPTIONS with an Origin and an Access-Control-Request-Method. With a policy the edge answers it; without one it is forwarded
 * like any request. */
bool cors_is_preflight(struct str method, const struct headers *h);

/* What the policy says on a response to this request, added to out; out->cors is set.
 *
 * Any response: where the origin does not depend on the request (any origin, or exactly one), it stands there whatever the request's Origin is, for a cache may
 * keep the response for others; else an origin of the list stands there when the request has exactly that one, and Vary: Origin always. With the allowed
 * origin go Access-Control-Allow-Credentials: true and, on other responses than those to preflights, Access-Control-Expose-Headers.
 *
 * Preflight: also methods, headers and age; all of it only when the browser would go on: the origin is allowed, the method is listed, "*" or one that
 * Fetch never asks about (GET, HEAD, POST; case counts), and every name of Access-Control-Request-Headers is listed (case does not count) or covered by "*". Else it is refused: no
 * Access-Control-* at all, and Vary: Origin unless any origin is allowed.
 *
 * More than one Origin, an empty one and "null" are no allowed origin of a list. More than CORS_NAMES_MAX items in Access-Control-Request-Headers, and
 * more than one Access-Control-Request-Method, are none that a browser sends, and refused. Values are borrowed from the policy. Any bytes may come; the cost is bounded by the policy's lists. */
void cors_respond(const struct cors_policy *p, const struct headers *h, bool preflight, struct response_edit *out);

#endif
