/* DOCTOR: a request that names a live challenge of this agent is answered by the agent itself, whatever the policy, and never forwarded. */
#include "spoa/doctor/page.h"
#include "spoa/request/request.h"

static const struct template *page_of(struct request *r, const char proof[static CHALLENGE_PROOF_HEX])
{
    struct template *page = ARENA_NEW(&r->arena, struct template);
    struct template_part *part = ARENA_NEW(&r->arena, struct template_part);
    char *storage = arena_take_bytes(&r->arena, DOCTOR_PROOF_PAGE_MAX);
    if (page == NULL || part == NULL || storage == NULL)
        return NULL;
    struct buf body;
    buf_init(&body, storage, DOCTOR_PROOF_PAGE_MAX);
    doctor_proof_put(&body, proof, r->context->settings.agent_index);
    *part = (struct template_part){.kind = TEMPLATE_LITERAL, .text = buf_str(&body)};
    *page = (struct template){
        .name = STR("doctor"),
        .status = 400,
        .content_type = STR("application/json"),
        .parts = part,
        .n_parts = 1,
        .rendered_max = body.len,
    };
    return body.full ? NULL : page;
}

enum step_result step_doctor(struct request *r)
{
    struct challenges *challenges = r->context->settings.challenges;
    if (challenges == NULL || !challenges_outstanding(challenges))
        return STEP_NEXT;
    struct str header = STR_NONE;
    char proof[CHALLENGE_PROOF_HEX];
    headers_get(&r->headers, STR("edge-doctor"), &header);
    if (!challenges_redeem(challenges, header, clock_mono_us(r->context->settings.clock) / 1000, proof))
        return STEP_NEXT;
    r->verdict.page = page_of(r, proof);
    if (r->verdict.page == NULL)
        return request_fail(r, METRIC_INTERNAL);
    return request_refuse(r, DECISION_BAD_REQUEST, KIND_BAD_REQUEST, 0);
}
