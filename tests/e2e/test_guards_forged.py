"""What a client says in the edge's name never reaches the upstream: as headers, twins, trailers or connection options, over every protocol,
whether an agent decides, is gone, is frozen or is not asked."""

import os
import re
import signal

import pytest

from clients import Closed, StreamReset, client, fetch
from edge import Edge, poll
from haproxy_alone import HAProxy
from hostile import END_HEADERS, DATA, Wire2, frame, fresh, headers, plain
from policies import policy
from shapes import FORGED, SHAPES, managed, same_name, shaped

ALL = pytest.mark.parametrize("protocol", ["h1", "h2", "tls-h1", "tls-h2"])
SHAPE = pytest.mark.parametrize("shape", SHAPES)
EVIL = [(name, "evil") for name in FORGED]
# Framing and the connection's own, by names that some upstreams read so.
LOOKALIKES = [("Transfer_Encoding", "evil"), ("Content_Length", "1"), ("Transfer.Encoding", "evil"), ("HTTP2-Settings", "evil"), ("Http2_Settings", "evil")]
WEBSOCKET = "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
IDENTITY = {"x-edge-client-ip": "127.0.0.1", "x-forwarded-for": "127.0.0.1", "x-forwarded-host": "edge.test"}


def forged(shape, protocol):
    """A request of that shape with everything forged, in headers and, where there are any, in trailers."""
    said = [*EVIL, *(LOOKALIKES if protocol.endswith("h1") else LOOKALIKES[:3])]
    arguments = shaped(shape, said)
    if "trailers" in arguments:
        arguments["trailers"] = EVIL
    return arguments


def check_identity(received, protocol, decided=True):
    """Each of the edge's headers once, with the edge's own value, and nothing else that looks like one of them."""
    scheme = {"x-forwarded-proto": "https" if protocol.startswith("tls-") else "http"}
    found = managed(received)
    values = dict(found)
    assert len(values) == len(found), found
    assert len(values.pop("x-request-id")) == 32
    if decided and protocol.startswith("tls-"):
        assert re.fullmatch("t13d[0-9]{4}h[12]_[0-9a-f]{12}_[0-9a-f]{12}", values.pop("x-edge-tls-ja4")), "of the handshake"
    assert values == ({**IDENTITY, **scheme} if decided else {})
    assert "evil" not in str(received) and received["trailers"] == []
    assert not {same_name(n) for n, _ in received["headers"]} & {"http2-settings", "keep-alive", "proxy-connection"}
    assert not {n for n, _ in received["headers"]} & {"transfer_encoding", "content_length", "transfer.encoding"}


def check_mode(edge, upstream, status):
    """Every protocol and shape; a refusal may also be the end of the stream or connection while the body is still being sent."""
    for protocol in ("h1", "h2", "tls-h1", "tls-h2"):
        for shape in SHAPES:
            target = fresh()
            try:
                response = fetch(edge, "POST", target, protocol=protocol, **forged(shape, protocol))
                assert response.status == status, (protocol, shape)
            except (Closed, ConnectionError, StreamReset):
                assert status != 200 and shape == "body", (protocol, shape)
            assert len(upstream.seen(target)) == (status == 200)
            if status == 200:
                check_identity(response.json(), protocol, decided=False)


@ALL
@SHAPE
def test_with_an_agent_the_upstream_sees_the_edges_word_alone(edge, protocol, shape):
    response = fetch(edge, "POST", fresh(), protocol=protocol, **forged(shape, protocol))
    assert response.status == 200
    check_identity(response.json(), protocol)


ALONE = {
    "open": ({"EDGE_FAIL_OPEN": "1"}, 200),
    "closed": ({}, 503),
    "overload": ({"EDGE_CAP_ORDINARY": "0", "EDGE_CAP_STREAMS": "0", "EDGE_FAIL_OPEN": "1"}, 503),
}


@pytest.mark.parametrize("mode", ALONE)
def test_without_an_agent_the_upstream_sees_no_identity_at_all(upstream, cert, mode):
    settings, status = ALONE[mode]
    with HAProxy({"EDGE_UPSTREAM_ADDR": f"127.0.0.1:{upstream.port}", "EDGE_BODY_LIMIT": "10000", **settings}, cert) as haproxy:
        check_mode(haproxy, upstream, status)


