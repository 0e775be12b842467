/* CONFIG: the config rules that match set this request's settings. */
#include "spoa/request/request.h"

enum step_result step_config(struct request *r)
{
    if (!policy_config(r->policy, &r->view, &r->arena, &r->settings, &r->config_hits))
        return request_fail(r, METRIC_INTERNAL);
    r->has_settings = true;
    return STEP_NEXT;
}
