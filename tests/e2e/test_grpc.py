"""gRPC and what else needs HTTP/2 towards the upstream, in the clear by prior knowledge and over TLS by ALPN: messages flow both ways at
once, trailers arrive, and a WebSocket beside it goes to the same port over HTTP/1."""

import hashlib
import os
import socket

import pytest

from authority import Authority
from clients import Closed, Http1, StreamReset, client, fetch
from edge import Edge, poll
from h2_streams import Streams
from h2_upstream import GRPC_OK, H2NamedUpstream, H2Upstream
from policies import policy
from test_upstream_faults import kept

GRPC = [("content-type", "application/grpc"), ("te", "trailers")]
PROTOCOLS = pytest.mark.parametrize("protocol", ["h1", "h2"])


def message(data):
    """Length-prefixed as gRPC does it."""
    return b"\0" + len(data).to_bytes(4, "big") + data


@pytest.fixture(scope="module", params=["clear", "tls"])
def upstream(request, tmp_path_factory):
    if request.param == "clear":
        with H2Upstream() as u:
            u.settings = {"EDGE_UPSTREAM_PROTO": "h2"}
            yield u
    else:
        authority = Authority(tmp_path_factory.mktemp("authority"))
        with H2NamedUpstream({None: authority.issue("edge.test")}) as u:
            u.settings = {"SSL_CERT_FILE": authority.pem}
            yield u


@pytest.fixture(scope="module")
def edge(upstream):
    document = policy()
    document["global"]["defaults"]["body_limit"] = 1 << 30
    with Edge(document, upstream.url, settings=upstream.settings) as e:
        yield e


@pytest.fixture
def streams(edge):
    with Streams(edge.port) as s:
        yield s


def test_a_unary_call_comes_back_with_its_trailers(streams, upstream):
    stream = streams.open("/grpc.Test/Unary", GRPC)
    streams.send(stream, message(b"hello"), end=True)
    seen = streams.whole(stream)
    assert (seen.status, seen.data, seen.trailers) == (200, message(b"hello"), GRPC_OK)
    assert ("content-type", "application/grpc") in seen.headers
    request = upstream.seen("/grpc.Test/Unary")[-1]
    assert request["version"] == "HTTP/2.0"
    assert dict(request["headers"])["te"] == "trailers" and dict(request["headers"])[":authority"] == "edge.test"


def test_an_error_without_a_body_keeps_its_grpc_status(streams):
    stream = streams.open("/grpc.Test/Fail", GRPC)
    streams.send(stream, message(b""), end=True)
    seen = streams.whole(stream)
    headers = dict(seen.headers)
    assert (seen.status, headers["grpc-status"], headers["grpc-message"], seen.data) == (200, "5", "no such thing", b"")


def test_a_bidirectional_stream_answers_each_message_before_the_next_is_sent(streams):
    stream, sent = streams.open("/grpc.Test/Bidi", GRPC), b""
    assert streams.until(stream, lambda seen: seen.status).status == 200, "headers come before any message"
    for i in range(50):
        streams.send(stream, message(b"%d" % i))
        sent += message(b"%d" % i)
        streams.until(stream, lambda seen: len(seen.data) == len(sent))
    streams.send(stream, b"", end=True)
    seen = streams.whole(stream)
    assert (seen.data, seen.trailers) == (sent, GRPC_OK)


def test_many_streams_of_one_client_run_side_by_side(streams):
    open_ones = [streams.open("/grpc.Test/Bidi", GRPC) for _ in range(80)]
    for stream in open_ones:
        streams.until(stream, lambda seen: seen.status)
    for stream in reversed(open_ones):
        streams.send(stream, message(b"%d" % stream))
    for stream in open_ones:
        streams.until(stream, lambda seen, size=len(message(b"%d" % stream)): len(seen.data) == size)
        streams.send(stream, b"", end=True)
    for stream in open_ones:
        seen = streams.whole(stream)
        assert (seen.data, seen.trailers) == (message(b"%d" % stream), GRPC_OK)


