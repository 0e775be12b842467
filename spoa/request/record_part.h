/* What a request's verdict says in its access record (spoa/record/rec.h). */
#ifndef SPOA_REQUEST_RECORD_PART_H
#define SPOA_REQUEST_RECORD_PART_H

#include "spoa/record/rec.h"
#include "spoa/request/request.h"

/* b: empty, of REC_MAX bytes, which hold every request's part. client: the client's address as text; empty: unknown. */
void record_part_put(struct buf *b, const struct request *r, struct str client);

#endif
