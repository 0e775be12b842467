/* BLOCK: the block setting answers 403 before anything costs more. */
#include "spoa/request/request.h"

enum step_result step_block(struct request *r)
{
    switch (r->settings.block) {
    case BLOCK_BLOCK:
        return request_refuse(r, DECISION_BLOCK, KIND_FORBIDDEN, 0);
    case BLOCK_LOG:
        r->verdict.decision = DECISION_WOULD_BLOCK;
        return STEP_NEXT;
    case BLOCK_UNSET:
    case BLOCK_NONE:
        return STEP_NEXT;
    }
    return request_fail(r, METRIC_INTERNAL);
}
