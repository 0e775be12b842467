"""WebSockets through the edge (RFC 6455, over HTTP/2 RFC 8441): frames pass as they are, a refusal is a plain answer, nobody switches to
a protocol that was not asked for, and a slot is held as long as either end is open."""

import contextlib
import time

import pytest

from clients import PROTOCOLS, Http1, Http2, StreamReset, fetch
from edge import poll
from streams import MAX_STREAMS, REFUSALS, Events, PlayedUpstream, WebSocket, at_once, stream_edge, stream_policy
from websocket import BINARY, CLOSE, CONTINUATION, PING, PONG, TEXT, close_payload, new_key, request_headers

ALL = list(PROTOCOLS)
CLEAR = ["h1", "h2"]
LIFE_S = 0.5


@pytest.fixture(scope="module")
def upstream():
    with PlayedUpstream() as u:
        yield u


@pytest.fixture(scope="module")
def edge(upstream, cert):
    with stream_edge(stream_policy(), upstream, cert) as e:
        yield e


@pytest.fixture(autouse=True)
def no_slot_left(edge):
    yield
    poll(lambda: at_once(edge) == 0, "every slot is free again")


@contextlib.contextmanager
def opened(edge, upstream, protocol, target, *headers, lines=()):
    """(client, the upstream's connection, its frames), switched."""
    with WebSocket(edge, protocol, target, *headers) as client:
        played = upstream.play(target)
        try:
            frames = played.switch(*lines)
            assert client.is_open(), client.response
            yield client, played, frames
        finally:
            played.end()


def check_echo(client, frames, opcode, payload):
    """There as it was sent, masked (Socket.receive looks), and back."""
    client.frames.send(opcode, payload)
    got = frames.receive()
    assert (got.opcode, got.payload) == (opcode, payload)
    frames.send(opcode, payload)
    got = client.frames.receive()
    assert (got.opcode, got.payload) == (opcode, payload)


@pytest.mark.parametrize("protocol", ALL)
def test_frames_of_every_size_pass_both_ways_at_once(edge, upstream, protocol):
    with opened(edge, upstream, protocol, f"/play/echo/{protocol}") as (client, _, frames):
        for size in (0, 1, 125, 126, 65_535, 65_536, 150_000):
            check_echo(client, frames, BINARY, bytes(i % 251 for i in range(size)))
        check_echo(client, frames, TEXT, "grüße".encode())


@pytest.mark.parametrize("protocol", ALL)
def test_the_handshake_reaches_the_upstream_with_its_subprotocol_and_origin(edge, upstream, protocol):
    target = f"/play/handshake/{protocol}"
    asked = [("Sec-WebSocket-Protocol", "chat, superchat"), ("Origin", "https://a.example"), ("Sec-WebSocket-Extensions", "permessage-deflate")]
    with opened(edge, upstream, protocol, target, *asked, lines=(b"Sec-WebSocket-Protocol: superchat",)) as (client, played, _):
        request = played.request
        assert (request["method"], request["version"]) == ("GET", "HTTP/1.1")
        assert (played.header("upgrade"), played.header("connection").lower()) == ("websocket", "upgrade")
        assert played.header("sec-websocket-version") == "13"
        assert [played.header(name.lower()) for name, _ in asked] == [value for _, value in asked]
        assert played.header("host") == "edge.test"
        assert played.header("x-edge-client-ip") == "127.0.0.1"
        if not client.is_h2:
            assert played.header("sec-websocket-key") == client.key
        assert client.response.get("sec-websocket-protocol") == "superchat"


@pytest.mark.parametrize("protocol", CLEAR)
def test_what_the_upstream_sends_with_its_handshake_arrives(edge, upstream, protocol):
    target = f"/play/early/{protocol}"
    with WebSocket(edge, protocol, target) as client:
        played = upstream.play(target)
        played.switch().send(TEXT, b"first")
        assert client.is_open()
        assert client.frames.receive().payload == b"first"
        played.end()


@pytest.mark.parametrize("protocol", CLEAR)
def test_fragments_pings_and_close_codes_pass_as_they_are(edge, upstream, protocol):
    with opened(edge, upstream, protocol, f"/play/frames/{protocol}") as (client, _, frames):
        client.frames.send(TEXT, b"frag", fin=False)
        client.frames.send(PING, b"between")
        client.frames.send(CONTINUATION, b"ment")
        got = [frames.receive() for _ in range(3)]
        assert [(f.opcode, f.payload, f.fin) for f in got] == [(TEXT, b"frag", False), (PING, b"between", True), (CONTINUATION, b"ment", True)]
        frames.send(PONG, b"between")
        assert client.frames.receive().opcode == PONG
        client.frames.send(CLOSE, close_payload(4001, b"enough"))
        got = frames.receive()
        assert (got.opcode, got.code(), got.payload[2:]) == (CLOSE, 4001, b"enough")
        frames.send(CLOSE, close_payload(4001))
        assert client.frames.receive().code() == 4001


