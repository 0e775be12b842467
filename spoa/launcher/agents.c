/* The agents beside HAProxy: started, restarted when they die, ended last. */
#include <signal.h>
#include <stdio.h>

#include "common/base/log.h"
#include "spoa/launcher/haproxy_ctl.h"
#include "spoa/launcher/launcher_priv.h"

static const double wait_step_s = 0.02, stop_patience_s = 5;
enum { LISTEN_LIMIT_MS = 10000 };

bool agent_spawn(struct agent_slot *slot, struct child *c)
{
    struct launcher *l = slot->l;
    char name[] = "edge-spoa", command[] = "serve";
    char *const argv[] = {name, command, NULL};
    struct ready_pipe ready;
    struct arena scratch;
    char **envp;
    struct err e;
    bool ok;

    err_clear(&e);
    arena_init(&scratch, 16384, 0);
    ok = child_ready_pipe(&ready, &e);
    if (ok && !environment_agent(&l->d, (struct agent_part){slot->index, ready.write_fd, c != slot->serving}, &scratch,
                                 &envp)) {
        child_drop_ready_pipe(&ready);
        ok = err_set(&e, ERR_NO_MEMORY, "", "no memory for the environment of %s", slot->name);
    }
    ok = ok && child_start(c, l->loop, &l->sources, l->d.self, argv, envp, ready, SIGKILL, &e);
    arena_release(&scratch);
    if (ok)
        log_event(LOG_LEVEL_INFO, "agent_started", "%s started (process %d)", slot->name, (int)c->pid);
    else
        log_err(LOG_LEVEL_ERROR, "agent_not_started", &e);
    return ok;
}

void agent_restart_later(struct agent_slot *slot, uint64_t age_ms)
{
    const uint64_t wait_ms = backoff_take(&slot->backoff, age_ms);

    ev_timer_set(&slot->restart, (double)wait_ms / 1000, 0);
    ev_timer_start(slot->l->loop, &slot->restart);
}

static void on_restart(struct ev_loop *loop, ev_timer *w, int events)
{
    struct agent_slot *slot = w->data;

    (void)loop;
    (void)events;
    if (!agent_spawn(slot, slot->serving))
        agent_restart_later(slot, 0);
}

/* An agent that has no policy closes the descriptor without a word. */
static void on_agent_report(struct child *c)
{
    struct agent_slot *slot = c->owner;
    const bool is_incoming = c != slot->serving && slot->other == OTHER_INCOMING;

    if (c->is_ready)
        log_event(LOG_LEVEL_INFO, "agent_ready", "%s (process %d) listens and has a policy", slot->name, (int)c->pid);
    if (is_incoming && c->is_ready)
        exchange_ready(slot);
    else if (is_incoming)
        exchange_refuse(slot);
}

/* Leaves the loop when no agent runs any more. */
static void end_with_last(struct launcher *l)
{
    for (unsigned i = 0; i < l->n_agents; i++)
        if (l->agents[i].children[0].pid != 0 || l->agents[i].children[1].pid != 0)
            return;
    l->has_ended = true;
    ev_break(l->loop, EVBREAK_ALL);
}

static void serving_ended(struct agent_slot *slot)
{
    struct launcher *l = slot->l;

    if (l->phase == PHASE_AGENTS) {
        log_event(LOG_LEVEL_ERROR, "start_failed", "%s ended before it listened; what it said stands above",
                  slot->name);
        drain_fail(l);
    } else if (slot->other != OTHER_INCOMING) {
        agent_restart_later(slot, child_age_ms(slot->serving));
    }
}

static void on_agent_exit(struct child *c, int status)
{
    struct agent_slot *slot = c->owner;
    struct launcher *l = slot->l;
    char how[SPAWN_STATUS_MAX];

    spawn_describe(status, how);
    log_event(c->was_stopped ? LOG_LEVEL_INFO : LOG_LEVEL_ERROR, "agent_ended", "%s %s%s", slot->name, how,
              c->was_killed ? ", for it did not end in time" : "");
    if (l->phase == PHASE_STOP_AGENTS) {
        end_with_last(l);
    } else if (c == slot->serving) {
        serving_ended(slot);
    } else if (slot->other == OTHER_INCOMING) {
        exchange_failed(slot);
    } else {
        exchange_left(slot);
    }
}

/* Every 20 ms while the agents start: a socket says that it is there only by taking a connection. */
static void on_wait(struct ev_loop *loop, ev_timer *w, int events)
{
    struct launcher *l = w->data;

    (void)events;
    for (unsigned i = 0; i < l->n_agents; i++) {
        const struct agent_slot *slot = &l->agents[i];

        if (haproxy_ctl_listens(slot->socket))
            continue;
        if (child_age_ms(slot->serving) >= LISTEN_LIMIT_MS) {
            log_event(LOG_LEVEL_ERROR, "start_failed", "%s does not listen on %s after %d s", slot->name, slot->socket,
                      LISTEN_LIMIT_MS / 1000);
            drain_fail(l);
        }
        return;
    }
    ev_timer_stop(loop, w);
    haproxy_start(l);
}

void agents_init(struct launcher *l)
{
    l->n_agents = (unsigned)l->d.settings.agents;
    for (unsigned i = 0; i < l->n_agents; i++) {
        struct agent_slot *slot = &l->agents[i];

        slot->l = l;
        slot->index = i;
        snprintf(slot->name, sizeof(slot->name), "agent-%u", i);
        snprintf(slot->socket, sizeof(slot->socket), "%s/agent-%u.sock", l->run_dir.path, i);
        for (int n = 0; n < 2; n++)
            slot->children[n] = (struct child){.owner = slot, .on_report = on_agent_report, .on_exit = on_agent_exit};
        slot->serving = &slot->children[0];
        ev_init(&slot->restart, on_restart);
        slot->restart.data = slot;
    }
    ev_timer_init(&l->agents_wait, on_wait, wait_step_s, wait_step_s);
    l->agents_wait.data = l;
}

void agents_start(struct launcher *l)
{
    l->phase = PHASE_AGENTS;
    for (unsigned i = 0; i < l->n_agents; i++)
        if (!agent_spawn(&l->agents[i], l->agents[i].serving)) {
            drain_fail(l);
            return;
        }
    ev_timer_start(l->loop, &l->agents_wait);
}

void agents_hangup(const struct launcher *l)
{
    log_event(LOG_LEVEL_INFO, "policy_reload", "the agents read their policy again");
    for (unsigned i = 0; i < l->n_agents; i++)
        for (int n = 0; n < 2; n++)
            child_signal(&l->agents[i].children[n], SIGHUP);
}

void agents_stop(struct launcher *l)
{
    l->phase = PHASE_STOP_AGENTS;
    ev_timer_stop(l->loop, &l->agents_wait);
    ev_timer_stop(l->loop, &l->exchange_limit);
    for (unsigned i = 0; i < l->n_agents; i++) {
        ev_timer_stop(l->loop, &l->agents[i].restart);
        for (int n = 0; n < 2; n++)
            child_stop(&l->agents[i].children[n], SIGTERM, stop_patience_s);
    }
    end_with_last(l);
}
