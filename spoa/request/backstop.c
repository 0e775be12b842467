/* BACKSTOP: a client that floods this edge is refused from its own memory, before anything costs more. */
#include "spoa/request/request.h"

enum step_result step_backstop(struct request *r)
{
    struct backstop *b = r->lease->guard->backstop;
    struct rate_verdict verdict;
    if (b == NULL)
        return STEP_NEXT;
    if (!r->view.facts.has_ip) /* who has none is refused by IDENTIFY */
        return request_fail(r, METRIC_INTERNAL);
    if (backstop_check(b, &r->view.facts.ip, clock_mono_us(r->context->settings.clock) / 1000, &verdict) == RATE_UNTRACKED)
        counter_add(&r->context->counters.plain[METRIC_BACKSTOP_UNTRACKED], 1);
    if (verdict.allowed)
        return STEP_NEXT;
    return request_refuse(r, DECISION_BACKSTOP, KIND_RATE_LIMITED, (uint32_t) rate_seconds_up(verdict.retry_after_ms));
}
