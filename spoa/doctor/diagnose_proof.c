/* Why the request came back without a proof. */
#include "spoa/doctor/diagnose_priv.h"

static const char name[] = "proof";

/* What the agents saw while the request was on its way; other requests count as well. */
struct seen {
    size_t n_pages, n_silent;
    uint64_t n_notifies, n_healthchecks, n_mismatches;
};

/* A counter that has fallen is another process's. */
static uint64_t rise(uint64_t before, uint64_t after)
{
    return after > before ? after - before : 0;
}

static struct seen look(const struct doctor_evidence *e)
{
    struct seen s = {0};
    for (size_t i = 0; i < e->n_agents; i++) {
        const struct doctor_agent *a = &e->agents[i];
        s.n_silent += a->answer.reach == DOCTOR_SILENT;
        if (!a->has_page)
            continue;
        s.n_pages++;
        s.n_notifies += rise(a->before.n_notifies, a->after.n_notifies);
        s.n_healthchecks += rise(a->before.n_healthchecks, a->after.n_healthchecks);
        s.n_mismatches += rise(a->before.n_contract_mismatches, a->after.n_contract_mismatches);
    }
    return s;
}

static void explain_503(const struct doctor_evidence *e, const struct seen *s, struct doctor_report *out)
{
    const char *at = e->front.at;
    if (s->n_mismatches > 0)
        doctor_say(out, name, false, "the agents do not understand what HAProxy on %s asks: it still runs the configuration of another build; reload it "
                   "(SIGUSR2 to run)", at);
    else if (s->n_notifies > 0)
        doctor_say(out, name, false, "the agents were asked, but no answer of theirs reached HAProxy on %s within EDGE_AGENT_TIMEOUT: they are too slow; "
                   "look for CPU that others take, or raise EDGE_AGENT_TIMEOUT", at);
    else if (s->n_silent > 0)
        doctor_say(out, name, false, "HAProxy on %s got no verdict in time: an agent is frozen, see above", at);
    else if (s->n_pages == 0 && health_has_no_agent(e))
        doctor_say(out, name, false, "HAProxy on %s refused the request because no agent answers: see the agents above", at);
    else if (s->n_pages < e->n_agents)
        doctor_say(out, name, false, "HAProxy on %s refused the request, and not every agent could be asked why: first mend what is wrong with the agents "
                   "above", at);
    else if (s->n_healthchecks > 0)
        doctor_say(out, name, false, "HAProxy on %s refused the request and asked no agent, although it checks their health: it takes none without a "
                   "policy or stopping, see above; else an agent has just come back: run the doctor again", at);
    else
        doctor_say(out, name, false, "HAProxy on %s refused the request and has no connection to the agents that answered the doctor: it looks for them in "
                   "another EDGE_RUN_DIR, runs an older configuration or was told to leave them alone; reload it (SIGUSR2 to run)", at);
}

/* Answered, but by whom? */
static void explain_answer(const struct doctor_evidence *e, const struct seen *s, struct doctor_report *out)
{
    const char *at = e->front.at;
    const unsigned status = e->front.status;
    if (!health_is_haproxys(e))
        doctor_say(out, name, false, "%s answered %u, but without a proof, and no HAProxy of this edge answers on %s: something else listens there; see "
                   "which program has the port (ss -ltnp), and correct EDGE_LISTEN", at, status, e->health.at);
    else if (s->n_pages < e->n_agents && !health_has_no_agent(e))
        doctor_say(out, name, false, "%s answered %u, and whether an agent decided so can't be told, for not every agent could be asked: first mend what is "
                   "wrong with the agents above", at, status);
    else if (s->n_notifies > 0)
        doctor_say(out, name, false, "%s answered %u without a proof, although the agents were asked meanwhile: the verdict came too late, or it was about "
                   "other requests and this one went by them; run the doctor again, and compare HAProxy's configuration with this build's", at, status);
    else if (e->fails_open)
        doctor_say(out, name, false, "the request was forwarded without a verdict (status %u): EDGE_ON_AGENT_FAILURE is open and HAProxy on %s has no agent "
                   "to ask; until it has, no policy holds: no block, no limit; see the agents above", status, at);
    else
        doctor_say(out, name, false, "the request was forwarded without a verdict (status %u): HAProxy on %s asked no agent, so it runs without the edge's "
                   "filter or with EDGE_ON_AGENT_FAILURE=open; nothing of the policy holds; start it by `edge-spoa run` with this build's haproxy.cfg",
                   status, at);
}

/* While failing open HAProxy makes no 503 of its own. */
void diagnose_proof(const struct doctor_evidence *e, struct doctor_report *out)
{
    const struct doctor_answer *f = &e->front;
    const struct seen s = look(e);
    if (e->proof == DOCTOR_PROOF_GOOD)
        doctor_say(out, name, true, "the request reached agent %u, and its verdict came back", e->proven_by);
    else if (e->proof == DOCTOR_PROOF_FALSE)
        doctor_say(out, name, false, "%s answered with a proof that is none of these agents': something pretends to be them; see which program has the port "
                   "(ss -ltnp)", f->at);
    else if (f->reach != DOCTOR_ANSWERED)
        doctor_say(out, name, false, "no answer, no proof: see front-door");
    else if (f->status == 503 && strcmp(f->text, "overloaded") == 0)
        doctor_say(out, name, false, "HAProxy on %s is at its cap of requests and refuses more: see what holds them open, or raise MAX_INFLIGHT", f->at);
    else if (f->status == 503 && health_is_haproxys(e) && (!e->fails_open || s.n_mismatches > 0))
        explain_503(e, &s, out);
    else
        explain_answer(e, &s, out);
}
