/* The exchange of the agents, one after the other: a new process takes a slot's sockets over, then the old one leaves.
 *
 * A new agent binds its sockets under other names and renames them over the old ones, so that connections made from then on
 * reach it. The old sockets keep a second name here until the new agent is ready: if it fails they get theirs back. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "common/base/log.h"
#include "spoa/launcher/launcher_priv.h"

static const double ready_limit_s = 30, leave_slack_s = 5;

static const char *const sockets[] = {"agent", "records"};
enum { N_SOCKETS = sizeof(sockets) / sizeof(sockets[0]) };

struct socket_names {
    char name[SOCKET_PATH_MAX], kept[SOCKET_PATH_MAX];
};

static void names_of(const struct agent_slot *slot, size_t i, struct socket_names *out)
{
    snprintf(out->name, sizeof(out->name), "%s/%s-%u.sock", slot->l->run_dir.path, sockets[i], slot->index);
    snprintf(out->kept, sizeof(out->kept), "%s/%s-%u.kept", slot->l->run_dir.path, sockets[i], slot->index);
}

static void keep_sockets(const struct agent_slot *slot)
{
    for (size_t i = 0; i < N_SOCKETS; i++) {
        struct socket_names n;

        names_of(slot, i, &n);
        (void)unlink(n.kept);
        if (link(n.name, n.kept) != 0 && errno != ENOENT)
            log_event(LOG_LEVEL_WARN, "exchange_without_return",
                      "%s can't be kept for the case that the new %s fails: %s", n.name, slot->name, strerror(errno));
    }
}

static void forget_sockets(const struct agent_slot *slot)
{
    for (size_t i = 0; i < N_SOCKETS; i++) {
        struct socket_names n;

        names_of(slot, i, &n);
        (void)unlink(n.kept);
    }
}

/* Where the names still belong to the old sockets this changes nothing: rename of two names of one file leaves both. */
static void return_sockets(const struct agent_slot *slot)
{
    for (size_t i = 0; i < N_SOCKETS; i++) {
        struct socket_names n;

        names_of(slot, i, &n);
        (void)rename(n.kept, n.name);
    }
    forget_sockets(slot);
}

static struct child *other_of(struct agent_slot *slot)
{
    return slot->serving == &slot->children[0] ? &slot->children[1] : &slot->children[0];
}

/* Who asked again meanwhile may have mended what failed. */
static void give_up(struct launcher *l)
{
    const bool again = l->exchange_again && l->phase == PHASE_UP;

    l->exchange_at = l->n_agents;
    l->exchange_again = false;
    log_event(LOG_LEVEL_ERROR, "exchange_failed",
              "the exchange of the agents is given up; those that served go on serving");
    if (again)
        exchange_start(l);
}

/* Starts the new process of the slot whose turn it is, or ends the exchange. */
static void next(struct launcher *l)
{
    struct agent_slot *slot;

    if (l->exchange_at == l->n_agents) {
        log_event(LOG_LEVEL_INFO, "exchange_done", "all agents have been exchanged");
        if (l->exchange_again)
            exchange_start(l);
        return;
    }
    if (l->phase != PHASE_UP) {
        give_up(l);
        return;
    }
    slot = &l->agents[l->exchange_at];
    /* Should the serving process be dead and wait for its restart, the new one takes its place. */
    ev_timer_stop(l->loop, &slot->restart);
    keep_sockets(slot);
    if (!agent_spawn(slot, other_of(slot))) {
        forget_sockets(slot);
        if (slot->serving->pid == 0)
            agent_restart_later(slot, 0);
        give_up(l);
        return;
    }
    slot->other = OTHER_INCOMING;
    ev_timer_set(&l->exchange_limit, ready_limit_s, 0);
    ev_timer_start(l->loop, &l->exchange_limit);
}

static void on_limit(struct ev_loop *loop, ev_timer *w, int events)
{
    struct launcher *l = w->data;

    (void)loop;
    (void)events;
    exchange_refuse(&l->agents[l->exchange_at]);
}

void exchange_init(struct launcher *l)
{
    ev_init(&l->exchange_limit, on_limit);
    l->exchange_limit.data = l;
    l->exchange_at = l->n_agents;
}

void exchange_start(struct launcher *l)
{
    if (l->phase != PHASE_UP) {
        log_event(LOG_LEVEL_WARN, "exchange_ignored", "the edge is not up: its agents are not exchanged");
    } else if (l->exchange_at < l->n_agents) {
        l->exchange_again = true;
        log_event(LOG_LEVEL_INFO, "exchange_queued", "an exchange is going on; another one follows");
    } else {
        l->exchange_at = 0;
        l->exchange_again = false;
        log_event(LOG_LEVEL_INFO, "exchange_started", "the agents are exchanged for %s", l->d.self);
        next(l);
    }
}

void exchange_ready(struct agent_slot *slot)
{
    struct launcher *l = slot->l;
    struct child *old = slot->serving;

    ev_timer_stop(l->loop, &l->exchange_limit);
    ev_timer_stop(l->loop, &slot->restart);
    forget_sockets(slot);
    slot->backoff = (struct backoff){0};
    slot->serving = other_of(slot);
    if (old->pid == 0) {
        exchange_left(slot);
        return;
    }
    slot->other = OTHER_LEAVING;
    /* It answers what it has been asked before it ends. */
    child_stop(old, SIGTERM, (double)l->d.settings.agent_timeout_ms / 1000 + leave_slack_s);
}

void exchange_refuse(struct agent_slot *slot)
{
    ev_timer_stop(slot->l->loop, &slot->l->exchange_limit);
    log_event(LOG_LEVEL_ERROR, "exchange_refused", "the new %s did not become ready; what it said stands above",
              slot->name);
    child_stop(other_of(slot), SIGKILL, 1);
}

void exchange_failed(struct agent_slot *slot)
{
    struct launcher *l = slot->l;

    ev_timer_stop(l->loop, &l->exchange_limit);
    slot->other = OTHER_NONE;
    if (slot->serving->pid != 0) {
        return_sockets(slot);
    } else {
        forget_sockets(slot);
        agent_restart_later(slot, 0);
    }
    give_up(l);
}

void exchange_left(struct agent_slot *slot)
{
    slot->other = OTHER_NONE;
    slot->l->exchange_at++;
    next(slot->l);
}