def test_a_message_larger_than_every_window_arrives_whole_both_ways(streams, upstream):
    stream, data = streams.open("/grpc.Test/Unary", GRPC), os.urandom(3_000_000)
    streams.send(stream, data, end=True)
    seen = streams.whole(stream)
    assert (seen.data == data, seen.trailers) == (True, GRPC_OK)
    assert upstream.seen("/grpc.Test/Unary")[-1]["body_sha256"] == hashlib.sha256(data).hexdigest()


def test_streams_that_nobody_reads_do_not_hold_up_their_neighbours(edge):
    """All of one client, thus of one connection to the upstream."""
    with Streams(edge.port, reads=False) as s:
        stalled = [s.open("/grpc.Test/Large/5000000", GRPC, end=True) for _ in range(5)]
        for stream in stalled:
            s.until(stream, lambda seen: len(seen.data) == 65535)
        for _ in range(20):
            other = s.whole(s.open("/grpc.Test/Large/5000", GRPC, end=True))
            assert (len(other.data), other.trailers) == (5000, GRPC_OK)
        assert [len(s.seen[stream].data) for stream in stalled] == [65535] * 5


def test_the_trailers_of_a_request_do_not_reach_the_upstream(streams, upstream):
    stream = streams.open("/grpc.Test/Unary?trailers", GRPC)
    streams.send(stream, message(b"hello"))
    streams.send_trailers(stream, [("x-edge-client-ip", "1.2.3.4"), ("x-any", "a")])
    assert streams.until(stream, lambda seen: seen.ended).status == 200
    request = upstream.seen("/grpc.Test/Unary?trailers")[-1]
    assert (request["trailers"], request["body_len"]) == ([], len(message(b"hello")))


