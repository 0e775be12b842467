/* BODY: a body that is known to be too large is refused before a byte of it is forwarded; what comes later is counted by HAProxy. */
#include "spoa/request/request.h"

enum step_result step_body(struct request *r)
{
    if (r->args.body_bytes > r->settings.body_limit)
        return request_refuse(r, DECISION_BODY_LIMIT, KIND_PAYLOAD_TOO_LARGE, 0);
    return STEP_NEXT;
}
