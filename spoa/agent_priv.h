/* The parts of an agent's process, for its life cycle (agent.c) and its metrics page (metrics.c). */
#ifndef SPOA_AGENT_PRIV_H
#define SPOA_AGENT_PRIV_H

#include "common/base/httpd.h"
#include "common/rate/rate.h"
#include "spoa/live/policy_file.h"
#include "spoa/record/access_log.h"
#include "spoa/record/intake.h"
#include "spoa/record/writer.h"
#include "spoa/settings.h"
#include "spoa/wire/acceptor.h"
#include "spoa/worker.h"

enum { AGENT_WORKERS_MAX = 64, AGENT_KEYS_MAX = 1000000 };

struct agent {
    struct settings_edge settings;
    struct rate_store *store;
    struct worker *workers;
    size_t n_workers, next_worker;
    struct lease_slot *slots[AGENT_WORKERS_MAX];
    struct policy_file policy_file;
    struct access_log access_log;
    struct writer writer;
    struct intake intake;
    struct httpd *httpd;

    struct ev_loop *loop; /* main thread: accepts and signals */
    int listener;
    struct acceptor acceptor;
    struct ev_signal on_term, on_int, on_hup;
    struct ev_timer drained;
    _Atomic bool stopping;
};

/* httpd routes' handlers; ctx is a struct agent. Listener's thread. */
void agent_livez(void *ctx, struct httpd_reply *reply);
void agent_readyz(void *ctx, struct httpd_reply *reply);
void agent_metrics(void *ctx, struct httpd_reply *reply);

#endif
