/* The pages of an agent's internal listener besides /metrics: /livez, /readyz, /doctor, /stats. */
#include <stdlib.h>

#include "spoa/agent_priv.h"
#include "spoa/stats.h"

void agent_reply_text(struct httpd_reply *reply, int status, const char *text)
{
    reply->status = status;
    reply->content_type = "text/plain; charset=utf-8";
    reply->body = strdup(text);
    reply->body_len = reply->body != NULL ? strlen(text) : 0;
}

void agent_livez(void *ctx, struct httpd_reply *reply)
{
    (void) ctx;
    agent_reply_text(reply, 200, "ok\n");
}

/* By enum agent_state. */
static const struct {
    const char *word, *reason;
} states[] = {
    [AGENT_READY] = {"ready", ""},
    [AGENT_STOPPING] = {"stopping", "the agent is stopping"},
    [AGENT_NO_POLICY] = {"no_policy", "no policy has been loaded; see the log for the faults of POLICY_FILE"},
    [AGENT_WARMING] = {"warming", "the first connection to Valkey is being made; requests are taken in a few seconds at most, with it or without"},
};

enum agent_state agent_state(const struct agent *a)
{
    if (atomic_load(&a->stopping))
        return AGENT_STOPPING;
    if (atomic_load(&a->policy_file.version) == 0)
        return AGENT_NO_POLICY;
    if (atomic_load(&a->warming))
        return AGENT_WARMING;
    return AGENT_READY;
}

void agent_readyz(void *ctx, struct httpd_reply *reply)
{
    const enum agent_state state = agent_state(ctx);
    char text[DOCTOR_TEXT_MAX + 32];
    if (state == AGENT_READY) {
        agent_reply_text(reply, 200, "ok\n");
        return;
    }
    snprintf(text, sizeof text, "not ready: %s\n", states[state].reason);
    agent_reply_text(reply, 503, text);
}

_Static_assert((int) POLICY_TROUBLE_MAX == (int) DOCTOR_TROUBLE_MAX, "the page takes the feed's text whole");

static void fill(struct agent *a, struct doctor_page *page)
{
    const enum agent_state state = agent_state(a);
    page->agent = a->settings.agent_index;
    snprintf(page->state, sizeof page->state, "%s", states[state].word);
    snprintf(page->reason, sizeof page->reason, "%s", states[state].reason);
    page->policy_version = atomic_load(&a->policy_file.version);
    policy_file_trouble(&a->policy_file, page->policy_trouble);
    for (size_t i = 0; i < a->n_workers; i++) {
        const struct worker *w = &a->workers[i];
        page->n_healthchecks += counter_get(&w->spop_counters.n_healthchecks);
        page->n_notifies += counter_get(&w->spop_counters.n_notifies);
        page->n_contract_mismatches += counter_get(&w->requests.counters.plain[METRIC_CONTRACT_MISMATCH]);
    }
    agent_store_state(a, &page->store);
    page->clock_ms = clock_real_ms(&clock_system);
}

void agent_doctor(void *ctx, struct httpd_reply *reply)
{
    struct agent *a = ctx;
    struct doctor_page page = {0};
    if (!challenges_issue(&a->challenges, clock_mono_us(&clock_system) / 1000, &page.challenge)) {
        agent_reply_text(reply, 503, "the kernel gives no random numbers\n");
        return;
    }
    fill(a, &page);
    char *storage = malloc(DOCTOR_PAGE_MAX);
    if (storage == NULL)
        return;
    struct buf body;
    buf_init(&body, storage, DOCTOR_PAGE_MAX);
    doctor_page_put(&body, &page);
    reply->status = 200;
    reply->content_type = "application/json";
    reply->body = storage;
    reply->body_len = body.len;
}

/* Memory that is not written to is none: most pages take a few kilobytes of it. */
void agent_stats(void *ctx, struct httpd_reply *reply)
{
    const struct agent *a = ctx;
    char *storage = malloc(STATS_PAGE_MAX);
    if (storage == NULL)
        return;
    struct buf body;
    buf_init(&body, storage, STATS_PAGE_MAX);
    if (!stats_put(&body, a->counts, (unsigned) a->settings.agent_index)) {
        free(storage);
        agent_reply_text(reply, 503, "no memory for the page\n");
        return;
    }
    reply->status = 200;
    reply->content_type = "application/json";
    reply->body = storage;
    reply->body_len = body.len;
}
