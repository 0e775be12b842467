"""Hostile framing over HTTP/1: where one request ends and the next begins is never in doubt, and no connection answers one request with
another's answer."""

import contextlib

import pytest

from clients import Closed, client
from edge import poll
from haproxy_alone import HAProxy
from hostile import PROTOCOLS1, fresh, idle, own_answer

PROTOCOLS = pytest.mark.parametrize("protocol", PROTOCOLS1)


def post(*lines, body=b"", version=b"1.1", first=b"POST %s HTTP/"):
    return first + version + b"\r\n" + b"".join(line + b"\r\n" for line in (b"Host: edge.test", *lines)) + b"\r\n" + body


def chunked(body, coding=b"Transfer-Encoding: chunked"):
    return post(coding, body=body)


def line(text):
    return text + b"\r\nHost: edge.test\r\n\r\n"


CHUNK = b"3\r\nabc\r\n0\r\n\r\n"
# name: (bytes with the target as %s, status or None for "closed, or 400", bytes of the body that the upstream got)
REFUSED = {
    # RFC 9112 6.3: a length that is not one
    "two lengths": post(b"Content-Length: 3", b"Content-Length: 4", body=b"abcd"),
    "two lengths in a line": post(b"Content-Length: 3, 4", body=b"abcd"),
    "length with a sign": post(b"Content-Length: +3", body=b"abc"),
    "negative length": post(b"Content-Length: -3", body=b"abc"),
    "length in hex": post(b"Content-Length: 0x3", body=b"abc"),
    "length with a blank": post(b"Content-Length: 3 3", body=b"abc"),
    "empty length": post(b"Content-Length:", body=b"abc"),
    "length beyond 64 bits": post(b"Content-Length: 18446744073709551619", body=b"abc"),
    # RFC 9112 6.1: a coding that is not chunked once, and last
    "chunked twice": chunked(CHUNK, b"Transfer-Encoding: chunked, chunked"),
    "chunked in two lines": post(b"Transfer-Encoding: chunked", b"Transfer-Encoding: chunked", body=CHUNK),
    "chunked and gzip": chunked(CHUNK, b"Transfer-Encoding: chunked, gzip"),
    "identity": chunked(CHUNK, b"Transfer-Encoding: identity"),
    "gzip": chunked(CHUNK, b"Transfer-Encoding: gzip"),
    "gzip, chunked": chunked(CHUNK, b"Transfer-Encoding: gzip, chunked"),
    "xchunked": chunked(CHUNK, b"Transfer-Encoding: xchunked"),
    "chunked behind a vertical tab": chunked(CHUNK, b"Transfer-Encoding: \x0bchunked"),
    "empty coding": chunked(CHUNK, b"Transfer-Encoding:"),
    "blank before the colon": chunked(CHUNK, b"Transfer-Encoding : chunked"),
    "chunked in HTTP/1.0": post(b"Transfer-Encoding: chunked", body=CHUNK, version=b"1.0"),
    # RFC 9112 7.1: chunks
    "bare LF in chunks": chunked(b"3\nabc\n0\n\n"),
    "bare LF behind a size": chunked(b"3\nabc\r\n0\r\n\r\n"),
    "bare CR behind a size": chunked(b"3\rabc\r\n0\r\n\r\n"),
    "chunk size in C's hex": chunked(b"0x3\r\nabc\r\n0\r\n\r\n"),
    "negative chunk": chunked(b"-3\r\nabc\r\n0\r\n\r\n"),
    "chunk size with a sign": chunked(b"+3\r\nabc\r\n0\r\n\r\n"),
    "chunk size beyond 64 bits": chunked(b"10000000000000003\r\nabc\r\n0\r\n\r\n"),
    "chunk longer than its size": chunked(b"3\r\nabcd\r\n0\r\n\r\n"),
    "chunk without its end": chunked(b"3\r\nabc0\r\n\r\n"),
    "line break in a chunk extension": chunked(b'3;a="\nX"\r\nabc\r\n0\r\n\r\n'),
    "extension that ends with LF": chunked(b"3;a=b\nabc\r\n0\r\n\r\n"),
    "trailer with a blank in its name": chunked(b"0\r\nbad trailer: x\r\n\r\n"),
    "trailer without a colon": chunked(b"0\r\nbad\r\n\r\n"),
    # lines
    "NUL in a value": post(b"X: a\0b"),
    "CR in a value": post(b"X: a\rb"),
    "NUL in a name": post(b"X\0: a"),
    "blank in a name": post(b"X Y: a"),
    "no name": post(b": a"),
    "no colon": post(b"X"),
    "first header begins with a blank": b"POST %s HTTP/1.1\r\n Host: edge.test\r\n\r\n",
    "two hosts": post(b"Host: other.test"),
    "no version": line(b"GET %s"),
    "version with two digits": line(b"GET %s HTTP/1.10"),
    "version in lower case": line(b"GET %s http/1.1"),
    "blank behind the version": line(b"GET %s HTTP/1.1 "),
    "blank in the target": line(b"GET %s x HTTP/1.1"),
    "method that is none": line(b"G@T %s HTTP/1.1"),
    "target without a slash": line(b"GET x%s HTTP/1.1"),
    "fragment": line(b"GET %s#x HTTP/1.1"),
    "absolute target without a host": line(b"GET http://%s HTTP/1.1"),
    "absolute target with another port": line(b"GET http://edge.test:81%s HTTP/1.1"),
    "HTTP/2.0 in a request line": line(b"GET %s HTTP/2.0"),
    "HTTP/3.0 in a request line": line(b"GET %s HTTP/3.0"),
    "HTTP/2.0 with a body and an upgrade": post(b"Connection: upgrade", b"Upgrade: any", b"Transfer-Encoding: chunked", version=b"2.0"),
    "HTTP/2 begins within": line(b"PRI %s HTTP/2.0"),
}
# name: (bytes, bytes of the body at the upstream)
PASSED = {
    "both length and chunked: chunked counts, RFC 9112 6.3": (post(b"Content-Length: 9", b"Transfer-Encoding: chunked", body=CHUNK), 3),
    "chunked before the length": (post(b"Transfer-Encoding: chunked", b"Content-Length: 1", body=CHUNK), 3),
    "equal lengths": (post(b"Content-Length: 3", b"Content-Length: 3", body=b"abc"), 3),
    "equal lengths in a line": (post(b"Content-Length: 3, 3", body=b"abc"), 3),
    "chunked in capitals": (chunked(CHUNK, b"TRANSFER-ENCODING: CHUNKED"), 3),
    "a chunk's extension is left out": (chunked(b'3;a="b";c\r\nabc\r\n0;d\r\n\r\n'), 3),
    "leading zeros of a chunk": (chunked(b"0000003\r\nabc\r\n0\r\n\r\n"), 3),
    "twin of Transfer-Encoding": (post(b"Transfer_Encoding: chunked"), 0),
    "twin of Content-Length": (post(b"Content_Length: 3"), 0),
    "bare LF as the end of lines": (b"POST %s HTTP/1.1\nHost: edge.test\nContent-Length: 3\n\nabc", 3),
    "folded value, RFC 9112 5.2": (post(b"X: a", b" b", b"Content-Length: 3", body=b"abc"), 3),
    "a body of a GET": (post(b"Content-Length: 3", body=b"abc", first=b"GET %s HTTP/"), 3),
    "empty lines before": (b"\r\n\r\n" + line(b"GET %s HTTP/1.1"), 0),
}
FRAMING = ("transfer_encoding", "content_length")


