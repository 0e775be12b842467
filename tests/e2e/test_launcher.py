"""Changes of a running edge that fail, and signals that come before the last one was followed: the edge serves on, in a state that
its log names."""

import os
import shutil
import signal

import pytest

from agent_faults import both_up, said_since
from clients import fetch
from edge import ROOT, Edge, poll
from load import Load
from policies import policy

GOOD = policy(version=1)
BETTER = policy(version=2)
BROKEN = b'{"schema":4,"version":'


def is_up(edge):
    """Both agents, or the only one, usable for HAProxy."""
    if edge.environment["EDGE_AGENTS"] == "2":
        both_up(edge)
    poll(lambda: edge.readyz()[0] == 200, "the edge is ready")


@pytest.fixture(scope="module", params=["1", "2"], ids=["one agent", "two agents"])
def edge(request, upstream):
    with Edge(GOOD, upstream.url, settings={"EDGE_AGENTS": request.param}) as e:
        is_up(e)
        yield e


@pytest.fixture
def pair(upstream):
    with Edge(GOOD, upstream.url, settings={"EDGE_AGENTS": "2"}) as e:
        is_up(e)
        yield e


def wait_said(edge, line, event):
    poll(lambda: said_since(edge, line, event), f"the log says {event}")


def count_since(edge, line, event):
    return sum(1 for row in edge.lines[line:] if row["json"] and row["json"].get("event") == event)


# --- an exchange that fails ---


def test_an_exchange_whose_new_agent_has_no_policy_leaves_the_old_one_and_fails_no_request(edge):
    """More than once, since a new agent that took the sockets before it gave up would do harm in some of the cases only."""
    before = edge.agent_pids()
    edge.write_policy(BROKEN)
    with Load(edge, target="/launcher/refused") as load:
        for _ in range(3):
            load.wait_more(50)
            line = len(edge.lines)
            edge.signal(signal.SIGUSR1)
            wait_said(edge, line, "exchange_failed")
            assert said_since(edge, line, "policy_refused"), "the new agent's own words"
        load.wait_more(100)
    assert load.failures == []
    assert edge.agent_pids() == before
    assert edge.metric("edge_policy_version") == 1


def test_an_exchange_after_one_that_failed_brings_the_policy_in_force(edge):
    before, line = edge.agent_pids(), len(edge.lines)
    edge.write_policy(BETTER)
    with Load(edge, target="/launcher/again") as load:
        load.wait_more(50)
        edge.signal(signal.SIGUSR1)
        wait_said(edge, line, "exchange_done")
        load.wait_more(50)
    assert load.failures == []
    assert not set(edge.agent_pids().values()) & set(before.values())
    assert edge.metric("edge_policy_version") == 2
    is_up(edge)


def test_an_agent_that_comes_back_without_a_policy_leaves_the_requests_to_the_standby(pair):
    """Until its first health check HAProxy still asks it, and it refuses: then the other one is asked."""
    pair.write_policy(BROKEN)
    with Load(pair, target="/launcher/alone") as load:
        load.wait_more(50)
        os.kill(pair.agent_pids()[0], signal.SIGKILL)
        load.wait_more(150)
    assert load.failures == []
    assert pair.internal("/readyz", agent=0)[0] == 503


# --- a reload that HAProxy refuses ---


def test_a_reload_that_haproxy_refuses_leaves_the_old_worker_and_is_said(upstream, tmp_path):
    folder = tmp_path / "haproxy"
    shutil.copytree(ROOT / "haproxy", folder)
    good = (folder / "haproxy.cfg").read_text()
    with Edge(GOOD, upstream.url, settings={"EDGE_HAPROXY_DIR": folder}) as edge:
        before = edge.haproxy_pids()
        (folder / "haproxy.cfg").write_text(good + "\nbackend broken\n    unheard-of\n")
        with Load(edge, target="/launcher/reload") as load:
            load.wait_more(50)
            edge.signal(signal.SIGUSR2)
            edge.event("haproxy_reload_refused", level="error")
            load.wait_more(50)
            assert edge.haproxy_pids() == before
            assert any("unheard-of" in row["text"] for row in edge.lines), "HAProxy's own words"
            (folder / "haproxy.cfg").write_text(good)
            edge.signal(signal.SIGUSR2)
            poll(lambda: set(edge.haproxy_pids()[1]) - set(before[1]), "a new worker runs")
            load.wait_more(50)
        assert load.failures == []
        assert edge.readyz()[0] == 200


