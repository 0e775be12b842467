"""Access records while the process that reads them changes: each request is one line, whichever process decided it and whichever read
its record."""

import signal
from collections import Counter
from contextlib import ExitStack

import pytest

from agent_faults import FAULTS, said_since
from edge import Edge, poll
from load import Load
from policies import policy
from streams import Events, PlayedUpstream

MIX = ("h1", "h2", "h1")
PER_SECOND = 400
PART = 500  # requests before, between and after the exchanges
STREAMS = 6


def paths(edge, marker):
    """How often each path with that marker has a line."""
    found = (line["json"] for line in list(edge.lines) if line["json"] and line["json"].get("msg") == "access")
    return Counter(path for path in (line.get("url.path", "") for line in found) if path.startswith(marker))


def wait_paths(edge, marker, n):
    poll(lambda: len(paths(edge, marker)) >= n, f"a line for each of {n} requests")


def exchange(edge):
    """Of every agent; each of them gets the connection of its predecessor."""
    line, before, agents = len(edge.lines), edge.agent_pids(), int(edge.environment["EDGE_AGENTS"])
    edge.signal(signal.SIGUSR1)
    poll(lambda: said_since(edge, line, "exchange_done"), "the agents have been exchanged")
    assert not set(edge.agent_pids().values()) & set(before.values())
    poll(lambda: count_since(edge, line, "records_taken_over") == agents, "HAProxy's connections go on in the new processes")


def count_since(edge, line, event):
    return sum(row["json"] is not None and row["json"].get("event") == event for row in edge.lines[line:])


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


@pytest.mark.parametrize("agents", ["1", "2"])
def test_each_request_is_one_line_while_the_agents_are_exchanged(upstream, agents):
    with Edge(policy(), upstream.url, settings={"EDGE_AGENTS": agents}) as edge, ExitStack() as stack:
        streams = [open_stream(stack, edge, upstream, MIX[i % 2], f"/play/open/{i}") for i in range(STREAMS)]
        with Load(edge, target="/records", protocols=MIX, per_second=PER_SECOND) as load:
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
        assert sum(edge.metric("edge_records_malformed_total", agent) for agent in range(int(agents))) == 0
    assert [path for path, n in paths(edge, "/").items() if n != 1] == []
    assert len(paths(edge, "/records/")) == load.tally.sent


def test_requests_that_wait_for_nothing_but_their_end_are_lines_of_the_process_that_reads_then(upstream):
    """The process that decided a stream has ended when its record comes."""
    with Edge(policy(), upstream.url) as edge, ExitStack() as stack:
        stream = open_stream(stack, edge, upstream, "h1", "/play/outlives")
        for _ in range(2):
            exchange(edge)
        assert paths(edge, "/play/outlives") == {}
        end_stream(*stream)
        edge.record_of("/play/outlives")


def test_an_agent_that_is_told_to_end_alone_leaves_no_record_unread(upstream):
    """Nobody takes its connection over: HAProxy keeps what it could not write, and gives it to the process that the launcher starts."""
    with Edge(policy(), upstream.url, settings={"EDGE_AGENTS": "2"}) as edge:
        with Load(edge, target="/alone", protocols=MIX, per_second=PER_SECOND) as load:
            load.wait_more(PART)
            FAULTS["sigterm"](edge)
            load.wait_more(PART)
        assert load.failures == []
        wait_paths(edge, "/alone/", load.tally.sent)
    assert [path for path, n in paths(edge, "/alone/").items() if n != 1] == []
