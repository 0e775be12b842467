"""Server-sent events through the edge: events arrive as they are sent, nothing but an end ends a stream, and streams have slots of
their own."""

import contextlib
import shutil
from pathlib import Path

import pytest

from clients import PROTOCOLS, fetch, port_of
from edge import ROOT, Edge, poll
from policies import config_rule, under
from streams import MAX_STREAMS, REFUSALS, SSE, Events, PlayedUpstream, at_once, events, learn_pages, stream_edge, stream_policy

ALL = list(PROTOCOLS)
CLEAR = ["h1", "h2"]
POLICY = stream_policy(config_rule("short", under("/play"), upstream_timeout="1s"))


@pytest.fixture(scope="module")
def upstream():
    with PlayedUpstream() as u:
        yield u


@pytest.fixture(scope="module")
def edge(upstream, cert):
    with stream_edge(POLICY, upstream, cert) as e:
        yield e


@pytest.fixture(autouse=True)
def no_slot_left(edge):
    yield
    poll(lambda: at_once(edge) == 0, "every slot is free again")


@pytest.mark.parametrize("protocol", ALL)
def test_each_event_arrives_before_the_next_is_sent(edge, upstream, protocol):
    target = f"/play/each/{protocol}"
    with Events(edge, protocol, target) as client:
        played = upstream.play(target)
        played.begin_events()
        response = client.open()
        assert (response.status, response.get("content-type")) == (200, "text/event-stream")
        for i in range(20):
            played.event(f"event {i}")
            assert client.event() == f"event {i}"
        played.end_events()
        assert client.ended()
        played.end()


@pytest.mark.parametrize("protocol", CLEAR)
def test_an_event_larger_than_a_buffer_arrives_whole(edge, upstream, protocol):
    target = f"/play/large/{protocol}"
    with events(edge, upstream, protocol, target) as (client, played):
        played.event("x" * 200_000)
        assert client.event() == "x" * 200_000
        played.event("small")
        assert client.event() == "small"
        played.end()


@pytest.mark.parametrize("protocol", ALL)
def test_a_stream_that_the_client_leaves_ends_at_the_upstream(edge, upstream, protocol):
    target = f"/play/left/{protocol}"
    with events(edge, upstream, protocol, target) as (client, played):
        played.event("one")
        assert client.event() == "one"
    assert played.closed()
    played.end()


@pytest.mark.parametrize("protocol", ALL)
def test_a_stream_that_the_upstream_drops_ends_at_the_client_and_not_in_order(edge, upstream, protocol):
    target = f"/play/dropped/{protocol}"
    with events(edge, upstream, protocol, target) as (client, played):
        played.event("one")
        assert client.event() == "one"
        played.end()
        assert client.cut()


@pytest.mark.parametrize("protocol", CLEAR)
def test_last_event_id_reaches_the_upstream(edge, upstream, protocol):
    target = f"/play/resumed/{protocol}"
    with Events(edge, protocol, target, ("Last-Event-ID", "41")) as client:
        played = upstream.play(target)
        assert played.header("last-event-id") == "41"
        played.begin_events()
        client.open()
        played.end()


# --- silence ---


@pytest.fixture(scope="module")
def hasty(upstream, tmp_path_factory):
    """An edge that gives clients a second where others get a minute, as its policy does the upstream."""
    folder = tmp_path_factory.mktemp("hasty") / "haproxy"
    shutil.copytree(ROOT / "haproxy", folder)
    config = (folder / "haproxy.cfg").read_text()
    assert config.count("    timeout client 60s\n") == 1
    (folder / "haproxy.cfg").write_text(config.replace("    timeout client 60s\n", "    timeout client 1s\n"))
    with Edge(POLICY, upstream.url, settings={"EDGE_HAPROXY_DIR": folder}) as e:
        learn_pages(e)
        yield e


def outlast_the_timeouts(edge, upstream):
    """Three requests, one after the other, that the upstream never answers: what was silent all the while has outlived the second of
    its own timeouts."""
    for _ in range(3):
        assert fetch(edge, "GET", "/play/never").status == 504
        upstream.play("/play/never").end()


@pytest.mark.parametrize("protocol", CLEAR)
@pytest.mark.parametrize("begun", [False, True], ids=["before the first event", "between events"])
def test_neither_upstream_timeout_nor_silence_cuts_a_stream(hasty, upstream, protocol, begun):
    target = f"/play/silent/{protocol}/{begun}"
    with events(hasty, upstream, protocol, target) as (client, played):
        if begun:
            played.event("before")
            assert client.event() == "before"
        outlast_the_timeouts(hasty, upstream)
        played.event("after")
        assert client.event() == "after"
        played.end_events()
        assert client.ended()
        played.end()


