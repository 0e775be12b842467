"""What a real browser makes of streams through the edge: it resumes event streams, does not ask again where it was refused, reads a body
as it comes, and speaks WebSocket; over HTTP/1 in the clear and HTTP/2 over TLS."""

import json
import queue
from pathlib import Path

import pytest

import browser
import websocket
from edge import Edge, poll
from policies import config_rule, policy, under
from upstream import KeepingReader, Upstream, answer

pytestmark = pytest.mark.skipif(browser.CHROMIUM is None, reason=browser.MISSING)

PAGE = Path(__file__).with_name("pages") / "streams.html"
POLICY = policy(config=[config_rule("shut", under("/shut"), block="block")])
CHUNKS = ["one ", "two ", "three"]


class PageUpstream(Upstream):
    """Serves the page and plays its other ends."""

    def __init__(self):
        self.readers, self.read, self.reports = {}, queue.Queue(), queue.Queue()
        self.resumed, self.handshakes, self.closes = [], [], []
        super().__init__()

    def reader(self, sock):
        self.readers[sock] = KeepingReader(sock)
        return self.readers[sock]

    def respond(self, sock, request):
        verb = request["target"].removeprefix("/browser/").split("/")[0]
        headers = {name.lower(): value for name, value in request["headers"]}
        if verb == "page":
            page = PAGE.read_bytes()
            sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n" % len(page) + page)
        elif verb == "events":
            self.events(sock, headers.get("last-event-id"))
        elif verb == "chunks":
            self.chunks(sock)
        elif verb == "echo":
            self.echo(sock, headers)
            return False
        else:
            if verb == "read":
                self.read.put(request["target"])
            if verb == "report":
                self.reports.put(json.loads(self.readers[sock].body))
            sock.sendall(answer(200, b""))
        return True

    def head(self, sock, content_type):
        sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: " + content_type + b"\r\nTransfer-Encoding: chunked\r\n\r\n")

    def chunk(self, sock, text):
        sock.sendall(b"%x\r\n%s\r\n" % (len(text), text.encode()))

    def events(self, sock, last):
        """Two events a connection; the browser asks for the next ones by the number of the last."""
        self.resumed.append(last)
        self.head(sock, b"text/event-stream")
        first = int(last or 0) + 1
        self.chunk(sock, "retry: 10\n\n")
        for number in (first, first + 1):
            self.chunk(sock, f"id: {number}\ndata: {'last' if number == 6 else f'event {number}'}\n\n")
        self.chunk(sock, "")

    def chunks(self, sock):
        self.head(sock, b"text/plain")
        for text in CHUNKS:
            self.chunk(sock, text)
            self.read.get(timeout=30)
        self.chunk(sock, "")

    def echo(self, sock, headers):
        proof = websocket.accept_of(headers["sec-websocket-key"]).encode()
        sock.sendall(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: " + proof)
        sock.sendall(b"\r\nSec-WebSocket-Protocol: second.edge\r\n\r\n")
        self.handshakes.append(headers)
        frames = websocket.Socket(self.readers[sock], is_client=False)
        while (frame := frames.receive()).opcode != websocket.CLOSE:
            assert frame.masked
            frames.send(frame.opcode, frame.payload)
        self.closes.append((frame.code(), frame.payload[2:].decode()))
        frames.send(websocket.CLOSE, frame.payload)


class Run:
    """One visit: the page's report, and what both sides saw."""

    def __init__(self, protocol, cert):
        self.protocol = protocol
        with PageUpstream() as self.upstream, Edge(POLICY, self.upstream.url, cert=cert) as edge:
            self.origin = f"https://127.0.0.1:{edge.tls_port}" if protocol == "h2" else f"http://127.0.0.1:{edge.port}"
            with browser.Browser(f"{self.origin}/browser/page", cert) as chromium:
                poll(lambda: chromium.alive() and not self.upstream.reports.empty(), "the page reports", deadline=60)
            self.report = self.upstream.reports.get()
            edge.record_of("/browser/report")
            self.records = edge.matching(msg="access")

    def records_of(self, path):
        return [record for record in self.records if record.get("url.path") == path]


@pytest.fixture(scope="module", params=["http/1.1", "h2"])
def run(request, cert):
    return Run(request.param, cert)


def test_the_browser_speaks_the_protocol_that_is_tested(run):
    assert run.report["protocol"] == run.protocol


def test_an_event_source_resumes_where_the_upstream_ended_it(run):
    assert run.report["events"] == [[str(n), "last" if n == 6 else f"event {n}"] for n in range(1, 7)]
    assert run.upstream.resumed == [None, "2", "4"]


def test_an_event_source_that_the_edge_refuses_is_closed_and_does_not_ask_again(run):
    assert run.report["refusedEvents"] == "closed"
    assert [record["http.response.status_code"] for record in run.records_of("/shut/events")] == [403]
    assert run.upstream.seen("/shut/events") == []


def test_a_streamed_body_is_read_chunk_by_chunk(run):
    assert run.report["chunks"] == CHUNKS


def test_a_websocket_echoes_with_its_subprotocol_and_closes_with_its_code(run):
    assert run.report["echo"] == {"protocol": "second.edge", "seen": ["grüße"], "code": 4002, "reason": "enough", "clean": True}
    (handshake,) = run.upstream.handshakes
    assert (handshake["sec-websocket-protocol"], handshake["origin"]) == ("first.edge, second.edge", run.origin)
    assert run.upstream.closes == [(4002, "enough")]


def test_a_websocket_that_the_edge_refuses_closes_abnormally(run):
    assert run.report["refusedSocket"] == {"opened": False, "code": 1006, "clean": False}
    assert [record["http.response.status_code"] for record in run.records_of("/shut/echo")] == [403]
    assert run.upstream.seen("/shut/echo") == []
