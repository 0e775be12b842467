"""Open streams while the edge changes and ends: reloads and exchanges leave them alone, the end gives them SHUTDOWN_TIMEOUT and cuts
what is left."""

import contextlib
import os
import signal

import pytest

from agent_faults import both_up
from clients import PROTOCOLS, Closed, StreamReset, client, fetch
from edge import Edge, Process, poll
from policies import policy
from streams import Events, PlayedUpstream, WebSocket
from websocket import TEXT

KEPT_RELOADS = 3  # mworker-max-reloads in haproxy.cfg
KINDS = ["events-h1", "events-h2", "events-tls-h2", "websocket-h1", "websocket-h2", "websocket-tls-h1"]


@pytest.fixture(scope="module")
def upstream():
    with PlayedUpstream() as u:
        yield u


class Stream:
    """One stream of a kind, both of its ends."""

    def __init__(self, edge, upstream, kind, name):
        what, _, protocol = kind.partition("-")
        self.is_events, self.target = what == "events", f"/play/{name}/{kind}"
        self.client = (Events if self.is_events else WebSocket)(edge, protocol, self.target)
        self.played = upstream.play(self.target)
        if self.is_events:
            self.played.begin_events()
            assert self.client.open().status == 200
        else:
            self.frames = self.played.switch()
            assert self.client.is_open()

    def passes(self, text):
        """What the upstream sends arrives, and for a WebSocket the other way as well."""
        if self.is_events:
            self.played.event(text)
            return self.client.event() == text
        self.frames.send(TEXT, text.encode())
        self.client.frames.send(TEXT, text.encode())
        return self.client.frames.receive().payload == self.frames.receive().payload == text.encode()

    def was_ended(self):
        """Both ends see that it is over; nothing came before that."""
        try:
            assert not self.client.link.fill()
        except (Closed, StreamReset, ConnectionResetError):
            pass
        return self.played.closed()

    def close(self):
        self.client.close()
        self.played.end()


@contextlib.contextmanager
def open_streams(edge, upstream, name, kinds=KINDS):
    with contextlib.ExitStack() as held:
        streams = []
        for kind in kinds:
            streams.append(Stream(edge, upstream, kind, name))
            held.callback(streams[-1].close)
            assert streams[-1].passes("first")
        yield streams


@contextlib.contextmanager
def ending(upstream, cert, **settings):
    """An edge that the test ends; what is left of it afterwards is a failure, zombies included."""
    edge = Edge(policy(), upstream.url, settings=settings, cert=cert).start()
    try:
        yield edge
    except BaseException:
        edge.stop(check=False)
        raise
    edge.stop()


def new_worker(edge, before):
    return poll(lambda: set(edge.haproxy_pids()[1]) - set(before), "a new worker runs")


