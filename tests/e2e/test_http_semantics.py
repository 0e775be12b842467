"""What passes between client and upstream unchanged, and what one hop must change: versions, framing, interim and early answers, header
lines, target and host; and each request reaches the upstream once at most."""

import contextlib
import socket

import pytest

from clients import Closed, Http1, StreamReset, client, fetch
from edge import Edge
from faulty_upstream import FaultyUpstream
from h2_streams import Streams
from h2_upstream import H2Upstream
from policies import policy

PROTOCOLS = pytest.mark.parametrize("protocol", ["h1", "h2"])
HOP = ("connection", "transfer-encoding", "keep-alive")
PEER_TIMEOUT = 15


class Peer:
    """One connection from the edge, answered by hand."""

    def __init__(self, sock):
        self.sock, self.buffer = sock, b""
        sock.settimeout(PEER_TIMEOUT)

    def until(self, mark):
        while mark not in self.buffer:
            data = self.sock.recv(65536)
            assert data, f"the edge closed after {self.buffer!r}"
            self.buffer += data
        found, _, self.buffer = self.buffer.partition(mark)
        return found

    def head(self):
        """Request line and header lines of the next request."""
        line, *headers = self.until(b"\r\n\r\n").decode("latin-1").split("\r\n")
        return line, [tuple(header.split(": ", 1)) if ": " in header else (header.rstrip(":"), "") for header in headers]

    def send(self, data):
        self.sock.sendall(data)


