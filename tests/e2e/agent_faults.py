"""What may happen to the agents and to HAProxy of an edge that goes on serving. Each fault of FAULTS is inflicted on an edge with
an active agent and a standby, both up, and returns when that is so again."""

import os
import signal
import time

from edge import poll

FROZEN_S = 3  # far longer than it takes HAProxy to notice
HELD_S = 15  # longer than an old worker needs that no client holds


def up_servers(edge):
    """Names of the agents that HAProxy holds for usable."""
    rows = [line.split(" ") for line in edge.haproxy_command("show servers state agents").splitlines()]
    return {row[3] for row in rows if len(row) > 5 and row[1] == "agents" and row[5] == "2"}


def both_up(edge):
    poll(lambda: up_servers(edge) == {"agent0", "agent1"}, "HAProxy holds both agents for usable")


def said_since(edge, line, event):
    """Whether an event stands among the lines from that number on. Under load there are too many to look at all of them for each
    new one, as wait_lines does."""
    return any(row["json"] and row["json"].get("event") == event for row in edge.lines[line:])


def is_other(edge, index, pid):
    return edge.agent_pids().get(index) not in (None, pid)


def end_active(edge, number):
    """Sends the signal to the active agent, waits until another process has taken its place."""
    pid, line = edge.agent_pids()[0], len(edge.lines)
    os.kill(pid, number)
    poll(lambda: said_since(edge, line, "agent_ready"), "an agent is ready")
    poll(lambda: is_other(edge, 0, pid), "the launcher started another agent")
    both_up(edge)


def sigterm(edge):
    end_active(edge, signal.SIGTERM)


def kill(edge):
    end_active(edge, signal.SIGKILL)


def freeze(edge):
    pid = edge.agent_pids()[0]
    os.kill(pid, signal.SIGSTOP)
    try:
        poll(lambda: up_servers(edge) == {"agent1"}, "HAProxy has noticed that the agent is frozen")
        time.sleep(FROZEN_S)  # the fault itself: nothing is waited for
    finally:
        os.kill(pid, signal.SIGCONT)
    both_up(edge)
    assert edge.agent_pids()[0] == pid, "it went on where it stood"


def exchange(edge):
    before, line = edge.agent_pids(), len(edge.lines)
    edge.signal(signal.SIGUSR1)
    poll(lambda: said_since(edge, line, "exchange_done"), "the agents have been exchanged")
    both_up(edge)
    after = edge.agent_pids()
    assert set(after) == {0, 1} and not set(after.values()) & set(before.values()), (before, after)


def reload(edge):
    """Until the old worker has ended, too, unless a client holds it: one over HTTP/2 and TLS whose connection was made just then keeps it for as long as
    it comes back (haproxy/README.md). one_worker says that it went with its clients."""
    master, before = edge.haproxy_pids()
    edge.signal(signal.SIGUSR2)
    poll(lambda: set(edge.haproxy_pids()[1]) - set(before), "a new worker runs")
    end = time.monotonic() + HELD_S
    while set(edge.haproxy_pids()[1]) & set(before) and time.monotonic() < end:
        time.sleep(0.05)
    both_up(edge)
    assert edge.haproxy_pids()[0] == master


def one_worker(edge):
    """Once the clients are gone. One that lets its half of a closed connection lie has 10 s (timeout client-fin)."""
    poll(lambda: len(edge.haproxy_pids()[1]) == 1, "no old worker is left", deadline=60)


FAULTS = {"sigterm": sigterm, "kill": kill, "freeze": freeze, "exchange": exchange, "reload": reload}