@PROTOCOLS
@pytest.mark.parametrize("name", REFUSED)
def test_a_request_whose_framing_or_form_is_doubtful_is_refused_and_its_connection_stays_in_step(edge, upstream, protocol, name):
    target = fresh()
    with client(edge, protocol) as c:
        c.send(REFUSED[name].replace(b"%s", target.encode()))
        try:
            status = c.receive().status
        except (Closed, ConnectionError):
            status = 400
        assert status in (400, 405, 422)
        own_answer(c)
    assert not [r for r in upstream.seen(target) if r["body_sha256"]], "no whole request reached the upstream"


@PROTOCOLS
@pytest.mark.parametrize("name", PASSED)
def test_what_has_one_reading_only_reaches_the_upstream_in_that_reading(edge, upstream, protocol, name):
    data, size = PASSED[name]
    target = fresh()
    with client(edge, protocol) as c:
        c.send(data.replace(b"%s", target.encode()))
        assert c.receive().status == 200
        own_answer(c)
    (received,) = upstream.seen(target)
    assert (received["target"], received["body_len"]) == (target, size)
    names = [n for n, _ in received["headers"]]
    assert names.count("content-length") + names.count("transfer-encoding") <= 1 and not set(names) & set(FRAMING)
    values = dict(received["headers"])
    assert values.get("content-length", str(size)) == str(size) and values.get("transfer-encoding", "chunked") == "chunked"


@PROTOCOLS
@pytest.mark.parametrize("behind", ["Content-Length: %d\r\nTransfer-Encoding: chunked", "Transfer-Encoding: chunked\r\nContent-Length: %d"])
def test_a_request_hidden_by_two_lengths_is_nobodys(edge, upstream, protocol, behind):
    """The one that ends at the last chunk is answered; what stands behind it is not, since RFC 9112 6.1 ends the connection."""
    target, hidden = fresh(), fresh()
    rest = f"GET {hidden} HTTP/1.1\r\nHost: edge.test\r\n\r\n".encode()
    with client(edge, protocol) as c:
        c.send(f"POST {target} HTTP/1.1\r\nHost: edge.test\r\n{behind % (5 + len(rest))}\r\n\r\n0\r\n\r\n".encode() + rest)
        response = c.receive()
        assert (response.json()["target"], response.get("connection")) == (target, "close")
        with pytest.raises((Closed, ConnectionError)):
            c.receive()
    assert len(upstream.seen(target)) == 1 and not upstream.seen(hidden)