@pytest.mark.parametrize("failure, status", [("closed", 503), ("open", 200)])
def test_a_frozen_agent_lets_nothing_forged_pass(upstream, cert, failure, status):
    settings = {"EDGE_ON_AGENT_FAILURE": failure, "EDGE_AGENT_TIMEOUT": "1s"}
    with Edge(policy(), upstream.url, settings=settings, cert=cert) as frozen:
        agent = frozen.agent_pids()[0]
        os.kill(agent, signal.SIGSTOP)
        try:
            check_mode(frozen, upstream, status)
        finally:
            os.kill(agent, signal.SIGCONT)


def test_an_answer_that_came_too_late_or_broke_off_forges_nothing(upstream):
    """The agent's variables without the last one are no decision."""
    with HAProxy({"EDGE_UPSTREAM_ADDR": f"127.0.0.1:{upstream.port}", "EDGE_FAIL_OPEN": "1"}, mock=True) as haproxy:
        target = fresh()
        haproxy.agent.answers[target] = {"txn.client_ip": "192.0.2.66", "txn.proto": "https", "txn.uri": "/other", "txn.ok": None}
        response = fetch(haproxy, "GET", target, EVIL)
        assert (response.status, response.json()["target"]) == (200, target)
        check_identity(response.json(), "h1", decided=False)


# --- Connection (RFC 9110 7.6.1) ---

NAMED = [("Cookie", "session=1"), ("X-From-Front", "kept"), ("Authorization", "Bearer x")]


@pytest.mark.parametrize("protocol", ["h1", "tls-h1"])
@SHAPE
def test_a_client_takes_no_header_away_by_naming_it_in_connection(edge, protocol, shape):
    """The upstream gets what the rules were asked about, the edge's own included, and no Connection that would tell it to drop them."""
    options = ", ".join(["close", *IDENTITY, "x-forwarded-proto", "x-request-id", "host", *(name for name, _ in NAMED)])
    arguments = shaped(shape, [("Connection", options), *NAMED, ("Connection", "X-Edge-Client-IP")])
    received = fetch(edge, "POST", fresh(), protocol=protocol, **arguments).json()
    check_identity(received, protocol)
    sent = dict(received["headers"])
    assert [(n, sent.get(n.lower())) for n, _ in NAMED] == NAMED
    assert "connection" not in sent and sent["host"] == "edge.test"


@pytest.mark.parametrize("protocol", ["h1", "tls-h1"])
def test_a_websocket_carries_no_other_connection_option(edge, upstream, protocol):
    target = fresh()
    with client(edge, protocol) as c:
        c.send(f"GET {target} HTTP/1.1\r\nHost: edge.test\r\nConnection: Upgrade, X-Edge-Client-IP\r\n{WEBSOCKET}\r\n".encode())
        poll(lambda: upstream.seen(target), "the upstream has it")
    (received,) = upstream.seen(target)
    assert [v.lower() for n, v in received["headers"] if n == "connection"] == ["upgrade"]
    check_identity(received, protocol)


# --- Trailers whose names need no declaration ---


@pytest.mark.parametrize("protocol", ["h2", "tls-h2"])
def test_trailers_over_http2_forge_nothing(edge, upstream, protocol):
    target = fresh()
    with Wire2(edge, protocol) as c:
        c.send(headers(plain(target, ("trailer", "x-edge-auth-sub")), END_HEADERS) + frame(DATA, 0, 1, b"abc"))
        c.send(headers([(name.lower(), "evil") for name, _ in EVIL]))
        assert c.outcome() == 200
    (received,) = upstream.seen(target)
    check_identity(received, protocol)


@pytest.mark.parametrize("protocol", ["h1", "tls-h1"])
@pytest.mark.parametrize("extra", [[], [("Trailer", "X-Edge-Auth-Sub")], [("TE", "trailers")]], ids=["bare", "declared", "with-te"])
def test_trailers_over_http1_forge_nothing(edge, protocol, extra):
    received = fetch(edge, "POST", fresh(), extra, b"abc", EVIL, protocol=protocol).json()
    check_identity(received, protocol)
    assert received["body_len"] == 3
