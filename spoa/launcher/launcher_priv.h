/* What the launcher's parts share: the state of one edge on its way from start to end. Main thread only. */
#ifndef SPOA_LAUNCHER_LAUNCHER_PRIV_H
#define SPOA_LAUNCHER_LAUNCHER_PRIV_H

#include "spoa/launcher/children.h"
#include "spoa/launcher/environment.h"
#include "spoa/launcher/late_records.h"
#include "spoa/launcher/run_dir.h"

enum { AGENTS_MAX = LATE_AGENTS_MAX, SOCKET_PATH_MAX = SETTING_RUN_DIR_MAX + 24 };

/* In the order in which they come; a start-up that fails or is broken off goes on with PHASE_STOP_HAPROXY. */
enum phase {
    PHASE_CHECK,   /* HAProxy looks at its configuration */
    PHASE_AGENTS,  /* agents start, until each listens */
    PHASE_HAPROXY, /* HAProxy starts, until it answers */
    PHASE_UP,
    PHASE_DRAIN,        /* /readyz says no, all is served as before */
    PHASE_STOP_HAPROXY, /* no new connections, open requests end */
    PHASE_STOP_AGENTS,
};

/* An agent's place beside HAProxy. During an exchange two processes stand in it. */
struct agent_slot {
    struct launcher *l;
    unsigned index;
    char name[24];
    char socket[SOCKET_PATH_MAX];
    struct child children[2];
    struct child *serving; /* one of them */
    enum { OTHER_NONE, OTHER_INCOMING, OTHER_LEAVING } other;
    ev_timer restart;
    struct backoff backoff;
};

struct launcher {
    struct ev_loop *loop;
    struct deployment d;
    struct arena arena; /* of the process */
    struct run_dir run_dir;
    struct output *output;
    struct late_records late_records;
    struct sources sources;
    enum phase phase;
    int exit_code;
    bool has_ended; /* nothing runs any more, the loop is left */

    struct agent_slot agents[AGENTS_MAX];
    unsigned n_agents;
    ev_timer agents_wait; /* in PHASE_AGENTS */
    ev_timer exchange_limit;
    unsigned exchange_at; /* slot; n_agents: no exchange */
    bool exchange_again;

    char **haproxy_env;
    char haproxy_path[4096], haproxy_cfg[4096], haproxy_sock[SOCKET_PATH_MAX], master_sock[SOCKET_PATH_MAX],
        master_bind[SOCKET_PATH_MAX];
    char server_state[SOCKET_PATH_MAX];
    struct child haproxy, check;
    ev_timer haproxy_wait; /* in PHASE_HAPROXY */
    ev_timer haproxy_restart;
    struct backoff haproxy_backoff;
    bool check_again;

    ev_signal signals[5];
    ev_timer drain_delay, drain_flag, drain_limit, drain_open;
    bool flag_warned, was_idle; /* was_idle: no request was open when last asked */
};

/* setup.c: from settings to deployment, but for run_dir. 0, or the exit status after the faults were said on standard error. */
int setup_deployment(struct deployment *d, char *const envp[], struct arena *a);

/* agents.c */
void agents_init(struct launcher *l);
void agents_start(struct launcher *l); /* PHASE_AGENTS; goes on with haproxy_start */
void agents_hangup(const struct launcher *l);
void agents_stop(struct launcher *l); /* PHASE_STOP_AGENTS; goes on with the end of the loop */
/* Starts a process for the slot in c, which is not running. A fault is logged. */
MUSTUSE bool agent_spawn(struct agent_slot *slot, struct child *c);
/* Starts the serving process after its back-off; age_ms: how long the last one lived. */
void agent_restart_later(struct agent_slot *slot, uint64_t age_ms);

/* exchange.c */
void exchange_init(struct launcher *l);
void exchange_start(struct launcher *l);
/* What became of the slot's other process: it is ready, is not going to be, has ended while it was coming in, has left. */
void exchange_ready(struct agent_slot *slot);
void exchange_refuse(struct agent_slot *slot);
void exchange_failed(struct agent_slot *slot);
void exchange_left(struct agent_slot *slot);

/* haproxy.c */
void haproxy_init(struct launcher *l);
void haproxy_check(struct launcher *l); /* at start goes on with agents_start, later with a reload */
void haproxy_start(struct launcher *l); /* PHASE_HAPROXY; goes on in PHASE_UP */

/* drain.c */
void drain_init(struct launcher *l);
void drain_signal(struct launcher *l); /* SIGTERM or SIGINT, the first or a later one */
void drain_fail(
    struct launcher *l); /* start-up has failed for a reason that was logged: ends what runs, exit status 1 */
void drain_haproxy_ended(struct launcher *l);

#endif
