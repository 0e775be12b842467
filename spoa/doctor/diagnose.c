/* The checks in the order in which they are said, and those of the two doors. */
#include "spoa/doctor/diagnose.h"

#include <stdarg.h>

#include "spoa/doctor/diagnose_priv.h"

void doctor_say(struct doctor_report *out, const char *name, bool ok, const char *fmt, ...)
{
    struct doctor_check *check = &out->checks[out->n++];
    va_list args;
    snprintf(check->name, sizeof check->name, "%s", name);
    check->ok = ok;
    out->n_wrong += ok ? 0 : 1;
    va_start(args, fmt);
    vsnprintf(check->text, sizeof check->text, fmt, args);
    va_end(args);
}

/* The reasons of haproxy.cfg by their first words; what follows is for people. */
static bool health_says(const struct doctor_evidence *e, unsigned status, const char *words)
{
    const struct doctor_answer *h = &e->health;
    return h->reach == DOCTOR_ANSWERED && h->status == status && str_starts(str_of(h->text), str_of(words));
}

bool health_has_no_agent(const struct doctor_evidence *e)
{
    return health_says(e, 503, "no agent");
}

bool health_is_haproxys(const struct doctor_evidence *e)
{
    return health_says(e, 200, "ready") || health_has_no_agent(e) || health_says(e, 503, "draining");
}

static void diagnose_health(const struct doctor_evidence *e, struct doctor_report *out)
{
    static const char name[] = "health", setting[] = "EDGE_HEALTH_LISTEN";
    const struct doctor_answer *h = &e->health;
    if (health_says(e, 200, "ready"))
        doctor_say(out, name, true, "HAProxy is ready, says %s", h->at);
    else if (health_has_no_agent(e))
        doctor_say(out, name, false,
                   "HAProxy, asked at %s, has no agent that passes its check: it takes none that is down, without a policy or stopping, and none "
                   "whose socket is in another EDGE_RUN_DIR; mend what is wrong with the agents above", h->at);
    else if (health_says(e, 503, "draining"))
        doctor_say(out, name, false, "HAProxy, asked at %s, is draining: `edge-spoa run` was told to end, or to wait; start it again", h->at);
    else if (h->reach == DOCTOR_REFUSED)
        doctor_say(out, name, false, "nothing listens on %s: HAProxy is not running, or %s is another one than `edge-spoa run` has", h->at, setting);
    else if (h->reach == DOCTOR_SILENT)
        doctor_say(out, name, false, "%s takes connections but does not answer: HAProxy is frozen or starved; look at its process", h->at);
    else if (h->reach == DOCTOR_FAILED)
        doctor_say(out, name, false, "%s can't be asked: %s; correct %s", h->at, h->trouble, setting);
    else
        doctor_say(out, name, false, "what answers on %s is not this edge's HAProxy: another program has that port, or %s is another one than "
                   "`edge-spoa run` has", h->at, setting);
}

static void diagnose_front(const struct doctor_evidence *e, struct doctor_report *out)
{
    static const char name[] = "front-door";
    const struct doctor_answer *f = &e->front;
    switch (f->reach) {
    case DOCTOR_ANSWERED:
        doctor_say(out, name, true, "%s answers", f->at);
        return;
    case DOCTOR_REFUSED:
        if (health_is_haproxys(e))
            doctor_say(out, name, false, "nothing listens on %s although HAProxy runs (%s answers): EDGE_LISTEN is another one than `edge-spoa run` "
                       "has; give the doctor the same environment", f->at, e->health.at);
        else
            doctor_say(out, name, false, "nothing listens on %s: HAProxy is not running; start `edge-spoa run`, or give the doctor its EDGE_LISTEN", f->at);
        return;
    case DOCTOR_SILENT:
        doctor_say(out, name, false, "%s takes connections but did not answer in time: HAProxy is frozen or starved, or the upstream is slow and the "
                   "request went there", f->at);
        return;
    case DOCTOR_CLOSED:
        if (e->behind_balancers && health_is_haproxys(e))
            doctor_say(out, name, false, "%s closed the connection without an answer: it serves the balancers of EDGE_PROXY_PROTOCOL only, and this "
                       "machine's own address is not among them; add it (127.0.0.1, as a rule) for the doctor to be heard", f->at);
        else
            doctor_say(out, name, false, "%s closed the connection without an answer: something else than this edge listens there, or HAProxy is at its "
                       "limit of connections; see which program has the port (ss -ltnp)", f->at);
        return;
    case DOCTOR_NO_HTTP:
        doctor_say(out, name, false, "what %s answers is not HTTP: something else than this edge, or its TLS listener, has that port; see which program "
                   "it is (ss -ltnp), and correct EDGE_LISTEN", f->at);
        return;
    case DOCTOR_FAILED:
        doctor_say(out, name, false, "%s can't be reached: %s; correct EDGE_LISTEN", f->at, f->trouble);
        return;
    }
}

void doctor_diagnose(const struct doctor_evidence *e, struct doctor_report *out)
{
    out->n = out->n_wrong = 0;
    for (size_t i = 0; i < e->n_agents; i++)
        diagnose_agent(e, i, out);
    diagnose_health(e, out);
    diagnose_front(e, out);
    diagnose_proof(e, out);
}
