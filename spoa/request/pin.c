/* PIN: one policy for the rest of this request, whatever is published meanwhile. */
#include "spoa/request/request.h"

enum step_result step_pin(struct request *r)
{
    if (!request_pin(r))
        return request_fail(r, METRIC_NO_POLICY);
    r->view.facts.verified_bots = &r->policy->verified_bots;
    return STEP_NEXT;
}