class Hand:
    """An upstream whose connections the test itself takes and answers."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.listener.settimeout(PEER_TIMEOUT)
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"

    @contextlib.contextmanager
    def peer(self):
        sock, _ = self.listener.accept()
        with sock:
            yield Peer(sock)


@pytest.fixture(scope="module")
def hand():
    h = Hand()
    yield h
    h.listener.close()


@pytest.fixture(scope="module")
def edge(hand):
    # Each test takes a connection of its own: one that is kept may have been closed by the test before.
    with Edge(policy(), hand.url, settings={"UPSTREAM_MAX_IDLE": 0}) as e:
        yield e


def ask(c, protocol, method, target, headers=(), body=None):
    """Sends a request; returns how to receive its answer."""
    if protocol == "h1":
        lines = "".join(f"{n}: {v}\r\n" for n, v in headers)
        length = f"Content-Length: {len(body)}\r\n" if body is not None else ""
        c.send(f"{method} {target} HTTP/1.1\r\nHost: edge.test\r\n{lines}{length}\r\n".encode() + (body or b""))
        return lambda: c.receive(head=method == "HEAD")
    stream = c.send_request(method, target, headers, body)
    return lambda: c.receive(stream)


def end_to_end(headers):
    return [(n, v) for n, v in headers if n not in HOP]


COOKIES = [("set-cookie", "a=1; Path=/"), ("set-cookie", "b=2, 3"), ("set-cookie", "a=1; Path=/")]
MIXED = [("x-b", "1"), ("x-a", "2"), ("x-b", "3"), ("x-empty", ""), ("warning", "a, b"), ("x-a", "4, 5")]
GZIP = b"\x1f\x8b\x08\x00not really\x00\xff"
# name: (method, status, headers, how the body is framed, body)
ANSWERS = {
    "length": ("GET", 200, [("etag", '"a"')], "length", b"hello"),
    "empty": ("GET", 200, [], "length", b""),
    "chunks": ("GET", 200, [("content-type", "text/plain")], "chunks", b"hello" * 30000),
    "until the end": ("GET", 200, [("content-type", "text/plain")], "close", b"hello" * 100),
    "cookies": ("GET", 200, COOKIES, "length", b""),
    "order and duplicates": ("GET", 200, MIXED, "length", b"x"),
    "encoded": ("GET", 200, [("content-encoding", "gzip"), ("vary", "accept-encoding")], "length", GZIP),
    "no content": ("GET", 204, [("x-a", "b")], "none", b""),
    "no content after a delete": ("DELETE", 204, [], "none", b""),
    "not modified": ("GET", 304, [("etag", '"a"')], "none", b""),
    "head": ("HEAD", 200, [("content-length", "12345"), ("x-a", "b")], "none", b""),
    "head of a missing one": ("HEAD", 404, [("content-length", "12345")], "none", b""),
    "part": ("GET", 206, [("content-range", "bytes 1-3/10")], "length", b"abc"),
    "unknown status": ("GET", 299, [], "length", b"odd"),
    "an error of its own": ("GET", 503, [("retry-after", "7")], "length", b"busy"),
}


def render(status, headers, framing, body):
    lines = [f"HTTP/1.1 {status} Any", *(f"{n}: {v}" for n, v in headers)]
    lines += {"length": [f"content-length: {len(body)}"], "chunks": ["transfer-encoding: chunked"], "close": ["connection: close"], "none": []}[framing]
    head = "\r\n".join(lines).encode() + b"\r\n\r\n"
    if framing != "chunks":
        return head + body
    pieces = [body[i : i + 10000] for i in range(0, len(body), 10000)]
    return head + b"".join(b"%x\r\n%s\r\n" % (len(p), p) for p in pieces) + b"0\r\n\r\n"


@PROTOCOLS
@pytest.mark.parametrize("name", ANSWERS)
def test_an_answer_arrives_with_its_status_header_lines_and_bytes(edge, hand, name, protocol):
    method, status, headers, framing, body = ANSWERS[name]
    with client(edge, protocol) as c:
        receive = ask(c, protocol, method, "/answer")
        with hand.peer() as peer:
            assert peer.head()[0] == f"{method} /answer HTTP/1.1"
            peer.send(render(status, headers, framing, body))
            if framing == "close":
                peer.sock.shutdown(socket.SHUT_WR)
            response = receive()
        assert (response.status, response.body) == (status, body)
        want = headers + ([("content-length", str(len(body)))] if framing == "length" else [])
        assert end_to_end(response.headers) == want
        if (framing, protocol) == ("close", "h1"):
            assert response.get("connection") == "close", "nothing else tells where the body ends"
            return
        assert response.get("connection") is None, "the client's connection is another one"
        receive = ask(c, protocol, "GET", "/next")
        with hand.peer() as peer:
            peer.head()
            peer.send(render(200, [], "length", b"next"))
            assert receive().body == b"next", "and it goes on"


@PROTOCOLS
def test_a_request_arrives_with_its_header_lines_in_order(edge, hand, protocol):
    sent = [*MIXED[:3], ("x-a", "4, 5"), ("te", "trailers"), ("cookie", "a=1; b=2"), ("accept", "a/b"), ("accept", "c/d"), ("range", "bytes=0-1")]
    with client(edge, protocol) as c:
        receive = ask(c, protocol, "GET", "/lines", sent)
        with hand.peer() as peer:
            line, headers = peer.head()
            peer.send(render(200, [], "length", b""))
            receive()
    names = {n for n, _ in sent}
    arrived = [h for h in headers if h[0] in names]
    if protocol == "h2":  # whose cookies may come in pieces: put together, they stand last
        assert arrived[-1] == ("cookie", "a=1; b=2")
    assert line == "GET /lines HTTP/1.1"
    assert sorted(arrived, key=lambda h: h[0] == "cookie") == sorted(sent, key=lambda h: h[0] == "cookie")


@PROTOCOLS
def test_a_client_that_waits_for_100_sends_its_body_when_the_upstream_says_so(edge, hand, protocol):
    with contextlib.ExitStack() as stack:
        if protocol == "h1":
            c = stack.enter_context(Http1(edge.port))
            c.send(b"POST /expect HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n")
        else:
            c = stack.enter_context(Streams(edge.port))
            stream = c.open("/expect", [("expect", "100-continue"), ("content-length", "4")])
        peer = stack.enter_context(hand.peer())
        assert ("expect", "100-continue") in peer.head()[1]
        peer.send(b"HTTP/1.1 100 Continue\r\n\r\n")
        if protocol == "h1":
            assert (c.take_line(), c.take_headers()) == (b"HTTP/1.1 100 Continue", [])
            c.send(b"body")
        else:
            c.send(stream, b"body", end=True)
        while len(peer.buffer) < 4:
            peer.buffer += peer.sock.recv(10)
        assert peer.buffer == b"body"
        peer.send(render(200, [], "length", b"done"))
        assert (c.receive().body if protocol == "h1" else c.whole(stream).data) == b"done"


@PROTOCOLS
@pytest.mark.parametrize("expects", [False, True])
def test_an_answer_that_comes_before_the_body_reaches_the_client_at_once(edge, hand, expects, protocol):
    headers = [("expect", "100-continue")] if expects else []
    with contextlib.ExitStack() as stack:
        if protocol == "h1":
            c = stack.enter_context(Http1(edge.port))
            c.send(b"POST /early HTTP/1.1\r\nHost: a\r\n%sContent-Length: 1000000\r\n\r\n" % (b"Expect: 100-continue\r\n" if expects else b""))
        else:
            c = stack.enter_context(Streams(edge.port))
            stream = c.open("/early", [*headers, ("content-length", "1000000")])
        peer = stack.enter_context(hand.peer())
        peer.head()
        peer.send(render(403, [], "length", b"never mind"))
        if protocol == "h1":
            response = c.receive()
            assert (response.status, response.body) == (403, b"never mind")
        else:
            seen = c.until(stream, lambda s: s.data == b"never mind")
            assert seen.status == 403


@PROTOCOLS
def test_early_hints_pass_before_the_answer(edge, hand, protocol):
    with client(edge, protocol) as c:
        receive = ask(c, protocol, "GET", "/hints")
        with hand.peer() as peer:
            peer.head()
            peer.send(b"HTTP/1.1 103 Early Hints\r\nlink: </a.css>; rel=preload\r\n\r\n" + render(200, [], "length", b"page"))
            if protocol == "h1":
                assert c.take_line().startswith(b"HTTP/1.1 103 ")
                assert c.take_headers() == [("link", "</a.css>; rel=preload")]
            assert receive().body == b"page"


# --- HTTP/1.0 ---


def test_an_http10_request_is_forwarded_in_its_version_and_answered_until_the_end(edge, hand):
    """So the upstream knows that chunks would not be understood (RFC 9112 6.1)."""
    with Http1(edge.port) as c:
        c.send(b"GET /old HTTP/1.0\r\nHost: edge.test\r\n\r\n")
        with hand.peer() as peer:
            line, headers = peer.head()
            assert line == "GET /old HTTP/1.0" and ("host", "edge.test") in headers
            peer.send(render(200, [], "close", b"hello" * 5000))
            peer.sock.shutdown(socket.SHUT_WR)
            response = c.receive()
    assert (response.status, response.body, response.get("transfer-encoding")) == (200, b"hello" * 5000, None)


def test_haproxy_writes_chunks_to_an_http10_client_where_an_http2_upstream_gives_no_length(either):
    """Nothing in HAProxy's configuration changes it; README.md says so."""
    with Http1(either.port) as c:
        c.send(b"GET /old/length HTTP/1.0\r\nHost: edge.test\r\n\r\n")
        response = c.receive()
    over_http2 = response.json()["version"] == "HTTP/2.0"
    assert (response.get("transfer-encoding") == "chunked", response.get("connection")) == (over_http2, "close")


