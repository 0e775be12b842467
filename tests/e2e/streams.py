"""Both ends of a stream in the hands of the test: an upstream whose part the test plays, and clients that read what has arrived.

Nobody waits for time to pass: what one end sends is read at the other before the next thing is sent."""

import contextlib
import queue
import socket

import h2.events

import websocket
from clients import Closed, Http1, Http2, Response, StreamReset, fetch, render1
from edge import Edge, poll
from policies import config_rule, limit_rule, policy, under
from upstream import Gone, Upstream

SSE = ("Accept", "text/event-stream")
PATIENCE_S = 15
STREAM_BACKENDS = ("stream", "stream_body")
MAX_STREAMS = 3
# What the policy of stream_policy, and the edge itself, refuse: (path, status, kind).
REFUSALS = [("/shut", 403, "forbidden"), ("/few", 429, "rate_limited"), ("/a/../b", 400, "bad_request")]


class Played:
    """The upstream's end of one connection, with the request that came over it."""

    def __init__(self, sock, request, reader):
        self.sock, self.request, self.reader = sock, request, reader
        self.ended = queue.Queue()

    def header(self, name):
        found = [value for n, value in self.request["headers"] if n.lower() == name]
        assert len(found) <= 1, f"{name}: {found}"
        return found[0] if found else None

    def send(self, data):
        self.sock.sendall(data)

    def take(self, n):
        try:
            return self.reader.take(n)
        except Gone:
            raise Closed("the edge closed its connection to the upstream") from None

    def half_close(self):
        self.sock.shutdown(socket.SHUT_WR)

    def closed(self):
        """True once the edge has closed its side and has sent nothing more."""
        try:
            return not self.reader.buffer and self.sock.recv(1) == b""
        except ConnectionResetError:
            return True

    def end(self):
        """Gives the connection up; the upstream's thread closes it."""
        try:
            self.sock.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.ended.put(True)

    # --- server-sent events ---

    def begin_events(self, extra=b""):
        self.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n" + extra + b"Transfer-Encoding: chunked\r\n\r\n")

    def event(self, text):
        data = b"data: " + text.encode() + b"\n\n"
        self.send(b"%x\r\n%s\r\n" % (len(data), data))

    def end_events(self):
        self.send(b"0\r\n\r\n")

    # --- WebSocket ---

    def switch(self, *lines, upgrade=b"websocket"):
        """Answers 101 as RFC 6455 wants it; lines: more headers."""
        proof = websocket.accept_of(self.header("sec-websocket-key") or "").encode()
        head = b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: " + upgrade + b"\r\nSec-WebSocket-Accept: " + proof
        self.send(b"\r\n".join([head, *lines, b"", b""]))
        return websocket.Socket(self, is_client=False)

    def answer(self, status, body=b"", *lines):
        head = b"HTTP/1.1 %d Answer\r\nContent-Length: %d" % (status, len(body))
        self.send(b"\r\n".join([head, *lines, b"", body]))


class PlayedUpstream(Upstream):
    """Hands each request below /play/ to the test, which answers it; the others are answered as its parent does."""

    def __init__(self):
        self.waiting, self.readers = {}, {}
        super().__init__()

    def place(self, target):
        with self.lock:
            return self.waiting.setdefault(target, queue.Queue())

    def serve(self, sock):
        sock.settimeout(PATIENCE_S)
        try:
            super().serve(sock)
        finally:
            self.readers.pop(sock, None)

    def reader(self, sock):
        self.readers[sock] = super().reader(sock)
        return self.readers[sock]

    def respond(self, sock, request):
        if not request["target"].startswith("/play/"):
            return super().respond(sock, request)
        played = Played(sock, request, self.readers[sock])
        self.place(request["target"]).put(played)
        played.ended.get()
        return False

    def play(self, target):
        """The next request for target."""
        return self.place(target).get(timeout=PATIENCE_S)


class Link1:
    """A client's end over HTTP/1: the answer's head, then bytes as they come, chunks put together."""

    def __init__(self, port, tls=False):
        self.http = Http1(port, tls)
        self.chunked, self.within, self.body = False, False, b""

    def ask(self, target, headers, method="GET", body=None):
        self.http.send(render1(method, target, headers, body))

    def head(self):
        status = int(self.http.take_line().split(b" ")[1])
        response = Response(status, self.http.take_headers())
        self.chunked = response.get("transfer-encoding") == "chunked"
        return response

    def fill(self):
        """More bytes of the body; false at its end in order. The line end behind a chunk is not waited for: HAProxy sends it with the
        next chunk when it has passed the bytes on without copying them."""
        if not self.chunked:
            if not self.http.buffer and not self.http.fill():
                return False
            self.body += self.http.buffer
            self.http.buffer = b""
            return True
        if self.within:
            self.http.take(2)
        size = int(self.http.take_line(), 16)
        self.body += self.http.take(size)
        self.within = size > 0
        return size > 0

    def send(self, data):
        self.http.send(data)

    def half_close(self):
        self.http.sock.shutdown(socket.SHUT_WR)

    def close(self):
        self.http.close()


