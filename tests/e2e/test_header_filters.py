"""Through an allowlist that names almost nothing: what a connection needs passes, so that WebSockets, event streams and gRPC work, what the edge says
stands there, and nothing that a client says in its place."""

import pytest

from clients import PROTOCOLS, fetch
from edge import Edge
from h2_streams import Streams
from h2_upstream import GRPC_OK, H2Upstream
from policies import policy
from shapes import SHAPES, managed, shaped
from streams import PlayedUpstream, WebSocket, events
from test_guards_forged import EVIL, check_identity
from upstream import Upstream
from websocket import BINARY

ALL = pytest.mark.parametrize("protocol", list(PROTOCOLS))
CLEAR = pytest.mark.parametrize("protocol", ["h1", "h2"])
TRACE = [("traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"), ("tracestate", "a=b")]
DROPPED = [("Authorization", "Bearer x"), ("Cookie", "a=1"), ("Accept-Language", "de"), ("X-Other", "1"), ("x_kept", "twin")]


def allowing(*names):
    """Twice: the policy's own, and one of a rule for all requests."""
    forward = {"mode": "allowlist", "names": list(names)}
    rule = {"id": "few", "expression": "true", "ops": [{"op": "forward", **forward}]}
    document = policy(headers=[rule])
    document["global"]["request_headers"] = {"forward": forward}
    return document


@pytest.fixture(scope="module")
def upstream():
    with Upstream() as u:
        yield u


@pytest.fixture(scope="module")
def edge(upstream, cert):
    with Edge(allowing("X-Kept"), upstream.url, cert=cert) as e:
        yield e


@pytest.fixture(scope="module")
def played():
    with PlayedUpstream() as u:
        yield u


@pytest.fixture(scope="module")
def played_edge(played, cert):
    with Edge(allowing("X-Kept"), played.url, cert=cert) as e:
        yield e


def client_headers(received):
    """What is neither the edge's nor the connection's, in order."""
    own = {name for name, _ in managed(received)} | {"host", "content-length", "transfer-encoding", "connection", "upgrade"}
    return [(n.lower(), v) for n, v in received["headers"] if n.lower() not in own]


@ALL
@pytest.mark.parametrize("shape", SHAPES)
def test_of_a_clients_headers_only_the_named_and_trace_context_pass_beside_the_edges_own(edge, protocol, shape):
    sent = [*DROPPED, ("X-Kept", "1"), *TRACE, ("X-KEPT", "2"), *EVIL]
    received = fetch(edge, "POST", "/filtered", protocol=protocol, **shaped(shape, sent)).json()
    assert client_headers(received) == [("x-kept", "1"), *TRACE, ("x-kept", "2")]
    check_identity(received, protocol)


@pytest.mark.parametrize("protocol", ["h1", "tls-h1"])
@pytest.mark.parametrize("options", ["TE, X-Kept, X-Edge-Client-IP", "te,x-kept,x-edge-client-ip"])
@pytest.mark.parametrize("te, passed", [("gzip;q=0.5, trailers", [("te", "trailers")]), ("gzip", [])])
def test_te_passes_as_trailers_only_and_connection_not_at_all(edge, protocol, options, te, passed):
    """What Connection names stays, so that no client takes away what the edge or a front in front of it says."""
    headers = [("connection", options), ("te", te), ("X-Kept", "1"), ("Keep-Alive", "timeout=5"), ("PROXY-CONNECTION", "close")]
    received = fetch(edge, "GET", "/hop", headers, protocol=protocol).json()
    assert client_headers(received) == [*passed, ("x-kept", "1")]
    check_identity(received, protocol)


