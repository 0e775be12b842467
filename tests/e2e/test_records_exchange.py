"""Access records while the process that reads them changes: each request is one line, whichever process decided it and whichever read
its record; where a process is killed, what it had not counted is known to be lost."""

import os
import signal
from contextlib import ExitStack

import pytest

from agent_faults import both_up, said_since
from edge import Edge, poll
from load import Load
from policies import policy
from records import agents, paths, wait_accounts, wait_all_counted, wait_paths
from streams import Events, PlayedUpstream

MIX = ("h1", "h2", "h1")
PER_SECOND = 200
PART = 150  # requests before, between and after the faults
STREAMS = 6
both = pytest.mark.parametrize("n_agents", ["1", "2"])


def count_since(edge, line, event):
    return sum(row["json"] is not None and row["json"].get("event") == event for row in edge.lines[line:])


def exchange(edge):
    """Of every agent; each of them gets the connection of its predecessor."""
    line, before = len(edge.lines), edge.agent_pids()
    edge.signal(signal.SIGUSR1)
    poll(lambda: said_since(edge, line, "exchange_done"), "the agents have been exchanged")
    assert not set(edge.agent_pids().values()) & set(before.values())
    poll(lambda: count_since(edge, line, "records_taken_over") == len(agents(edge)), "HAProxy's connections go on in the new processes")


def end_agent(edge, number):
    line = len(edge.lines)
    os.kill(edge.agent_pids()[0], number)
    poll(lambda: said_since(edge, line, "agent_ready"), "the launcher started another agent")


def kill(edge):
    end_agent(edge, signal.SIGKILL)


def end_alone(edge):
    end_agent(edge, signal.SIGTERM)


def not_once(edge, marker):
    return [path for path, n in paths(edge, marker).items() if n != 1]


@pytest.fixture
def upstream():
    with PlayedUpstream() as u:
        yield u


def open_stream(stack, edge, upstream, protocol, target):
    client = stack.enter_context(Events(edge, protocol, target))
    played = upstream.play(target)
    played.begin_events()
    assert client.open().status == 200
    return client, played


def end_stream(client, played):
    played.event("last")
    assert client.event() == "last"
    played.end_events()
    assert client.ended()
    played.end()


@both
def test_each_request_is_one_line_while_the_agents_are_exchanged(upstream, n_agents):
    with Edge(policy(), upstream.url, settings={"EDGE_AGENTS": n_agents}) as edge, ExitStack() as stack:
        streams = [open_stream(stack, edge, upstream, MIX[i % 2], f"/play/open/{i}") for i in range(STREAMS)]
        # A lone agent may leave a question unanswered; that request is refused, and has its line as well.
        with Load(edge, target="/records", protocols=MIX, per_second=PER_SECOND, fail_mode=n_agents == "1") as load:
            load.wait_more(PART)
            for stream in streams[::2]:
                exchange(edge)
                end_stream(*stream)
                load.wait_more(PART)
        for stream in streams[1::2]:
            end_stream(*stream)
        assert load.failures == []
        wait_paths(edge, "/records/", load.tally.sent)
        wait_paths(edge, "/play/", STREAMS)
        wait_all_counted(edge, load.tally.sent + STREAMS)
        assert sum(edge.metric("edge_records_malformed_total", agent) for agent in agents(edge)) == 0
    assert not_once(edge, "/") == []
    assert len(paths(edge, "/records/")) == load.tally.sent


def test_a_stream_that_outlives_the_process_that_decided_it_is_a_line_of_the_one_that_reads_then(upstream):
    with Edge(policy(), upstream.url) as edge, ExitStack() as stack:
        stream = open_stream(stack, edge, upstream, "h1", "/play/outlives")
        for _ in range(2):
            exchange(edge)
        assert paths(edge, "/play/outlives") == {}
        end_stream(*stream)
        edge.record_of("/play/outlives")


def check_counted_or_lost(upstream, n_agents, fault):
    with Edge(policy(), upstream.url, settings={"EDGE_AGENTS": n_agents}) as edge:
        if n_agents == "2":
            both_up(edge)
        with Load(edge, target="/fault", protocols=MIX, per_second=PER_SECOND, fail_mode=n_agents == "1") as load:
            load.wait_more(PART)
            for _ in range(2):
                fault(edge)
                load.wait_more(PART)
            healed = load.tally.sent
            load.wait_more(PART)
        assert load.failures == []
        accounts = wait_accounts(edge, load.tally.sent)
        assert load.tally.sent - sum(a[0] for a in accounts) <= accounts[0][2], accounts
        late = {f"/fault/{n}" for n in range(healed, load.tally.sent)}
        poll(lambda: late <= set(paths(edge, "/fault/")), "a line for each request since")
    assert not_once(edge, "/fault/") == []


@both
def test_a_request_whose_record_was_in_a_killed_agent_is_counted_or_lost(upstream, n_agents):
    """HAProxy holds what it had not begun to write until the next process reads it; with one agent requests are refused meanwhile. A line that the
    killed process had not written yet is gone, although its request is counted."""
    check_counted_or_lost(upstream, n_agents, kill)


@both
def test_a_request_whose_record_came_when_an_agent_ended_alone_is_counted_or_lost(upstream, n_agents):
    """Nobody takes its connection over: what HAProxy was just writing when it ended is gone."""
    check_counted_or_lost(upstream, n_agents, end_alone)