def zombies(edge):
    """Processes of the edge that have ended and that nobody has asked for their status."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError, IndexError):
            process = Process(int(name))
            if (process.session, process.state) == (edge.process.pid, "Z"):
                found.append(process.pid)
    return found


# --- while the edge goes on ---


def test_streams_go_on_across_a_reload_however_long_they_live(upstream, cert):
    """SHUTDOWN_TIMEOUT bounds the end of the edge only: a certificate that is renewed every few minutes would else cut every stream."""
    with Edge(policy(), upstream.url, settings={"SHUTDOWN_TIMEOUT": "1s"}, cert=cert) as edge, open_streams(edge, upstream, "reload") as old:
        before = edge.haproxy_pids()[1]
        edge.signal(signal.SIGUSR2)
        new_worker(edge, before)
        with open_streams(edge, upstream, "reloaded") as new:
            poll(lambda: fetch(edge, "GET", "/delay/1500").status == 200, "more than SHUTDOWN_TIMEOUT has passed")
            assert all(stream.passes("after the reload") for stream in [*old, *new])
            assert set(before) <= set(edge.haproxy_pids()[1]), "the old worker has its streams"
        for stream in old:
            stream.close()
        poll(lambda: not set(edge.haproxy_pids()[1]) & set(before), "the old worker ends with its last stream")
        poll(lambda: not zombies(edge), "its status has been asked for")


def test_a_process_that_has_seen_many_reloads_is_ended_with_its_streams(upstream, cert):
    """Else each reload would leave a process more, for as long as a stream lives."""
    with Edge(policy(), upstream.url, cert=cert) as edge, open_streams(edge, upstream, "oldest", ["events-h1", "websocket-h2"]) as oldest:
        first, seen = edge.haproxy_pids()[1], set()
        for i in range(KEPT_RELOADS + 1):
            assert all(stream.passes(f"reload {i}") for stream in oldest)
            seen |= set(edge.haproxy_pids()[1])
            edge.signal(signal.SIGUSR2)
            new_worker(edge, seen)
            poll(lambda: edge.readyz()[0] == 200, "the new one is ready")
        assert all(stream.was_ended() for stream in oldest)
        poll(lambda: not set(edge.haproxy_pids()[1]) & set(first), "the oldest process has ended")
        assert fetch(edge, "GET", "/after/many/reloads").status == 200


def test_streams_go_on_while_the_agents_are_exchanged(upstream, cert):
    with Edge(policy(), upstream.url, settings={"EDGE_AGENTS": "2"}, cert=cert) as edge:
        both_up(edge)
        before = edge.agent_pids()
        with open_streams(edge, upstream, "exchange") as streams:
            edge.signal(signal.SIGUSR1)
            edge.wait_lines(event="exchange_done")
            assert not set(edge.agent_pids().values()) & set(before.values())
            assert all(stream.passes("after the exchange") for stream in streams)
        poll(lambda: not zombies(edge), "the old agents' status has been asked for")


def test_streams_go_on_when_every_agent_is_killed(upstream, cert):
    with Edge(policy(), upstream.url, cert=cert) as edge, open_streams(edge, upstream, "killed") as streams:
        for pid in edge.agent_pids().values():
            os.kill(pid, signal.SIGKILL)
        assert all(stream.passes("without an agent") for stream in streams)
        poll(lambda: edge.readyz()[0] == 200, "an agent is back")


# --- the end ---


def test_streams_go_on_through_the_delay_and_the_shutdown_timeout_and_are_ended_then(upstream, cert):
    with ending(upstream, cert, DRAIN_DELAY="1s", SHUTDOWN_TIMEOUT="2s", EDGE_AGENTS="2") as edge:
        with open_streams(edge, upstream, "drain") as streams:
            edge.signal(signal.SIGTERM)
            poll(lambda: edge.readyz()[0] == 503, "/readyz says that the edge drains")
            with open_streams(edge, upstream, "drain-late", ["events-h1", "websocket-h2"]) as late:
                assert all(stream.passes("during the delay") for stream in [*streams, *late])
                edge.event("drain_soft_stop")
                assert all(stream.passes("after the delay") for stream in [*streams, *late])
                assert all(stream.was_ended() for stream in [*streams, *late])
        edge.event("drain_limit")
        assert edge.wait_exit() == 0


def test_the_edge_ends_with_its_last_stream_when_that_comes_before_the_limit(upstream, cert):
    with ending(upstream, cert, SHUTDOWN_TIMEOUT="60s") as edge:
        with open_streams(edge, upstream, "early") as streams:
            edge.signal(signal.SIGTERM)
            edge.event("drain_soft_stop")
            assert all(stream.passes("while draining") for stream in streams)
        assert edge.wait_exit() == 0
        assert edge.matching(event="drain_limit") == []


@pytest.mark.parametrize("protocol", list(PROTOCOLS))
def test_connections_that_are_idle_do_not_hold_up_the_end(upstream, cert, protocol):
    """A balancer keeps some open as long as it can."""
    with ending(upstream, cert, SHUTDOWN_TIMEOUT="60s") as edge, client(edge, protocol) as idle:
        assert idle.request("GET", "/before").status == 200
        with open_streams(edge, upstream, f"beside-idle-{protocol}", ["websocket-h1"]) as streams:
            edge.signal(signal.SIGTERM)
            edge.event("drain_soft_stop")
            assert streams[0].passes("while draining")
        assert edge.wait_exit() == 0
        assert edge.matching(event="drain_limit") == []


def test_idle_connections_of_a_process_that_was_reloaded_do_not_hold_up_the_end(upstream, cert):
    with ending(upstream, cert, SHUTDOWN_TIMEOUT="60s") as edge, client(edge, "h1") as old:
        assert old.request("GET", "/old").status == 200
        before = edge.haproxy_pids()[1]
        edge.signal(signal.SIGUSR2)
        new_worker(edge, before)
        with open_streams(edge, upstream, "beside-old", ["events-h1"]) as streams:
            assert streams[0].passes("by the new process")
            edge.signal(signal.SIGTERM)
            edge.event("drain_soft_stop")
        assert edge.wait_exit() == 0
        assert edge.matching(event="drain_limit") == []


def test_a_shutdown_timeout_of_nothing_cuts_streams_at_once(upstream, cert):
    with ending(upstream, cert, SHUTDOWN_TIMEOUT="0s") as edge, open_streams(edge, upstream, "at-once") as streams:
        edge.signal(signal.SIGTERM)
        assert all(stream.was_ended() for stream in streams)
        assert edge.wait_exit() == 0


def test_a_second_sigterm_ends_the_delay_and_leaves_streams_their_time(upstream, cert):
    with ending(upstream, cert, DRAIN_DELAY="60s", SHUTDOWN_TIMEOUT="60s") as edge:
        with open_streams(edge, upstream, "twice") as streams:
            edge.signal(signal.SIGTERM)
            edge.event("drain")
            edge.signal(signal.SIGTERM)
            edge.event("drain_soft_stop")
            assert all(stream.passes("after the second") for stream in streams)
        assert edge.wait_exit() == 0


def test_streams_of_a_worker_that_was_reloaded_are_ended_with_the_edge(upstream, cert):
    """What a reload left behind counts as well."""
    with ending(upstream, cert, SHUTDOWN_TIMEOUT="1s") as edge, open_streams(edge, upstream, "left-behind") as old:
        before = edge.haproxy_pids()[1]
        edge.signal(signal.SIGUSR2)
        new_worker(edge, before)
        with open_streams(edge, upstream, "of-the-new-one") as new:
            edge.signal(signal.SIGTERM)
            edge.event("drain_soft_stop")
            assert all(stream.passes("while draining") for stream in [*old, *new])
            assert all(stream.was_ended() for stream in [*old, *new])
        assert edge.wait_exit() == 0


def test_agents_are_stopped_after_haproxy(upstream, cert):
    with ending(upstream, cert, SHUTDOWN_TIMEOUT="60s", EDGE_AGENTS="2") as edge:
        agents = set(edge.agent_pids().values())
        with open_streams(edge, upstream, "last", ["events-h1"]) as streams:
            edge.signal(signal.SIGTERM)
            edge.event("drain_soft_stop")
            assert streams[0].passes("while draining")
            assert agents == {pid for pid in agents if Process(pid).state != "Z"}, "an agent has ended before HAProxy"
        assert edge.wait_exit() == 0
