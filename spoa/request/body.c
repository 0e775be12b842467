/* BODY: a body that is known to be too large is refused before a byte of it is forwarded; what comes later is counted by HAProxy. */
#include "common/base/parse.h"
#include "spoa/request/request.h"

/* What Content-Length says, which HAProxy has found to be one number; it has none of its own for the largest. 0: nothing. */
static uint64_t announced_bytes(const struct request *r)
{
    struct str text = STR_NONE;
    uint64_t n = 0;
    headers_get(&r->headers, STR("content-length"), &text);
    if (text.len > 0 && !parse_digits(text, UINT64_MAX, &n))
        return UINT64_MAX;
    return n;
}

enum step_result step_body(struct request *r)
{
    if (r->args.body_bytes > r->settings.body_limit || announced_bytes(r) > r->settings.body_limit)
        return request_refuse(r, DECISION_BODY_LIMIT, KIND_PAYLOAD_TOO_LARGE, 0);
    return STEP_NEXT;
}
