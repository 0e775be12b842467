"""Hostile HTTP/2: malformed requests, frames out of place and floods end their stream or their connection, and cost nobody else anything."""

import struct
import threading

import pytest

from clients import Http1
from edge import poll
from hostile import (
    ACK, CONTINUATION, DATA, END_HEADERS, END_STREAM, HEADERS, PADDED, PING, PRIORITY, PROTOCOLS2, PUSH, RESET, SETTINGS, WINDOW,
    Wire2, block, frame, fresh, headers, own_answer, plain,
)  # fmt: skip
from shapes import managed

PROTOCOLS = pytest.mark.parametrize("protocol", PROTOCOLS2)
METHOD, SCHEME, AUTHORITY = (":method", "GET"), (":scheme", "http"), (":authority", "edge.test")
OPEN = END_HEADERS  # the stream stays open


def body(length, data=b"abc"):
    return lambda path: headers(plain(path, *length), OPEN) + frame(DATA, END_STREAM, 1, data)


def fields(*pseudo, more=()):
    """The fields as given; None stands for the path."""
    return lambda path: headers([(":path", path) if p is None else p for p in pseudo] + list(more))


def with_path(path):
    return lambda unused: headers([METHOD, SCHEME, AUTHORITY, (":path", path)])


def field(name, value):
    return lambda path: headers(plain(path, (name, value)))


def trailer(*pairs, flags=END_STREAM | END_HEADERS):
    return lambda path: headers(plain(path), OPEN) + headers(pairs, flags)


# RFC 9113 8.1.1: malformed. A stream error, or what the agent answers: 400.
MALFORMED = {
    "a pseudo-header behind a header": fields(METHOD, SCHEME, ("x", "y"), AUTHORITY, None),
    "two methods": fields(METHOD, METHOD, SCHEME, AUTHORITY, None),
    "two paths": fields(METHOD, SCHEME, AUTHORITY, None, (":path", "/other")),
    "two authorities": fields(METHOD, SCHEME, AUTHORITY, (":authority", "other.test"), None),
    "two schemes": fields(METHOD, SCHEME, SCHEME, AUTHORITY, None),
    "an unknown pseudo-header": fields(METHOD, SCHEME, AUTHORITY, None, (":x", "y")),
    "a pseudo-header of responses": fields(METHOD, SCHEME, AUTHORITY, None, (":status", "200")),
    "no method": fields(SCHEME, AUTHORITY, None),
    "no scheme": fields(METHOD, AUTHORITY, None),
    "no path": fields(METHOD, SCHEME, AUTHORITY),
    "no host": fields(METHOD, SCHEME, None),
    "a path without a slash": lambda path: with_path(path[1:])(path),
    "an empty path": with_path(""),
    "OPTIONS *": fields((":method", "OPTIONS"), SCHEME, AUTHORITY, (":path", "*")),
    "an absolute path": with_path("http://other.test/x"),
    "a blank in the path": with_path("/a b"),
    "a line break in the path": with_path("/a HTTP/1.1\r\nX: y"),
    "a fragment": with_path("/a#b"),
    "a blank in the method": fields((":method", "GET /other"), SCHEME, AUTHORITY, None),
    "an empty method": fields((":method", ""), SCHEME, AUTHORITY, None),
    "a line break in the method": fields((":method", "GET\r\n"), SCHEME, AUTHORITY, None),
    "a method in lower case": fields((":method", "get"), SCHEME, AUTHORITY, None),
    "a scheme that is none": fields(METHOD, (":scheme", "a b"), AUTHORITY, None),
    "a scheme with a host": fields(METHOD, (":scheme", "http://other.test/?"), AUTHORITY, None),
    "an empty scheme": fields(METHOD, (":scheme", ""), AUTHORITY, None),
    "userinfo": fields(METHOD, SCHEME, (":authority", "u@edge.test"), None),
    "a path in the authority": fields(METHOD, SCHEME, (":authority", "edge.test/x"), None),
    "a line break in the authority": fields(METHOD, SCHEME, (":authority", "edge.test\r\nX: y"), None),
    "CONNECT": fields((":method", "CONNECT"), (":authority", "edge.test:80")),
    "CONNECT with a path": fields((":method", "CONNECT"), SCHEME, AUTHORITY, None),
    ":protocol of a GET": fields(METHOD, (":protocol", "websocket"), SCHEME, AUTHORITY, None),
    "a name in capitals": field("X-Up", "y"),
    "a blank in a name": field("x y", "z"),
    "a colon in a name": field("x:y", "z"),
    "NUL in a name": field("x\0", "z"),
    "a line break in a name": field("x\r\ny", "z"),
    "a name that is not ASCII": field("\xff", "z"),
    "NUL in a value": field("x", "a\0b"),
    "CR in a value": field("x", "a\rb"),
    "LF in a value": field("x", "a\nb"),
    "a control character in a value": field("x", "a\1b"),
    "connection": field("connection", "close"),
    "keep-alive": field("keep-alive", "1"),
    "proxy-connection": field("proxy-connection", "close"),
    "transfer-encoding": field("transfer-encoding", "chunked"),
    "upgrade": field("upgrade", "websocket"),
    "te other than trailers": field("te", "gzip"),
    "more body than its length": body([("content-length", "2")]),
    "less body than its length": body([("content-length", "5")]),
    "a length and no body": lambda path: headers(plain(path, ("content-length", "3"))),
    "two lengths": body([("content-length", "3"), ("content-length", "4")]),
    "a length that is none": body([("content-length", "+3")]),
    "a pseudo-header among trailers": trailer((":path", "/other")),
    "framing among trailers": trailer(("transfer-encoding", "chunked")),
    "102 headers": lambda path: headers(plain(path, *((f"x-{i}", "y") for i in range(101)))),
    "headers larger than the buffer": lambda path: big(plain(path, *((f"x-{i}", "y" * 1000) for i in range(64)))),
    "a window of nothing more": lambda path: headers(plain(path), OPEN) + frame(WINDOW, 0, 1, b"\0\0\0\0"),
    "a window beyond its maximum": lambda path: headers(plain(path), OPEN) + 2 * frame(WINDOW, 0, 1, b"\x7f\xff\xff\xff"),
}


