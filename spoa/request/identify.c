/* IDENTIFY: who asks for what, in the one form everything later relies on. */
#include "common/policy/identify.h"

#include "spoa/request/handshake.h"
#include "spoa/request/request.h"

/* Older than 1.0 has no headers to be judged by, whatever the client put there; newer than 2.0 is nothing that HAProxy serves here. */
static bool version_ok(struct str version)
{
    return version.len == 3 && version.p[0] >= '1' && version.p[0] <= '2' && version.p[1] == '.';
}

enum step_result step_identify(struct request *r)
{
    const struct ingress *ingress = r->context->settings.ingress;
    struct ingress_connection connection = {
        .src = r->args.src,
        .has_src = r->args.has_src,
        .tls = r->args.tls,
        .http_version = r->args.version,
    };
    struct ingress_client client;
    if (ingress->handshake && !handshake_facts(&r->args, &r->arena, &connection.handshake))
        return request_fail(r, METRIC_INTERNAL);
    if (!ingress_identify(ingress, &connection, &r->headers, &r->arena, &client))
        return request_fail(r, METRIC_INTERNAL);
    const struct identify_input in = {
        .method = r->args.method,
        .url = r->args.url,
        .headers = &r->headers,
        .client = &client,
        .http_version = r->args.version,
    };
    identify(&in, &r->arena, &r->identity);
    r->view.facts = r->identity.facts;
    r->view.facts.deployment = &ingress->deployment;
    r->view.headers = &r->headers;
    if (r->identity.identity_refusal != IDENTITY_OK)
        counter_add(&r->context->counters.identity_refusals[r->identity.identity_refusal], 1);

    if (r->identity.refused == DECISION_ALLOW && !version_ok(r->args.version))
        return request_refuse(r, DECISION_BAD_REQUEST, KIND_BAD_REQUEST, 0);
    if (r->identity.refused == DECISION_ALLOW)
        return STEP_NEXT;
    if (r->identity.refused == DECISION_UNAVAILABLE)
        return request_fail(r, METRIC_INTERNAL);
    return request_refuse(r, r->identity.refused, KIND_BAD_REQUEST, 0);
}
