/* HEADERS: the operations of the header rules that match, as lists for HAProxy to apply. */
#include "spoa/request/request.h"

/* HAProxy's buffer for a request, what each header costs in it besides its bytes, and what the edge's own headers take. A header that finds no
 * room there is left out without an error (Lua), and a target that has grown and finds none ends in a 500: a request that leaves none is refused
 * here. */
enum { BUFFER_BYTES = 65536, HEADER_OVERHEAD = 16, RESERVED_BYTES = 4096 };

static bool fits(const struct request *r)
{
    const size_t came = r->args.url.len, goes = r->identity.forward_uri.len;
    size_t need = RESERVED_BYTES + r->args.method.len + r->edit.add.len;
    /* The one replaces the other; only where additions follow must there be room for both. */
    need += r->edit.add.len > 0 ? came + goes : came > goes ? came : goes;
    need += (r->edit.result.n + r->headers.n) * HEADER_OVERHEAD;
    for (size_t i = 0; i < r->headers.n; i++)
        need += r->headers.items[i].name.len + r->headers.items[i].value.len;
    return need <= BUFFER_BYTES;
}

enum step_result step_headers(struct request *r)
{
    if (!policy_headers(r->policy, &r->view, &r->arena, &r->edit, &r->header_hits))
        return request_fail(r, METRIC_INTERNAL);
    if ((r->edit.add.len > 0 || r->identity.uri_changed) && !fits(r))
        return request_refuse(r, DECISION_BAD_REQUEST, KIND_BAD_REQUEST, 0);
    return STEP_NEXT;
}