@PROTOCOLS
def test_pipelined_requests_get_their_own_answers_in_order(edge, protocol):
    targets = [fresh() for _ in range(20)]
    with client(edge, protocol) as c:
        c.send(b"".join(f"GET {t} HTTP/1.1\r\nHost: {'a:x' if i % 3 == 1 else 'a'}\r\n\r\n".encode() for i, t in enumerate(targets)))
        for i, target in enumerate(targets):
            response = c.receive()
            assert response.status == (400 if i % 3 == 1 else 200)
            assert i % 3 == 1 or response.json()["target"] == target


# What an agent refuses leaves the connection as it was: it is in step, whatever of a body came with it.
BODIES = {"none": b"\r\n", "whole": b"Content-Length: 3\r\n\r\nabc", "chunks": b"Transfer-Encoding: chunked\r\n\r\n" + CHUNK}


@PROTOCOLS
@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("why", ["GET /a/../b", "get /a", "OPTIONS *", "CONNECT edge.test:443"])
def test_a_refused_request_leaves_a_connection_that_is_in_step_or_closed(edge, upstream, protocol, why, body):
    before = len(upstream.requests)
    host = "edge.test:443" if why.startswith("CONNECT") else "edge.test"
    with client(edge, protocol) as c:
        c.send(f"{why} HTTP/1.1\r\nHost: {host}\r\n".encode() + BODIES[body])
        assert c.receive().status == 400
        went_on = own_answer(c)
    assert len(upstream.requests) == before + went_on


ALONE = {"closed": {}, "open": {"EDGE_FAIL_OPEN": "1"}, "overload": {"EDGE_CAP_ORDINARY": "0"}, "too large": {"EDGE_MAX_HEADER_BYTES": "10"}}


@PROTOCOLS
@pytest.mark.parametrize("mode", ["agent", *ALONE])
def test_what_follows_a_connect_is_no_request(edge, upstream, cert, protocol, mode):
    """RFC 9110 9.3.6: it has no body, whatever length it says; a front that believed the length would have passed a hidden request on."""
    hidden = f"GET {fresh()} HTTP/1.1\r\nHost: edge.test\r\n\r\n"
    address = {"EDGE_UPSTREAM_ADDR": f"127.0.0.1:{upstream.port}"}
    before = len(upstream.requests)
    with contextlib.nullcontext(edge) if mode == "agent" else HAProxy({**address, **ALONE[mode]}, cert) as asked, client(asked, protocol) as c:
        c.send(f"CONNECT edge.test:443 HTTP/1.1\r\nHost: edge.test:443\r\nContent-Length: {len(hidden)}\r\n\r\n{hidden}".encode())
        response = c.receive()
        assert response.status in (400, 431, 503) and response.get("connection") == "close"
        with pytest.raises((Closed, ConnectionError)):
            c.receive()
    assert len(upstream.requests) == before


@PROTOCOLS
@pytest.mark.parametrize("mode", ["closed", "open"])
def test_chunks_in_http_1_0_reach_nobody_without_an_agent_either(upstream, cert, protocol, mode):
    address, target = {"EDGE_UPSTREAM_ADDR": f"127.0.0.1:{upstream.port}"}, fresh()
    with HAProxy({**address, **ALONE[mode]}, cert) as haproxy, client(haproxy, protocol) as c:
        c.send(f"POST {target} HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n".encode() + CHUNK)
        response = c.receive()
        assert (response.status, response.get("cache-control")) == (503 if mode == "closed" else 400, "no-store")
    assert not upstream.seen(target)


# --- Clients that go away ---


@PROTOCOLS
def test_a_client_that_leaves_within_its_headers_reaches_nobody(edge, upstream, protocol):
    target = fresh()
    with client(edge, protocol) as c:
        c.send(f"GET {target} HTTP/1.1\r\nHost: edge.t".encode())
    with client(edge, protocol) as c:
        assert own_answer(c)
    assert not upstream.seen(target)


@PROTOCOLS
@pytest.mark.parametrize("framing", ["Content-Length: 1000", "Transfer-Encoding: chunked"])
def test_a_body_that_breaks_off_is_never_completed(edge, upstream, protocol, framing):
    target = fresh()
    with client(edge, protocol) as c:
        c.send(f"POST {target} HTTP/1.1\r\nHost: edge.test\r\n{framing}\r\n\r\n3e8\r\nhalf".encode())
    with client(edge, protocol) as c:
        assert own_answer(c)
    poll(lambda: idle(edge), "nothing is left of it")
    assert not upstream.seen(target), "the upstream of the tests remembers whole requests only"


@PROTOCOLS
def test_a_client_that_leaves_before_the_answer_costs_nobody_elses(edge, upstream, protocol):
    targets = [f"/delay/200{fresh()}" for _ in range(5)]
    for target in targets:
        with client(edge, protocol) as c:
            c.send(f"GET {target} HTTP/1.1\r\nHost: edge.test\r\n\r\n".encode())
            poll(lambda target=target: upstream.seen(target), "the upstream has it")
    with client(edge, protocol) as c:
        assert all(own_answer(c) for _ in range(20))
