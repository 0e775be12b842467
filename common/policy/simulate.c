/* Simulation: a request from JSON, through the same decisions as live traffic, and what they were as JSON. */
#include "common/policy/simulate_priv.h"

enum { ARENA_BLOCK = 16 * 1024, ARENA_LIMIT = 32 * 1024 * 1024 };

static void reject(struct simulation *s, const char *why, enum kind kind)
{
    s->rejected = why;
    s->answer = s->settings.responses[kind];
    s->status = s->answer->status;
}

/* What refuses the request. A doubtful host is a doubt about who is asked for. */
static const char *refusal(enum decision refused)
{
    return refused == DECISION_BAD_REQUEST ? "identity" : decision_name(refused);
}

/* DECISION_UNAVAILABLE: no memory. */
static enum decision identified(struct simulation *s, struct arena *a)
{
    struct identify_input input = s->input;
    struct identity id;

    input.has_src = true; /* live traffic without an address never gets here; a question without one is answered */
    identify(&input, a, &id);
    s->view = (struct request_view){.facts = id.facts, .headers = &s->headers};
    s->view.facts.has_ip = s->input.has_src;
    s->view.facts.deployment = s->deployment;
    s->view.facts.viewer = s->viewer;
    s->view.facts.verified_bot = s->verified_bot;
    if (s->policy && !s->says_verified_bot)
        s->view.facts.verified_bots = &s->policy->verified_bots;
    return id.refused;
}

static void answer_preflight(struct simulation *s)
{
    s->rejected = decision_name(DECISION_PREFLIGHT);
    s->status = 204;
}

/* The token of the request, where one is asked for: without an issuer named it is of the first that is accepted. */
static void check_token(struct simulation *s)
{
    size_t issuer = s->issuer;

    if (s->settings.auth == AUTH_NONE || (s->settings.auth == AUTH_OPTIONAL && !s->has_claims))
        return;
    if (!s->has_claims) {
        reject(s, "auth", KIND_UNAUTHORIZED);
        s->challenge = "Bearer";
        return;
    }
    for (size_t i = s->policy->n_issuers; !s->has_issuer && i-- > 0;)
        if ((s->settings.accepted >> i & 1) != 0)
            issuer = i;
    if ((s->settings.accepted >> issuer & 1) == 0) {
        reject(s, "auth", KIND_UNAUTHORIZED);
        s->challenge = "Bearer error=\"invalid_token\"";
        return;
    }
    s->verified_by = &s->policy->issuers[issuer];
    s->view.facts.claims = &s->claims;
}

/* For struct expr_facts. */
static struct str choose_locale(void *ctx, struct str accept_language)
{
    const struct locale_matcher *m = ((const struct simulation *) ctx)->policy->locale.matcher;

    return locale_tag(m, locale_choose(m, accept_language));
}

/* False: no memory. */
static bool decide(struct simulation *s, struct arena *a)
{
    enum decision refused = identified(s, a);

    policy_default_settings(s->policy, &s->settings);
    if (refused == DECISION_UNAVAILABLE)
        return false;
    if (refused != DECISION_ALLOW) {
        reject(s, refusal(refused), KIND_BAD_REQUEST);
        return true;
    }
    s->reached = SIMULATE_CONFIG;
    if (!policy_config(s->policy, &s->view, a, &s->settings, &s->config_hits))
        return false;
    if (s->settings.locale) {
        s->view.facts.locale = choose_locale;
        s->view.facts.locale_ctx = s;
    }
    const bool preflight = s->settings.cors && s->settings.block != BLOCK_BLOCK && cors_is_preflight(s->input.method, &s->headers);
    if (s->settings.cors)
        cors_respond(s->settings.cors, &s->headers, preflight, &s->response_edit);
    if (s->settings.block == BLOCK_BLOCK)
        reject(s, "block", KIND_FORBIDDEN);
    else if (preflight)
        answer_preflight(s);
    else
        check_token(s);
    if (s->rejected)
        return true;

    s->reached = SIMULATE_LIMITS;
    if (!policy_select_limits(s->policy, &s->view, a, 0, &s->limits) || !simulate_find_quiet_limits(s, a))
        return false;
    if (s->limits.reject_missing_key) {
        reject(s, "missing_key", KIND_BAD_REQUEST);
        return true;
    }
    s->reached = SIMULATE_HEADERS;
    return policy_headers(s->policy, &s->view, a, &s->edit, &s->header_hits);
}

static json_t *told(const struct simulation *s, const json_t *document)
{
    json_t *out = simulate_result(s);
    bool ok = out != NULL;

    if (ok && document)
        ok = simulate_put(out, "explain", simulate_explanation(s, document));
    return simulate_finished(out, ok);
}

bool simulate_at(const struct policy *p, const struct simulate_options *options, const struct jx *request, json_t **out, struct rule_hits *quiet_limits)
{
    struct errlist *errors = request->doc->errors;
    size_t n_before = errors->n + errors->n_dropped;
    struct arena a;
    struct jx_doc doc = {.arena = &a, .errors = errors}; /* texts live as long as the simulation */
    struct jx here = *request;
    struct simulation s = {.policy = p, .deployment = options->deployment};
    json_t *result = NULL;

    here.doc = &doc;
    arena_init(&a, ARENA_BLOCK, ARENA_LIMIT);
    simulate_request(&here, &a, &s);
    if (errors->n + errors->n_dropped == n_before) {
        bool decided = decide(&s, &a);
        result = decided ? told(&s, options->document) : NULL;
        if (!decided && s.reached == SIMULATE_HEADERS)
            jx_fault(request, ERR_LIMIT_EXCEEDED, "the header rules make more headers of this request than the edge can send on (or memory is short), so it answers 503: give it fewer or shorter ones, or copy less");
        else if (!result)
            jx_fault(request, ERR_NO_MEMORY, "no memory for this simulation");
    }
    arena_release(&a);
    if (result) {
        *out = result;
        *quiet_limits = s.quiet_limits;
    }
    return result != NULL;
}

bool simulate(const struct policy *p, const struct simulate_options *options, const json_t *request, json_t **out, struct errlist *errors)
{
    struct jx_doc doc = {.errors = errors};
    struct jx root = jx_root(request, &doc);
    struct rule_hits quiet_limits;

    return simulate_at(p, options, &root, out, &quiet_limits);
}

bool simulate_facts(const struct expr_deployment *deployment, const json_t *request, struct arena *a, struct expr_facts *out, struct errlist *errors)
{
    const size_t n_before = errors->n + errors->n_dropped;
    struct jx_doc doc = {.arena = a, .errors = errors};
    struct jx root = jx_root(request, &doc);
    struct simulation *s = ARENA_NEW(a, struct simulation); /* facts borrow from it */

    if (!s) {
        jx_fault(&root, ERR_NO_MEMORY, "no memory for this request");
        return false;
    }
    s->deployment = deployment;
    simulate_request(&root, a, s);
    if (errors->n + errors->n_dropped != n_before)
        return false;
    enum decision refused = identified(s, a);
    if (refused == DECISION_UNAVAILABLE)
        jx_fault(&root, ERR_NO_MEMORY, "no memory for this request");
    else if (refused != DECISION_ALLOW)
        jx_fault(&root, ERR_BAD_VALUE, "no rule sees this request: the edge answers it 400 before (%s)", refusal(refused));
    if (refused != DECISION_ALLOW)
        return false;
    *out = s->view.facts;
    out->claims = s->has_claims ? &s->claims : NULL;
    return true;
}
