/* The edge-managed headers of a request: what only the edge may tell the upstream (WIRE_MANAGED of schemas/wire.def). */
#ifndef SPOA_REQUEST_MANAGED_H
#define SPOA_REQUEST_MANAGED_H

#include "spoa/request/request.h"

/* One member for each value that a row names; empty: not known. Borrows from the request and from itself. */
struct managed {
    struct str ip, proto, host, country, continent, asnum, ja4, locale;
    char asnum_text[24];
};

/* For a request that goes to the upstream. ip: the client's address as text. */
void managed_read(const struct request *r, struct str ip, struct managed *out);
/* As one list, behind the additions of the rules; *list lies in the request's arena. False: no memory. */
MUSTUSE bool managed_list(struct request *r, const struct managed *m, struct str *list);
/* One by one, for a HAProxy that applies no lists itself. */
void managed_put(struct buf *ack, const struct request *r, const struct managed *m);

#endif