def test_an_http10_client_may_keep_its_connection(edge, hand):
    with Http1(edge.port) as c:
        for i in range(2):
            c.send(b"GET /old/kept HTTP/1.0\r\nHost: edge.test\r\nConnection: keep-alive\r\n\r\n")
            with hand.peer() as peer:
                peer.head()
                peer.send(render(200, [], "length", b"%d" % i))
                response = c.receive()
            assert (response.body, response.get("connection")) == (b"%d" % i, "keep-alive")


def test_an_http10_client_without_keep_alive_is_closed(edge, hand):
    with Http1(edge.port) as c:
        c.send(b"GET /old/closed HTTP/1.0\r\nHost: edge.test\r\n\r\n")
        with hand.peer() as peer:
            peer.head()
            peer.send(render(200, [], "length", b"once"))
            assert c.receive().body == b"once"
        assert not c.fill(), "and then the end"


def test_an_http10_request_without_a_host_is_forwarded_without_one(edge, hand):
    with Http1(edge.port) as c:
        c.send(b"GET /old/hostless HTTP/1.0\r\n\r\n")
        with hand.peer() as peer:
            line, headers = peer.head()
            assert line.startswith("GET /old/hostless HTTP/1.")
            assert [v for n, v in headers if n == "host"] in ([], [""])
            peer.send(render(200, [], "length", b""))
            assert c.receive().status == 200


# --- target and host, towards both versions ---

TARGETS = [
    ("/a/b?x=1&y=2", "/a/b?x=1&y=2"),
    ("/a%2Fb/%7Ec?x=%41", "/a%2Fb/%7Ec?x=%41"),
    ("/a|b^c?x=1", "/a%7Cb%5Ec?x=1"),
    ("//a//b/./c", "//a//b/./c"),
    ("/a;v=1/b?x", "/a;v=1/b?x"),
    ("/q?a=1;b=2&c=3", "/q?c=3"),
    ("/q?a=%zz&b=1&c=%", "/q?b=1"),
    ("/q?a=1;2", "/q"),
    ("/q?", "/q?"),
    ("/q?a&&b=", "/q?a&&b="),
    ("/q?a=b|c", "/q?a=b|c"),
]


