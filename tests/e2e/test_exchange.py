"""The promise of an edge with two agents: no request fails, whatever happens to one of them or to HAProxy's configuration, and none
passes without its verdict. The full form, with its figures, is `make soak-exchange`."""

import os
import signal
import time

import pytest

from agent_faults import FAULTS, both_up, one_worker, reload
from edge import Edge, poll
from load import Load
from policies import policy

TIMES = 2
MIX = ("h1", "h2", "h1", "tls-h2", "h1", "h2", "tls-h1", "h2")


@pytest.fixture(scope="module")
def edge(upstream, cert):
    with Edge(policy(), upstream.url, settings={"EDGE_AGENTS": "2"}, cert=cert) as e:
        both_up(e)
        yield e


def passed_undecided(upstream, marker):
    """Requests that reached the upstream without the header that only a verdict brings, answered or not."""
    return [r["target"] for r in upstream.seen(marker) if ["x-edge-client-ip", "127.0.0.1"] not in r["headers"]]


def assert_promise(load, upstream):
    assert load.failures == []
    assert load.tally.answered == load.tally.sent
    assert passed_undecided(upstream, load.target) == []


@pytest.mark.parametrize("fault", FAULTS)
def test_no_request_fails_and_none_passes_undecided(edge, upstream, fault):
    with Load(edge, target=f"/exchange/{fault}", protocols=MIX) as load:
        load.wait_more(100)
        for _ in range(TIMES):
            FAULTS[fault](edge)
            load.wait_more(100)
    assert_promise(load, upstream)
    one_worker(edge)


@pytest.fixture
def own_edge(upstream):
    """For tests that wear out the patience with which agents are restarted."""
    with Edge(policy(), upstream.url, settings={"EDGE_AGENTS": "2"}) as e:
        both_up(e)
        yield e


def test_an_agent_that_was_told_to_end_still_takes_new_connections(own_edge, upstream):
    """HAProxy has none to it when the first request comes, and learns only from the next health check that it should go elsewhere."""
    with Load(own_edge, target="/exchange/cold", protocols=MIX[:2]) as load:
        FAULTS["sigterm"](own_edge)
        load.wait_more(50)
    assert_promise(load, upstream)


def kill_each(edge, indexes, pause_s, span_s):
    """Kills, every pause_s, whatever process then is the agent of the next index; returns how many it killed."""
    end, turn, killed = time.monotonic() + span_s, 0, 0
    while time.monotonic() < end:
        pid = edge.agent_pids().get(indexes[turn % len(indexes)])
        turn += 1
        if pid is not None:
            os.kill(pid, signal.SIGKILL)
            killed += 1
        time.sleep(pause_s)  # the fault itself: nothing is waited for
    return killed


def test_an_agent_that_dies_again_and_again_fails_no_request(own_edge, upstream):
    with Load(own_edge, target="/exchange/again") as load:
        load.wait_more(50)
        assert kill_each(own_edge, (0,), 0.3, 5) >= 3
        load.wait_more(50)
        both_up(own_edge)
        load.wait_more(100)
    assert_promise(load, upstream)


def test_agents_that_die_in_turn_leave_requests_their_verdict_or_the_fail_mode(own_edge, upstream, record_property):
    with Load(own_edge, target="/exchange/turns", fail_mode=True) as load:
        load.wait_more(50)
        assert kill_each(own_edge, (0, 1), 0.3, 5) >= 4
        both_up(own_edge)
        refused = load.tally.refused
        load.wait_more(100)
    record_property("refused", refused)
    assert_promise(load, upstream)
    assert load.tally.refused == refused, "once both are up again nothing is refused"


def descriptors(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


def test_reloads_under_load_leave_no_old_process_and_no_descriptor(edge, upstream):
    """S-25 of comparable systems: errors for minutes, requests that wait for the whole time-out, old processes that stay."""
    reload(edge)
    keepers = [edge.process.pid, edge.haproxy_pids()[0], *edge.agent_pids().values()]
    with Load(edge, target="/exchange/reloads", protocols=MIX) as load:
        load.wait_more(100)
        before = {pid: descriptors(pid) for pid in keepers}
        for _ in range(4):
            reload(edge)
        load.wait_more(100)
        poll(lambda: all(descriptors(pid) <= before[pid] + 4 for pid in keepers), "no descriptor was left open")
    assert_promise(load, upstream)
    one_worker(edge)
