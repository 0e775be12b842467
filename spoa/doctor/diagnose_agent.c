/* What an agent says of itself: reachable, policy, store, clocks. */
#include <stdlib.h>

#include "spoa/doctor/diagnose_priv.h"

static const unsigned long long clock_tolerance_ms = 1000;

/* "agent-0" */
static const char *name_of(const char *what, size_t agent, char out[static DOCTOR_WORD_MAX])
{
    snprintf(out, DOCTOR_WORD_MAX, "%s-%zu", what, agent);
    return out;
}

static void diagnose_unreached(const struct doctor_agent *a, size_t i, struct doctor_report *out)
{
    const struct doctor_answer *at = &a->answer;
    char name[DOCTOR_WORD_MAX];
    name_of("agent", i, name);
    switch (at->reach) {
    case DOCTOR_REFUSED:
        doctor_say(out, name, false, "nothing listens on %s: agent %zu is down, or EDGE_INTERNAL_LISTEN or EDGE_AGENTS differ from those of "
                   "`edge-spoa run`; run restarts an agent that ends: read its lines to see why it does", at->at, i);
        return;
    case DOCTOR_SILENT:
        doctor_say(out, name, false, "%s takes connections but does not answer: agent %zu is frozen or starved; see the state of its process (ps): "
                   "continue it (SIGCONT) or end it, then run starts another one", at->at, i);
        return;
    case DOCTOR_FAILED:
        doctor_say(out, name, false, "%s can't be asked: %s; correct EDGE_INTERNAL_LISTEN", at->at, at->trouble);
        return;
    case DOCTOR_ANSWERED:
    case DOCTOR_CLOSED:
    case DOCTOR_NO_HTTP:
        doctor_say(out, name, false, "what answers on %s is no agent that this doctor understands%s%s: another program has the port, or the agent is "
                   "of another build; correct EDGE_INTERNAL_LISTEN, or exchange the agents (SIGUSR1 to run)", at->at,
                   a->page_fault[0] != '\0' ? ": " : "", a->page_fault);
        return;
    }
}

static void diagnose_policy(const struct doctor_page *p, size_t i, struct doctor_report *out)
{
    static const char mend[] = "`edge-spoa check` shows every fault of the file; mend it and send SIGHUP to run";
    char name[DOCTOR_WORD_MAX];
    name_of("policy", i, name);
    if (p->policy_version == 0)
        doctor_say(out, name, false, "agent %zu has no policy, so it decides nothing: %s; %s", i,
                   p->policy_trouble[0] != '\0' ? p->policy_trouble : "none has been loaded yet", mend);
    else if (p->policy_trouble[0] != '\0')
        doctor_say(out, name, false, "version %lld is in force, but the file was refused when it was read last, so an agent that starts now would have "
                   "no policy: %s; %s", (long long) p->policy_version, p->policy_trouble, mend);
    else
        doctor_say(out, name, true, "version %lld is in force", (long long) p->policy_version);
}

/* What to do about a store that is not connected, by what the trouble mentions. */
static const struct {
    const char *mention, *advice;
} store_advice[] = {
    {"NOPERM", "the user of VALKEY_URL may not do what limits need: allow it EVAL, EVALSHA, SCRIPT LOAD and all keys (ACL SETUSER)"},
    {"AUTH", "Valkey wants a login: put the right user and password into VALKEY_URL"},
    {"WRONGPASS", "Valkey wants a login: put the right user and password into VALKEY_URL"},
    {"LOADING", "Valkey is reading its data after a start: wait for it"},
    {"READONLY", "VALKEY_URL names a replica: name the primary"},
    {"MOVED", "VALKEY_URL names a node of a cluster, which this build does not speak to: name a standalone Valkey"},
    {"DB index", "Valkey has no database of the number in VALKEY_URL: correct it"},
};

static const char *advice_for(const char *trouble)
{
    for (size_t i = 0; i < sizeof store_advice / sizeof store_advice[0]; i++)
        if (strstr(trouble, store_advice[i].mention) != NULL)
            return store_advice[i].advice;
    return "start Valkey, or correct VALKEY_URL; from here, `valkey-cli ping` shows whether it answers";
}

/* How far and where to, of a clock that is off. */
static unsigned long long distance_ms(int64_t off_ms)
{
    return off_ms < 0 ? 0 - (unsigned long long) off_ms : (unsigned long long) off_ms;
}

static const char *direction(int64_t off_ms)
{
    return off_ms < 0 ? "behind" : "ahead of";
}

static bool is_off(int64_t off_ms)
{
    return distance_ms(off_ms) > clock_tolerance_ms;
}

static void diagnose_store(const struct store_state *s, size_t i, struct doctor_report *out)
{
    char name[DOCTOR_WORD_MAX];
    name_of("store", i, name);
    if (!s->connected)
        doctor_say(out, name, false, "agent %zu has no connection to Valkey, so that fail_mode decides for each rate limit: %s; %s", i,
                   s->trouble[0] != '\0' ? s->trouble : "it has not tried yet", advice_for(s->trouble));
    else if (strcmp(s->kind, "embedded") == 0)
        doctor_say(out, name, true, "agent %zu counts limits in its own memory", i);
    else if (is_off(s->clock_skew_ms))
        doctor_say(out, name, false, "Valkey's clock is %llu ms %s agent %zu's: waits and windows of limits are that much wrong where the two are "
                   "compared; let NTP set both machines", distance_ms(s->clock_skew_ms), direction(s->clock_skew_ms), i);
    else
        doctor_say(out, name, true, "agent %zu counts limits in Valkey (%s), whose clock agrees within a second", i, s->kind);
}

static void diagnose_clock(const struct doctor_agent *a, size_t i, struct doctor_report *out)
{
    char name[DOCTOR_WORD_MAX];
    name_of("clock", i, name);
    if (is_off(a->clock_off_ms))
        doctor_say(out, name, false, "agent %zu's clock is %llu ms %s the doctor's: on one machine they are the same, so %s is another machine, or a clock "
                   "was set between; let NTP set it", i, distance_ms(a->clock_off_ms), direction(a->clock_off_ms), a->answer.at);
    else
        doctor_say(out, name, true, "agent %zu's clock agrees with the doctor's", i);
}

void diagnose_agent(const struct doctor_evidence *e, size_t i, struct doctor_report *out)
{
    const struct doctor_agent *a = &e->agents[i];
    const struct doctor_page *p = &a->before;
    char name[DOCTOR_WORD_MAX];
    if (!a->has_page) {
        diagnose_unreached(a, i, out);
        return;
    }
    name_of("agent", i, name);
    if (p->agent != i)
        doctor_say(out, name, false, "%s is agent %llu, not %zu: give the doctor the EDGE_INTERNAL_LISTEN of `edge-spoa run`", a->answer.at,
                   (unsigned long long) p->agent, i);
    else if (strcmp(p->state, "ready") != 0 && strcmp(p->state, "no_policy") != 0)
        doctor_say(out, name, false, "agent %zu answers on %s, but takes no requests: %s; where that does not end by itself, read its lines", i,
                   a->answer.at, p->reason);
    else
        doctor_say(out, name, true, "agent %zu answers on %s", i, a->answer.at);
    diagnose_policy(p, i, out);
    diagnose_store(&p->store, i, out);
    diagnose_clock(a, i, out);
}