# --- signals in quick succession ---


def test_a_second_exchange_that_is_asked_for_during_one_follows_it(pair):
    before, line = pair.agent_pids(), len(pair.lines)
    with Load(pair, target="/launcher/twice") as load:
        load.wait_more(50)
        pair.signal(signal.SIGUSR1)
        wait_said(pair, line, "exchange_started")
        pair.signal(signal.SIGUSR1)
        wait_said(pair, line, "exchange_queued")
        pair.signal(signal.SIGUSR1)
        poll(lambda: count_since(pair, line, "exchange_done") == 2, "both have been done, and no third one")
        load.wait_more(50)
    assert load.failures == []
    assert count_since(pair, line, "exchange_started") == 2
    assert not set(pair.agent_pids().values()) & set(before.values())
    is_up(pair)


def test_an_exchange_that_is_asked_for_during_one_that_fails_is_tried(pair):
    """The old agent is frozen, so that the first exchange waits for it until the second one has been asked for."""
    first, line = pair.agent_pids(), len(pair.lines)
    os.kill(first[0], signal.SIGSTOP)
    pair.signal(signal.SIGUSR1)
    wait_said(pair, line, "agent_ready")
    pair.write_policy(BROKEN)
    pair.signal(signal.SIGUSR1)
    wait_said(pair, line, "exchange_queued")
    os.kill(first[0], signal.SIGCONT)
    poll(lambda: count_since(pair, line, "exchange_failed") == 2, "both have failed")
    assert count_since(pair, line, "exchange_started") == 2
    assert pair.agent_pids()[0] != first[0] and pair.agent_pids()[1] == first[1], "only the first agent had been exchanged"
    is_up(pair)
    assert fetch(pair, "GET", "/launcher/both/failed").status == 200


@pytest.mark.parametrize("order", [(signal.SIGUSR1, signal.SIGUSR2), (signal.SIGUSR2, signal.SIGUSR1)], ids=["usr1-usr2", "usr2-usr1"])
def test_a_reload_and_an_exchange_at_once_are_both_done(pair, order):
    agents, (master, workers), line = pair.agent_pids(), pair.haproxy_pids(), len(pair.lines)
    with Load(pair, target="/launcher/both") as load:
        load.wait_more(50)
        for number in order:
            pair.signal(number)
        wait_said(pair, line, "exchange_done")
        poll(lambda: not set(pair.haproxy_pids()[1]) & set(workers), "the old worker has ended")
        load.wait_more(50)
    assert load.failures == []
    assert pair.haproxy_pids()[0] == master and len(pair.haproxy_pids()[1]) == 1
    assert not set(pair.agent_pids().values()) & set(agents.values())
    is_up(pair)


@pytest.mark.parametrize("first, event", [(signal.SIGUSR1, "exchange_started"), (signal.SIGUSR2, None)], ids=["usr1", "usr2"])
def test_an_edge_told_to_end_during_an_exchange_or_reload_ends_in_order(upstream, first, event):
    """stop() proves the rest: exit status 0, and no process left behind."""
    edge = Edge(GOOD, upstream.url, settings={"EDGE_AGENTS": "2"}).start()
    try:
        line = len(edge.lines)
        edge.signal(first)
        if event:
            wait_said(edge, line, event)
        edge.signal(signal.SIGTERM)
        assert edge.wait_exit() == 0
    except BaseException:
        edge.stop(check=False)
        raise
    edge.stop()
