/* HEADERS: the operations of the header rules that match, as lists for HAProxy to apply. */
#include "spoa/request/request.h"

enum step_result step_headers(struct request *r)
{
    if (!policy_headers(r->policy, &r->view, &r->arena, &r->edit, &r->header_hits))
        return request_fail(r, METRIC_INTERNAL);
    return STEP_NEXT;
}