# --- the end ---


@pytest.mark.parametrize("protocol", CLEAR)
def test_an_upstream_that_has_closed_its_side_still_reads_and_the_slot_is_held(edge, upstream, protocol):
    """RFC 6455 7.1.1: the server closes first, the client's end follows."""
    with opened(edge, upstream, protocol, f"/play/half/upstream/{protocol}") as (client, played, frames):
        frames.send(CLOSE, close_payload(1000))
        played.half_close()
        assert client.frames.receive().code() == 1000
        assert client.ended()
        assert at_once(edge) == 1
        client.frames.send(CLOSE, close_payload(1000))
        assert frames.receive().code() == 1000
        client.close()
        assert played.closed()
        poll(lambda: at_once(edge) == 0, "the slot is free")


@pytest.mark.parametrize("protocol", CLEAR)
def test_a_client_that_has_closed_its_side_still_reads(edge, upstream, protocol):
    with opened(edge, upstream, protocol, f"/play/half/client/{protocol}") as (client, played, frames):
        client.frames.send(CLOSE, close_payload(1001))
        client.half_close()
        assert frames.receive().code() == 1001
        assert played.closed()
        frames.send(CLOSE, close_payload(1001))
        assert client.frames.receive().code() == 1001


@pytest.mark.parametrize("protocol", ALL)
def test_a_websocket_whose_upstream_is_gone_ends_at_the_client(edge, upstream, protocol):
    with opened(edge, upstream, protocol, f"/play/gone/{protocol}") as (client, played, _):
        played.end()
        assert client.ended()


@pytest.mark.parametrize("protocol", ALL)
def test_a_websocket_whose_client_is_gone_ends_at_the_upstream_and_frees_its_slot(edge, upstream, protocol):
    with opened(edge, upstream, protocol, f"/play/left/{protocol}") as (client, played, _):
        assert (at_once(edge, "stream"), at_once(edge, "plain")) == (1, 0)
        client.close()
        assert played.closed()
        played.end()
        poll(lambda: at_once(edge) == 0, "the slot is free")


# --- records ---


@pytest.mark.parametrize("protocol", CLEAR)
def test_a_websocket_has_one_record_at_its_end_with_status_101_and_its_lifetime(edge, upstream, protocol):
    target = f"/play/record/{protocol}"
    with opened(edge, upstream, protocol, target) as (client, _, frames):
        check_echo(client, frames, TEXT, b"hello")
        assert fetch(edge, "GET", f"/delay/300/{protocol}").status == 200, "the WebSocket is older than this request"
        assert edge.matching(url__path=target) == []
    record, other = edge.record_of(target), edge.record_of(f"/delay/300/{protocol}")
    assert (record["http.response.status_code"], record["edge.decision"]) == (101, "allow")
    assert record["duration_ms"] >= other["duration_ms"]


# --- refused ---


@pytest.mark.parametrize("protocol", ALL)
@pytest.mark.parametrize("target, status, kind", REFUSALS)
def test_a_refused_upgrade_is_answered_plainly_and_its_slot_is_free(edge, upstream, protocol, target, status, kind):
    marked = f"{target}/{protocol}"
    if status == 429:
        fetch(edge, "GET", f"{target}/spent")
    with WebSocket(edge, protocol, marked) as client:
        response = client.open()
        assert (response.status, response.get("content-type")) == (status, "application/json")
        assert response.get("upgrade") is None
        assert f'"kind":"{kind}"'.encode() in client.page()
        poll(lambda: at_once(edge) == 0, "the slot is free while the connection is open")
    assert not upstream.seen(marked)


@pytest.mark.parametrize("protocol", ALL)
@pytest.mark.parametrize("status", [200, 403, 426])
def test_an_upgrade_that_the_upstream_refuses_gets_its_answer(edge, upstream, protocol, status):
    target = f"/play/refused/{status}/{protocol}"
    with WebSocket(edge, protocol, target) as client:
        played = upstream.play(target)
        played.answer(status, b"no tunnel here", b"X-Why: because")
        response = client.open()
        assert (response.status, response.get("x-why")) == (status, "because")
        assert client.page() == b"no tunnel here"
        played.end()


@pytest.mark.parametrize("protocol", CLEAR)
def test_websockets_and_event_streams_share_the_slots(edge, upstream, protocol):
    with contextlib.ExitStack() as held:
        for i in range(MAX_STREAMS - 1):
            held.enter_context(opened(edge, upstream, protocol, f"/play/shared/{protocol}/{i}"))
        events = held.enter_context(Events(edge, protocol, f"/play/shared/{protocol}/events"))
        played = upstream.play(f"/play/shared/{protocol}/events")
        held.callback(played.end)
        played.begin_events()
        assert events.open().status == 200
        client = held.enter_context(WebSocket(edge, protocol, f"/play/shared/{protocol}/refused"))
        response = client.open()
        assert (response.status, response.get("retry-after")) == (503, "1")
        assert b'"kind":"overloaded"' in client.page()
        assert not upstream.seen(f"/play/shared/{protocol}/refused")
    poll(lambda: at_once(edge) == 0, "every slot is free again")
    with opened(edge, upstream, protocol, f"/play/shared/{protocol}/again"):
        pass