@pytest.fixture(scope="module", params=["h1", "h2"])
def either(request):
    """An edge before an upstream of that version."""
    upstream = FaultyUpstream() if request.param == "h1" else H2Upstream()
    with upstream, Edge(policy(), upstream.url, settings={"EDGE_UPSTREAM_PROTO": request.param}) as e:
        yield e


@PROTOCOLS
@pytest.mark.parametrize("sent, forwarded", TARGETS)
def test_a_target_is_forwarded_as_sent_but_for_what_no_upstream_could_read_alike(either, sent, forwarded, protocol):
    assert fetch(either, "GET", sent, protocol=protocol).json()["target"] == forwarded


@PROTOCOLS
@pytest.mark.parametrize("host", ["edge.test", "Edge.TEST", "edge.test:8080", "edge.test.", "[::1]:8080", "127.0.0.1"])
def test_the_host_is_forwarded_as_sent(either, host, protocol):
    headers = fetch(either, "GET", "/host", host=host, protocol=protocol).json()["headers"]
    assert [v for n, v in headers if n.lower() in ("host", ":authority")] == [host]


def test_the_port_that_the_scheme_of_an_http2_request_means_anyway_is_left_out(either):
    """HAProxy normalises what came with a scheme (RFC 3986 6.2.3)."""
    headers = fetch(either, "GET", "/port", host="edge.test:80", protocol="h2").json()["headers"]
    assert [v for n, v in headers if n.lower() in ("host", ":authority")] == ["edge.test"]


@pytest.mark.parametrize("scheme", ["http", "https", "HTTP", "ftp"])
def test_an_absolute_target_reaches_the_upstream_as_path_and_query(either, scheme):
    with Http1(either.port) as c:
        c.send(f"GET {scheme}://edge.test/absolute?x=1 HTTP/1.1\r\nHost: edge.test\r\n\r\n".encode())
        received = c.receive().json()
    assert received["target"] == "/absolute?x=1"
    assert [v for n, v in received["headers"] if n.lower() in ("host", ":authority")] == ["edge.test"]
    with client(either, "h2") as c:
        c.scheme = scheme
        received = c.request("GET", "/absolute?x=1").json()
    assert received["target"] == "/absolute?x=1"
    assert [v for n, v in received["headers"] if n.lower() in ("host", ":authority")] == ["edge.test"]


@pytest.mark.parametrize("authority, host", [("a.test", "b.test"), ("a.test:81", "a.test"), ("a.test", "a.test:81"), ("a.test", "A.TEST")])
def test_of_an_authority_and_another_host_the_authority_is_judged_and_forwarded(either, authority, host):
    """Guards against a host for the rules and another one for the upstream."""
    with client(either, "h2") as c:
        received = c.request("GET", "/two-hosts", [("host", host)], host=authority).json()
    named = {n.lower(): v for n, v in received["headers"]}
    assert [v for n, v in received["headers"] if n.lower() in ("host", ":authority")] == [authority]
    assert named["x-forwarded-host"] == authority


# --- once at most ---


@pytest.fixture(scope="module")
def faulty():
    with FaultyUpstream() as u:
        yield u


@pytest.fixture(scope="module")
def faulty_edge(faulty):
    with Edge(policy(), faulty.url) as e:
        yield e


@PROTOCOLS
@pytest.mark.parametrize("kept", [False, True], ids=["fresh", "kept"])
@pytest.mark.parametrize("method, body", [("GET", None), ("PUT", b"body"), ("POST", b"body")])
@pytest.mark.parametrize("fault", ["close", "reset", "garbage", "cut"])
def test_a_request_that_fails_reaches_the_upstream_once(faulty_edge, faulty, fault, method, body, kept, protocol):
    """It may have had its effect; also where HAProxy leaves it to the client to ask again."""
    target = f"/{fault}/once/{method}/{kept}/{protocol}"
    with client(faulty_edge, protocol) as c:
        for _ in range(2 if kept else 0):
            assert c.request("GET", "/ordinary").status == 200
        with contextlib.suppress(Closed, StreamReset):
            response = c.request(method, target, body=body)
            assert response.status == 502
    assert fetch(faulty_edge, "GET", "/ordinary").status == 200
    assert len(faulty.seen(target)) == 1
