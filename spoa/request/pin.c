/* PIN: one policy for the rest of this request, whatever is published meanwhile. */
#include "spoa/request/request.h"

enum step_result step_pin(struct request *r)
{
    return request_pin(r) ? STEP_NEXT : request_fail(r, METRIC_NO_POLICY);
}