def big(some):
    """A header block in frames of the size that every peer takes."""
    data, size = block(some), 16384
    parts = [data[i : i + size] for i in range(0, len(data), size)]
    out = frame(HEADERS, END_STREAM | (END_HEADERS if len(parts) == 1 else 0), 1, parts[0])
    for i, part in enumerate(parts[1:], 2):
        out += frame(CONTINUATION, END_HEADERS if i == len(parts) else 0, 1, part)
    return out


@PROTOCOLS
@pytest.mark.parametrize("name", MALFORMED)
def test_a_malformed_request_ends_its_stream_and_the_next_one_is_answered(edge, upstream, protocol, name):
    path, before = fresh(), len(upstream.requests)
    with Wire2(edge, protocol) as c:
        c.send(MALFORMED[name](path))
        assert c.outcome() in ("reset", 400, 431, "gone")
        went_on = c.own_answer(3)
    assert len(upstream.requests) - before == went_on, "nothing but the second one reached the upstream"


# Connection errors of RFC 9113 and RFC 7541.
BROKEN = {
    "an even stream": lambda path: headers(plain(path), stream=2),
    "stream 0": lambda path: headers(plain(path), stream=0),
    "DATA of an idle stream": lambda path: frame(DATA, END_STREAM, 5, b"x"),
    "CONTINUATION of nothing": lambda path: frame(CONTINUATION, END_HEADERS, 1, block(plain(path))),
    "a PING between HEADERS and CONTINUATION": lambda path: headers(plain(path), END_STREAM) + frame(PING, 0, 0, b"12345678"),
    "trailers that do not end the stream": trailer(("x", "y"), flags=END_HEADERS),
    "an index that is not in the table": lambda path: frame(HEADERS, END_STREAM | END_HEADERS, 1, b"\xff\xff\xff\xff\x0f"),
    "an index of 0": lambda path: frame(HEADERS, END_STREAM | END_HEADERS, 1, b"\x80"),
    "a table larger than allowed": lambda path: frame(HEADERS, END_STREAM | END_HEADERS, 1, b"\x3f\xff\xff\xff\x7f" + block(plain(path))),
    "an empty name": lambda path: headers(plain(path, ("", "x"))),
    "padding longer than the frame": lambda path: frame(HEADERS, END_STREAM | END_HEADERS | PADDED, 1, b"\xff" + block(plain(path))),
    "a stream that depends on itself": lambda path: frame(HEADERS, END_STREAM | END_HEADERS | PRIORITY, 1, b"\0\0\0\1\x10" + block(plain(path))),
    "a frame larger than allowed": lambda path: frame(HEADERS, END_STREAM | END_HEADERS, 1, b"\0" * 20000),
    "PUSH_PROMISE of a client": lambda path: frame(PUSH, END_HEADERS, 1, b"\0\0\0\2" + block(plain(path))),
    "half a setting": lambda path: frame(SETTINGS, 0, 0, b"12345"),
    "an acknowledgement with settings": lambda path: frame(SETTINGS, ACK, 0, b"123456"),
    "a PING of seven bytes": lambda path: frame(PING, 0, 0, b"1234567"),
    "a window that is too large": lambda path: frame(SETTINGS, 0, 0, struct.pack(">HI", 4, 2**31)),
    "a frame size that is too small": lambda path: frame(SETTINGS, 0, 0, struct.pack(">HI", 5, 1)),
    "a window of nothing more": lambda path: headers(plain(path), OPEN) + frame(WINDOW, 0, 0, b"\0\0\0\0"),
    "a flood of empty CONTINUATION": lambda path: headers(plain(path), END_STREAM) + frame(CONTINUATION, 0, 1) * 50_000,
    "a flood of CONTINUATION": lambda path: headers(plain(path), END_STREAM) + frame(CONTINUATION, 0, 1, block([("x", "y" * 1000)])) * 5_000,
}


