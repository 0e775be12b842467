/* What the edge changes on a response, whoever makes it: headers that go, then headers that come. */
#ifndef COMMON_HTTP_RESPONSE_EDIT_H
#define COMMON_HTTP_RESPONSE_EDIT_H

#include "common/http/headers.h"

/* All that the features which use it can ask for together: RateLimit-Policy and RateLimit; seven of CORS; WWW-Authenticate. */
enum { RESPONSE_DELETED_MAX = 2, RESPONSE_ADDED_MAX = 10 };
/* tune.maxrewrite of haproxy.cfg: so much is sure to find room on a response, whose body may have filled the rest of HAProxy's buffer. Beyond it
 * HAProxy 3.4 withholds the response, and 3.2 leaves headers of a list out, or withholds it for one with a line of its own. */
enum { RESPONSE_ROOM_BYTES = 4096 };

/* Names are lower case, values fulfil header_value_ok; both are borrowed for as long as the request lasts. */
struct response_edit {
    bool cors; /* a CORS policy applied: every Access-Control-* of the upstream goes first */
    bool full; /* more was asked for than there is room: a fault of ours */
    struct str deleted[RESPONSE_DELETED_MAX];
    struct header added[RESPONSE_ADDED_MAX];
    size_t n_deleted, n_added;
};

void response_edit_clear(struct response_edit *e);
void response_edit_delete(struct response_edit *e, struct str name);
void response_edit_add(struct response_edit *e, struct str name, struct str value);
/* Names and values as HAProxy's binary lists (common/http/headers.h); a list of nothing is empty. False: no memory, or it was full. */
MUSTUSE bool response_edit_lists(const struct response_edit *e, struct arena *a, struct str *deleted, struct str *added);

#endif