# --- a switch to something else ---

OTHERS = {
    "another": b"Upgrade: chat",
    "none": b"X-Upgrade: websocket",
    "several": b"Upgrade: websocket, chat",
    "two lines": b"Upgrade: websocket\r\nUpgrade: chat",
    "a version": b"Upgrade: websocket/13",
    "HTTP/2": b"Upgrade: h2c",
}


@pytest.mark.parametrize("protocol", CLEAR)
@pytest.mark.parametrize("kind", OTHERS)
def test_a_switch_to_another_protocol_than_asked_is_a_bad_gateway(edge, upstream, protocol, kind):
    target = f"/play/switched/{kind.replace(' ', '-')}/{protocol}"
    with WebSocket(edge, protocol, target) as client:
        played = upstream.play(target)
        played.send(b"HTTP/1.1 101 Switching\r\nConnection: Upgrade\r\n" + OTHERS[kind] + b"\r\n\r\n")
        assert client.open().status == 502
        assert b'"kind":"bad_gateway"' in client.page()
        assert played.closed()
        played.end()


@pytest.mark.parametrize("upgrade", ["h2c", "H2C", "websocket, h2c", "h2c, websocket"])
def test_no_request_that_asks_for_another_http_version_switches(edge, upstream, upgrade):
    target = f"/play/h2c/{upgrade.replace(', ', '-')}"
    with Http1(edge.port) as c:
        c.send(f"GET {target} HTTP/1.1\r\nHost: edge.test\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: {upgrade}\r\n".encode())
        c.send(f"HTTP2-Settings: AAMAAABkAAQAAP__\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {new_key()}\r\n\r\n".encode())
        played = upstream.play(target)
        assert "h2c" not in (played.header("upgrade") or "").lower() and played.header("http2-settings") is None
        played.send(b"HTTP/1.1 101 Switching\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n")
        assert c.receive().status == 502
        assert played.closed()
        played.end()


def test_the_body_of_an_upgrade_reaches_the_upstream_before_the_switch(edge, upstream):
    target = "/play/with/body"
    with Http1(edge.port) as c:
        lines = "".join(f"{name}: {value}\r\n" for name, value in request_headers(new_key()))
        c.send(f"POST {target} HTTP/1.1\r\nHost: edge.test\r\n{lines}Content-Length: 5\r\n\r\nhello".encode())
        played = upstream.play(target)
        assert played.request["body_len"] == 5
        frames = played.switch()
        assert c.receive().status == 101
        frames.send(TEXT, b"after")
        assert c.take(7)[2:] == b"after"
        played.end()


@pytest.mark.parametrize("asked", [None, "chat"])
def test_connect_opens_no_tunnel_but_a_websocket_over_http2(edge, upstream, asked):
    target = f"/play/tunnel/{asked}"
    with Http2(edge.port) as c:
        headers = [(":protocol", asked)] if asked else []
        try:
            status = c.request("CONNECT", target, headers).status
        except StreamReset:
            status = "reset"
        assert status in (400, 403, 405, 501, 502, "reset"), status
    assert not upstream.seen("edge.test:443") and not upstream.seen(target)


def test_requests_follow_each_other_on_a_connection_whose_upgrade_was_refused(edge):
    """A client that can't have a tunnel still has its connection."""
    with Http1(edge.port) as c:
        assert c.request("GET", "/shut/kept", request_headers(new_key())).status == 403
        assert c.request("GET", "/kept").status == 200


@pytest.mark.parametrize("protocol", CLEAR)
def test_a_websocket_is_logged_and_counted_as_the_101_that_it_is_and_its_life_is_no_latency(edge, upstream, protocol):
    """Over HTTP/2, too, where its client sees a 200 (RFC 8441 5)."""
    target, counted = f"/play/life/{protocol}", {"origin": "upstream", "code": "101"}
    before = edge.metrics()["edge_responses_total"].samples.get(("edge_responses_total", tuple(sorted(counted.items()))), 0)
    with opened(edge, upstream, protocol, target) as (client, _, frames):
        time.sleep(LIFE_S)  # what the line must tell
        check_echo(client, frames, TEXT, b"late")
    line = edge.record_of(target)
    assert (line["edge.decision"], line["http.response.status_code"], line["edge.upstream_answered"]) == ("allow", 101, True)
    assert line["duration_ms"] - line["edge.latency_ms"] >= 1000 * LIFE_S
    assert edge.metric("edge_responses_total", **counted) == before + 1