@PROTOCOLS
@pytest.mark.parametrize("name", BROKEN)
def test_what_breaks_the_protocol_ends_its_connection_and_no_other(edge, upstream, protocol, name):
    path, before = fresh(), len(upstream.requests)
    with Wire2(edge, protocol) as other, Wire2(edge, protocol) as c:
        assert other.own_answer(1)
        c.send(BROKEN[name](path))
        while c.gone is None:
            c.read()
        assert other.own_answer(3)
    assert len(upstream.requests) - before == 2, "nothing of it reached the upstream"


# --- What passes, in one reading ---

PASSED = {
    "Host beside an equal authority": (plain("%s", ("host", "edge.test")), "edge.test"),
    "Host beside another authority: the authority counts, for all": (plain("%s", ("host", "other.test")), "edge.test"),
    "Host in place of an authority": ([METHOD, SCHEME, (":path", "%s"), ("host", "edge.test")], "edge.test"),
    "te: trailers": (plain("%s", ("te", "trailers")), "edge.test"),
    "crumbs of a cookie": (plain("%s", ("cookie", "a=1"), ("cookie", "b=2")), "edge.test"),
}


@PROTOCOLS
@pytest.mark.parametrize("name", PASSED)
def test_what_passes_has_one_host_for_rules_and_upstream(edge, upstream, protocol, name):
    some, host = PASSED[name]
    path = fresh()
    with Wire2(edge, protocol) as c:
        c.send(headers([(n, v.replace("%s", path)) for n, v in some]))
        assert c.outcome() == 200
    (received,) = upstream.seen(path)
    assert [v for n, v in received["headers"] if n == "host"] == [host]
    assert ("x-forwarded-host", host) in managed(received)
    assert edge.record_of(path)["server.address"] == host


@PROTOCOLS
def test_trailers_of_a_request_reach_nobody(edge, upstream, protocol):
    path = fresh()
    with Wire2(edge, protocol) as c:
        c.send(headers(plain(path), OPEN) + frame(DATA, 0, 1, b"abc") + headers([("x-edge-auth-sub", "evil"), ("x-any", "y")]))
        assert c.outcome() == 200
    (received,) = upstream.seen(path)
    assert (received["trailers"], received["body_len"]) == ([], 3)
    assert "evil" not in str(received)


# --- Peers that take or give nothing ---


@PROTOCOLS
def test_a_peer_without_a_window_holds_up_no_other_stream_of_another_connection(edge, upstream, protocol):
    path = fresh()
    with Wire2(edge, protocol, settings=struct.pack(">HI", 4, 0)) as c, Wire2(edge, protocol) as other:
        c.send(headers(plain(path)))
        while 1 not in c.statuses:
            c.read()
        assert (c.statuses[1], c.bodies) == (200, {}), "headers need no window, the body waits"
        assert other.own_answer(1)
        c.send(frame(WINDOW, 0, 1, struct.pack(">I", 65535)))
        assert c.outcome() == 200 and len(c.bodies[1]) > 0
    assert len(upstream.seen(path)) == 1


@PROTOCOLS
def test_streams_beyond_the_announced_number_are_refused(edge, upstream, protocol):
    """A client that opens 300 streams at once has at most 100 under way: the rest is refused or waits, and each answer is whole."""
    paths = {1 + 2 * i: f"/delay/20{fresh()}" for i in range(300)}
    with Wire2(edge, protocol) as c:
        c.send(b"".join(headers(plain(path), stream=stream) for stream, path in paths.items()))
        outcomes = {c.outcome(stream) for stream in paths}
        assert outcomes <= {200, "reset", "gone"} and 200 in outcomes
        for stream, text in c.bodies.items():
            assert stream not in c.ended or paths[stream].encode() in text


@PROTOCOLS
def test_a_flood_of_resets_is_bounded_and_costs_others_nothing(edge, upstream, protocol):
    """Rapid reset: a stream is opened and given up at once, again and again. What it leaves behind ends, and another client is served meanwhile."""
    rounds, some = 50, 100
    others = []

    def ask_meanwhile():
        with Http1(edge.port) as c:
            others.extend(own_answer(c) for _ in range(50))

    with Wire2(edge, protocol) as c:
        thread = threading.Thread(target=ask_meanwhile, daemon=True)
        thread.start()
        for n in range(rounds):
            streams = range(1 + 2 * n * some, 1 + 2 * (n + 1) * some, 2)
            c.send(b"".join(headers(plain(f"/delay/50/flood/{s}"), stream=s) + frame(RESET, 0, s, b"\0\0\0\x08") for s in streams))
        thread.join(60)
    assert others == [True] * 50
    most = int(edge.stat("BACKEND", "smax")["plain"])
    assert most <= 250, f"{most} requests of a connection were under way at once"
    poll(lambda: int(edge.stat("BACKEND", "scur")["plain"]) == 0, "nothing is left of it")