@pytest.mark.parametrize("protocol", CLEAR)
def test_a_stream_whose_headers_never_come_is_bounded_by_upstream_timeout(hasty, upstream, protocol):
    target = f"/play/headless/{protocol}"
    with Events(hasty, protocol, target) as client:
        played = upstream.play(target)
        response = client.open()
        assert response.status == 504
        assert b"gateway_timeout" in client.page()
        assert played.closed()
        played.end()


@pytest.mark.parametrize("protocol", CLEAR)
def test_a_client_that_does_not_read_is_cut(hasty, upstream, protocol):
    """It holds buffers, which a client that is merely silent does not."""
    target = f"/play/stalled/{protocol}"
    with events(hasty, upstream, protocol, target) as (client, played):
        with pytest.raises((BrokenPipeError, ConnectionResetError)):
            while True:
                played.event("x" * 60_000)
        poll(lambda: at_once(hasty) == 0, "the slot is free")
        played.end()


def is_probed(edge_port, peer_port):
    """The timer of TCP keepalive runs on the edge's connection, which is one of 127.0.0.1."""
    ends = [f"0100007F:{port:04X}" for port in (edge_port, peer_port)]
    rows = [row.split() for row in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    (timer,) = [row[5] for row in rows if row[1:3] == ends]
    return timer.startswith("02:")


@pytest.mark.parametrize("protocol", ALL)
def test_a_peer_that_vanishes_during_a_silent_stream_is_looked_for(edge, upstream, protocol):
    """Both of the edge's connections probe a peer that says nothing."""
    target = f"/play/vanished/{protocol}"
    with events(edge, upstream, protocol, target) as (client, played):
        poll(lambda: is_probed(port_of(edge, protocol), client.link.http.sock.getsockname()[1]), "the client's connection is probed")
        poll(lambda: is_probed(played.sock.getpeername()[1], upstream.port), "the upstream's connection is probed")
        played.end()


# --- slots ---


@pytest.mark.parametrize("protocol", CLEAR)
def test_a_stream_holds_a_stream_slot_and_no_ordinary_one_until_both_ends_have_closed(edge, upstream, protocol):
    target = f"/play/slot/{protocol}"
    with events(edge, upstream, protocol, target) as (client, played):
        assert (at_once(edge, "stream"), at_once(edge, "plain"), at_once(edge, "body")) == (1, 0, 0)
        played.event("one")
        assert client.event() == "one"
        assert at_once(edge, "stream") == 1
    assert played.closed()
    poll(lambda: at_once(edge, "stream") == 0, "the slot is free")
    played.end()


@pytest.mark.parametrize("protocol", CLEAR)
def test_streams_beyond_max_streams_get_the_page_of_overloaded_and_ordinary_requests_pass(edge, upstream, protocol):
    target = f"/play/full/{protocol}"
    with contextlib.ExitStack() as held:
        clients = [held.enter_context(Events(edge, protocol, target)) for _ in range(MAX_STREAMS)]
        for _ in clients:
            played = upstream.play(target)
            held.callback(played.end)
            played.begin_events()
        assert [client.open().status for client in clients] == [200] * MAX_STREAMS
        refused = fetch(edge, "GET", f"{target}/refused", [SSE], protocol=protocol)
        assert (refused.status, refused.json()["kind"], refused.get("retry-after")) == (503, "overloaded", "1")
        assert not upstream.seen(f"{target}/refused")
        assert fetch(edge, "GET", f"/ordinary/{protocol}", protocol=protocol).status == 200
    poll(lambda: at_once(edge) == 0, "every slot is free again")
    with Events(edge, protocol, f"{target}/again") as again:
        one = upstream.play(f"{target}/again")
        one.begin_events()
        assert again.open().status == 200
        one.end()


@pytest.mark.parametrize("protocol", CLEAR)
@pytest.mark.parametrize("target, status, kind", REFUSALS)
def test_a_refused_stream_is_answered_plainly_and_its_slot_is_free(edge, upstream, protocol, target, status, kind):
    marked = f"{target}/{protocol}"
    if status == 429:
        fetch(edge, "GET", f"{target}/spent", protocol=protocol)
    with Events(edge, protocol, marked) as client:
        response = client.open()
        assert response.status == status
        assert response.get("content-type") == "application/json"
        assert f'"kind":"{kind}"'.encode() in client.page()
        poll(lambda: at_once(edge) == 0, "the slot is free while the connection is open")
    assert not upstream.seen(marked)