class Link2:
    """The same over HTTP/2, one stream of a connection."""

    def __init__(self, port, tls=False):
        self.http = Http2(port, tls)
        self.body, self.response, self.over = b"", None, False

    def ask(self, target, headers, method="GET", body=None):
        self.stream = self.http.send_request(method, target, headers, body)

    def connect(self, target, headers, protocol="websocket"):
        """Extended CONNECT (RFC 8441), which the edge must have offered."""
        poll(lambda: self.http.h2.remote_settings.enable_connect_protocol or self.step() or None, "the edge offers extended CONNECT")
        self.stream = self.http.h2.get_next_available_stream_id()
        fields = [(":method", "CONNECT"), (":protocol", protocol), (":scheme", self.http.scheme), (":path", target), (":authority", "edge.test")]
        self.http.h2.send_headers(self.stream, fields + [(n.lower(), v) for n, v in headers])
        self.http.flush()

    def step(self):
        for event in self.http.handle(self.http.sock.recv(65536)):
            if getattr(event, "stream_id", None) != getattr(self, "stream", None):
                continue
            if isinstance(event, h2.events.ResponseReceived):
                fields = dict(event.headers)
                self.response = Response(int(fields[":status"]), [(n, v) for n, v in event.headers if not n.startswith(":")])
            elif isinstance(event, h2.events.DataReceived):
                self.body += event.data
                self.http.h2.acknowledge_received_data(event.flow_controlled_length, self.stream)
                self.http.flush()
            elif isinstance(event, h2.events.StreamReset) and not (self.over and event.error_code == 0):
                # Without an error, behind a whole answer, it says that no more is wanted of the client (RFC 9113 8.1).
                raise StreamReset(f"error {event.error_code}")
            elif isinstance(event, h2.events.StreamEnded):
                self.over = True

    def head(self):
        while self.response is None:
            self.step()
        return self.response

    def fill(self):
        have = len(self.body)
        while len(self.body) == have and not self.over:
            self.step()
        return len(self.body) > have

    def send(self, data):
        self.http.send_body(self.stream, data, end=False)

    def half_close(self):
        self.http.h2.end_stream(self.stream)
        self.http.flush()

    def close(self):
        self.http.close()


LINKS = {
    "h1": lambda edge: Link1(edge.port),
    "h2": lambda edge: Link2(edge.port),
    "tls-h1": lambda edge: Link1(edge.tls_port, tls=True),
    "tls-h2": lambda edge: Link2(edge.tls_port, tls=True),
}


class Client:
    """A stream's client; `with` closes it."""

    def __init__(self, edge, protocol):
        self.link = LINKS[protocol](edge)
        self.is_h2 = protocol.endswith("h2")

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.close()

    def close(self):
        self.link.close()

    def take(self, n):
        while len(self.link.body) < n:
            if not self.link.fill():
                raise Closed(f"{len(self.link.body)} of {n} bytes: {self.link.body!r}")
        data, self.link.body = self.link.body[:n], self.link.body[n:]
        return data

    def send(self, data):
        self.link.send(data)

    def half_close(self):
        self.link.half_close()

    def ended(self):
        """True once the answer has ended in order; what came before it was read."""
        return not self.link.body and not self.link.fill()

    def cut(self):
        """True once the answer has ended in the middle."""
        try:
            assert not self.ended(), "it ended in order"
            return False
        except (Closed, StreamReset, ConnectionResetError):
            return True

    def page(self):
        """The body of an answer that is no stream, to its end."""
        size = int(self.response.get("content-length"))
        return self.take(size)


class Events(Client):
    """A client of server-sent events: asked at once, its head read with open()."""

    def __init__(self, edge, protocol, target, *headers):
        super().__init__(edge, protocol)
        self.link.ask(target, [SSE, *headers])

    def open(self):
        self.response = self.link.head()
        return self.response

    def event(self):
        """The next event's text."""
        while b"\n\n" not in self.link.body:
            if not self.link.fill():
                raise Closed(f"in an event: {self.link.body!r}")
        data, self.link.body = self.link.body.split(b"\n\n", 1)
        return data.decode().removeprefix("data: ")


class WebSocket(Client):
    """A WebSocket's client: over HTTP/1 an upgrade, over HTTP/2 extended CONNECT."""

    def __init__(self, edge, protocol, target, *headers):
        super().__init__(edge, protocol)
        self.key = websocket.new_key()
        if self.is_h2:
            self.link.connect(target, [("Sec-WebSocket-Version", "13"), *headers])
        else:
            self.link.ask(target, websocket.request_headers(self.key, *headers))
        self.frames = websocket.Socket(self, is_client=True)

    def open(self):
        self.response = self.link.head()
        return self.response

    def is_open(self):
        """The answer says that both ends speak WebSocket now."""
        response = self.open()
        if self.is_h2:
            return response.status == 200
        return (response.status, response.get("sec-websocket-accept")) == (101, websocket.accept_of(self.key))


def at_once(edge, *backends):
    """Requests that are counted in these backends now; without any, those that hold stream slots."""
    now = edge.stat("BACKEND", "scur")
    return sum(int(now[name]) for name in backends or STREAM_BACKENDS)


def learn_pages(edge):
    """HAProxy learns one page of its own answers with each answer of an agent."""
    for i in range(20):
        assert fetch(edge, "GET", f"/learn/{i}").status == 200


def stream_policy(*config):
    return policy(config=[config_rule("shut", under("/shut"), block="block"), *config], limits=[limit_rule("few", under("/few"), 1, "1h", 1)])


@contextlib.contextmanager
def stream_edge(document, upstream, cert):
    """An edge for MAX_STREAMS streams, whose HAProxy knows the policy's pages."""
    with Edge(document, upstream.url, settings={"MAX_STREAMS": MAX_STREAMS, "EDGE_HAPROXY_THREADS": "1"}, cert=cert) as e:
        learn_pages(e)
        yield e


@contextlib.contextmanager
def events(edge, upstream, protocol, target):
    """(client, the upstream's end): a stream of events that has begun."""
    with Events(edge, protocol, target) as client:
        played = upstream.play(target)
        played.begin_events()
        client.open()
        yield client, played
