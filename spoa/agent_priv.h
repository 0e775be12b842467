/* The parts of an agent's process, for its life cycle (agent.c) and the pages of its internal listener (pages.c, stats.c, metrics*.c). */
#ifndef SPOA_AGENT_PRIV_H
#define SPOA_AGENT_PRIV_H

#include "common/base/httpd.h"
#include "common/rate/rate.h"
#include "spoa/doctor/page.h"
#include "spoa/live/policy_file.h"
#include "spoa/record/counts.h"
#include "spoa/record/intake.h"
#include "spoa/record/records.h"
#include "spoa/record/writer.h"
#include "spoa/settings_deployment.h"
#include "spoa/wire/acceptor.h"
#include "spoa/worker.h"

enum { AGENT_WORKERS_MAX = 64, AGENT_KEYS_MAX = 1000000 };

struct agent {
    struct settings_edge settings;
    const struct ingress *ingress;
    bool is_shared;             /* limits are counted in Valkey */
    struct rate_store *store;   /* else here */
    struct rate_shares *shares; /* in Valkey's absence, by fail_mode local */
    struct valkey_node node;
    struct worker *workers;
    size_t n_workers, next_worker;
    struct lease_slot *slots[AGENT_WORKERS_MAX];
    struct policy_file policy_file;
    struct ev_timer sweep; /* of the policy feed's loop, while the policy sets a backstop */
    _Atomic uint64_t backstop_clients, backstop_clients_max; /* as the last sweep found them; 0 without a backstop */
    struct challenges challenges;
    struct counts *counts;
    struct records records;
    struct writer writer;
    struct intake intake;
    struct httpd *httpd;

    struct ev_loop *loop; /* main thread: accepts and signals */
    int listener;
    struct acceptor acceptor;
    struct ev_signal on_term, on_int, on_hup;
    struct ev_timer drained;
    _Atomic bool warming; /* waits for Valkey before it takes requests, once and for a bounded time */
    _Atomic bool stopping;
};

/* --- agent_store.c: where limits are counted. Main thread unless said otherwise. --- */

MUSTUSE bool agent_store_init(struct agent *a, struct err *e);
/* Of policy_file's `before`: makes room for the rules that can count locally. Feed's thread, too. */
void agent_store_prepare(struct agent *a, const struct policy *policy);
/* Until every worker's first attempt to reach Valkey has ended, well or not; at most its dial time-out and VALKEY_HANDSHAKE_MS. */
void agent_store_wait(struct agent *a);
void agent_store_release(struct agent *a);

/* Workers with a usable connection to Valkey. Any thread, as the next one. */
size_t agent_store_n_connected(const struct agent *a);
void agent_store_state(const struct agent *a, struct store_state *out);

/* --- agent_guard.c: what the policy in force keeps of its clients is looked after by the policy feed's thread. --- */

/* After policy_file_init, before the first policy. */
void agent_guard_init(struct agent *a);
/* Of policy_file's `published`. Feed's thread. */
void agent_guard_published(struct agent *a);

/* httpd routes' handlers; ctx is a struct agent. Listener's thread. */
void agent_livez(void *ctx, struct httpd_reply *reply);
void agent_readyz(void *ctx, struct httpd_reply *reply);
void agent_metrics(void *ctx, struct httpd_reply *reply);
void agent_doctor(void *ctx, struct httpd_reply *reply);
void agent_stats(void *ctx, struct httpd_reply *reply);

/* The page of a few words that the others fall back to. */
void agent_reply_text(struct httpd_reply *reply, int status, const char *text);

/* Whether requests should come here, and why not; the first that applies. Any thread. */
enum agent_state { AGENT_READY, AGENT_STOPPING, AGENT_NO_POLICY, AGENT_WARMING };
enum agent_state agent_state(const struct agent *a);

#endif