def test_an_http1_client_gets_the_trailers_behind_the_chunks(edge):
    with Http1(edge.port) as c:
        body = message(b"hello")
        c.send(b"POST /grpc.Test/Unary HTTP/1.1\r\nHost: edge.test\r\nContent-Type: application/grpc\r\nTE: trailers\r\n")
        c.send(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        assert c.take_line().startswith(b"HTTP/1.1 200 ")
        assert ("transfer-encoding", "chunked") in c.take_headers()
        received = b""
        while size := int(c.take_line(), 16):
            received += c.take(size)
            c.take(2)
        assert (received, c.take_headers()) == (body, GRPC_OK)
        assert c.request("GET", "/after").status == 200, "the connection goes on"


def test_a_client_that_resets_a_stream_ends_it_at_the_edge_and_no_other(streams, edge):
    kept, left = streams.open("/grpc.Test/Bidi", GRPC), streams.open("/grpc.Test/Bidi/left", GRPC)
    for stream in (kept, left):
        streams.until(stream, lambda seen: seen.status)
    streams.h2.reset_stream(left, 8)
    streams.flush()
    assert edge.record_of("/grpc.Test/Bidi/left")["edge.upstream_answered"] is True
    streams.send(kept, message(b"still"), end=True)
    assert streams.whole(kept).data == message(b"still")


@PROTOCOLS
def test_ordinary_requests_go_over_http2_with_path_query_and_headers_as_the_policy_leaves_them(edge, upstream, protocol):
    with client(edge, protocol) as c:
        headers = [("X-Twice", "a"), ("x-twice", "b"), ("Cookie", "a=1; b=2"), ("X-Edge-Client-IP", "1.2.3.4")]
        response = c.request("POST", "/a|b/%7C?x=1&y=%zz&z=1;2&w=2", headers, b"body", host="Edge.test:8080")
    received = response.json()
    assert (received["method"], received["target"], received["version"]) == ("POST", "/a%7Cb/%7C?x=1&w=2", "HTTP/2.0")
    pairs = [(n, v) for n, v in received["headers"]]
    assert [v for n, v in pairs if n == "x-twice"] == ["a", "b"]
    assert [v for n, v in pairs if n == "cookie"] == ["a=1; b=2"]
    assert [v for n, v in pairs if n == "x-edge-client-ip"] == ["127.0.0.1"]
    assert [v for n, v in pairs if n in (":authority", "host")] == ["Edge.test:8080"]


@PROTOCOLS
def test_a_head_request_has_no_body_over_http2(edge, protocol):
    with client(edge, protocol) as c:
        assert (c.request("HEAD", "/head").status, c.request("GET", "/after-head").status) == (200, 200)


BROKEN_OFF = ["Reset/1", "Reset/2", "Reset/7", "Reset/8", "Reset/13", "Goaway"]


@PROTOCOLS
@pytest.mark.parametrize("how", BROKEN_OFF)
def test_a_stream_that_the_upstream_breaks_off_is_a_502_and_is_never_repeated(edge, upstream, how, protocol):
    """Not even where the upstream says that it has not looked at it: REFUSED_STREAM (7), GOAWAY."""
    target = f"/grpc.Test/{how}"
    before = len(upstream.seen(target))
    upstream.end_kept()
    poll(lambda: kept(edge) == 0, "HAProxy has noticed")
    response = fetch(edge, "POST", target, GRPC, b"x", protocol=protocol)
    assert (response.status, response.get("cache-control")) == (502, "no-store")
    assert len(upstream.seen(target)) == before + 1


@pytest.mark.parametrize("how", BROKEN_OFF)
def test_a_stream_that_the_upstream_breaks_off_on_a_kept_connection_is_refused_to_the_client_and_never_repeated(edge, upstream, how):
    """HAProxy leaves it to the client to ask again, whatever the upstream's reason was; see test_upstream_faults.py."""
    target = f"/grpc.Test/{how}"
    before = len(upstream.seen(target))
    with client(edge, "h2") as c:
        assert c.request("GET", "/ordinary").status == 200
        with pytest.raises(StreamReset, match="error 7"):
            c.request("POST", target, GRPC, b"x")
        assert c.request("GET", "/ordinary").status == 200
    assert len(upstream.seen(target)) == before + 1


@PROTOCOLS
def test_an_answer_that_the_upstream_breaks_off_never_looks_whole(edge, protocol):
    with client(edge, protocol) as c, pytest.raises((Closed, StreamReset)):
        c.request("POST", "/grpc.Test/Cut", GRPC, b"x")


def test_a_websocket_beside_it_goes_to_the_same_port_over_http1(edge, upstream):
    """Which must then speak both."""
    before = len(upstream.seen("/socket"))
    upgrade = [("Connection", "Upgrade"), ("Upgrade", "websocket"), ("Sec-WebSocket-Version", "13")]
    with Http1(edge.port) as c:
        response = c.request("GET", "/socket", [*upgrade, ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==")])
        assert response.status == 101
        for piece in (b"one", b"two" * 1000):
            c.send(piece)
            assert c.take(len(piece)) == piece
    assert [r["version"] for r in upstream.seen("/socket")[before:]] == ["HTTP/1.1"]


@PROTOCOLS
def test_an_upstream_that_speaks_http1_only_is_a_502_by_prior_knowledge(protocol):
    """Nothing falls back to another version in the clear."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(10)
        with Edge(policy(), f"http://127.0.0.1:{listener.getsockname()[1]}", settings={"EDGE_UPSTREAM_PROTO": "h2"}) as e, client(e, protocol) as c:
            if protocol == "h1":
                c.send(b"GET /only/h1 HTTP/1.1\r\nHost: edge.test\r\n\r\n")
            else:
                stream = c.send_request("GET", "/only/h2")
            sock, _ = listener.accept()
            with sock:
                assert sock.recv(24, socket.MSG_WAITALL).startswith(b"PRI * HTTP/2.0")
                sock.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
                response = c.receive() if protocol == "h1" else c.receive(stream)
            assert (response.status, response.get("cache-control")) == (502, "no-store")