@ALL
def test_a_websocket_opens_and_its_frames_pass(played_edge, played, protocol):
    """An allowlist that dropped the client's key would have HAProxy make one of its own, to which no client takes the answer."""
    target = f"/play/filtered/{protocol}"
    asked = [("Sec-WebSocket-Protocol", "chat, superchat"), ("Sec-WebSocket-Extensions", "permessage-deflate"), ("Origin", "https://a.example"), *DROPPED]
    with WebSocket(played_edge, protocol, target, *asked) as client:
        end = played.play(target)
        frames = end.switch(b"Sec-WebSocket-Protocol: superchat")
        assert client.is_open(), client.response
        assert (end.header("upgrade"), end.header("connection").lower()) == ("websocket", "upgrade")
        assert [end.header(n.lower()) for n, _ in asked[:2]] == [v for _, v in asked[:2]]
        assert [end.header(n.lower()) for n, _ in asked[2:]] == [None] * len(asked[2:])
        assert end.header("sec-websocket-version") == "13"
        client.frames.send(BINARY, b"to the upstream")
        assert frames.receive().payload == b"to the upstream"
        frames.send(BINARY, b"to the client")
        assert client.frames.receive().payload == b"to the client"
        end.end()


@ALL
def test_an_event_stream_is_one_though_its_accept_does_not_pass(played_edge, played, protocol):
    with events(played_edge, played, protocol, f"/play/events/{protocol}") as (client, end):
        assert end.header("accept") is None
        for i in range(3):
            end.event(f"event {i}")
            assert client.event() == f"event {i}"


@pytest.fixture(scope="module")
def grpc():
    with H2Upstream() as u, Edge(allowing("Content-Type"), u.url, settings={"EDGE_UPSTREAM_PROTO": "h2"}) as e:
        yield e, u


def test_grpc_calls_go_both_ways_and_end_with_their_trailers(grpc):
    edge, upstream = grpc
    message = b"\0\0\0\0\5hello"
    with Streams(edge.port) as streams:
        stream = streams.open("/grpc.Test/Bidi/filtered", [("content-type", "application/grpc"), ("te", "trailers"), *((n.lower(), v) for n, v in DROPPED)])
        assert streams.until(stream, lambda seen: seen.status).status == 200
        for n in (1, 2, 3):
            streams.send(stream, message)
            streams.until(stream, lambda seen, size=n * len(message): len(seen.data) == size)
        streams.send_trailers(stream, [("x-edge-auth-sub", "root"), ("x-kept", "1")])
        seen = streams.whole(stream)
    assert (seen.data, seen.trailers) == (message * 3, GRPC_OK)
    (request,) = upstream.seen("/grpc.Test/Bidi/filtered")
    fields = dict(request["headers"])
    assert (fields["te"], fields["content-type"], fields[":authority"], request["trailers"]) == ("trailers", "application/grpc", "edge.test", [])
    assert {n.lower() for n, _ in DROPPED}.isdisjoint(fields) and fields["x-edge-client-ip"] == "127.0.0.1"


CARRYING = [{"op": "copy", "from": "X-Auth", "to": "X-Copied"}, {"op": "set", "name": "X-Set", "value": "{{header:x-auth}}"}]


@CLEAR
def test_rules_see_no_client_word_in_the_edges_name_under_any_spelling(upstream, protocol):
    forged = ["X-Edge-Auth-Sub", "x_edge_auth_sub", "X-Forwarded-For", "x_request_id"]
    rules = [{"id": "named", "expression": 'http.request.headers.names contains "edge" or http.request.headers.names contains "forwarded"',
              "ops": [{"op": "set", "name": "X-Seen", "value": "1"}]},
             {"id": "carry", "expression": "true", "ops": CARRYING}]  # fmt: skip
    with Edge(policy(headers=rules), upstream.url) as e:
        received = fetch(e, "GET", "/carried", [*((n, "evil") for n in forged), ("X-Auth", "mine"), ("X_Copied", "evil")], protocol=protocol).json()
    check_identity(received, protocol)
    assert client_headers(received) == [("x-auth", "mine"), ("x-copied", "mine"), ("x-set", "mine")]
