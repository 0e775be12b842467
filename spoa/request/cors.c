/* CORS: a preflight that a policy applies to is answered here, ahead of tokens and limits: a browser sends it without the user's credentials, and on its own. */
#include "spoa/request/request.h"

enum step_result step_cors(struct request *r)
{
    if (r->settings.cors == NULL || !cors_is_preflight(r->args.method, &r->headers))
        return STEP_NEXT;
    r->verdict.decision = DECISION_PREFLIGHT;
    r->verdict.answer = r->verdict.preflight = true;
    return STEP_DONE;
}
