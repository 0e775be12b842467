"""Both ends of a request whose body comes piece by piece: clients that send it as told, and an upstream that tells how far it came."""

import contextlib
import hashlib
import socket
import threading

import h2.events
import h2.exceptions

from clients import PROTOCOLS, Closed, Http1, Response, as_bytes
from edge import poll
from upstream import Gone, Reader, Upstream, answer

CLOSED = "closed without an answer"
RESET = "stream reset"


class Upload1:
    """A request over HTTP/1 on a connection of its own. length None: chunked."""

    def __init__(self, connection, target, headers=(), length=None, method="POST", version="1.1"):
        self.c, self.chunked = connection, length is None
        lines = [f"{method} {target} HTTP/{version}", "Host: edge.test", *(f"{n}: {v}" for n, v in headers)]
        lines.append("Transfer-Encoding: chunked" if self.chunked else f"Content-Length: {length}")
        self.c.send(as_bytes("\r\n".join(lines) + "\r\n\r\n"))

    def send(self, data=b"", end=False):
        """False: the edge takes no more."""
        if self.chunked:
            data = (b"%x\r\n%s\r\n" % (len(data), data) if data else b"") + (b"0\r\n\r\n" if end else b"")
        try:
            self.c.send(data)
        except OSError:
            return False
        return True

    def outcome(self):
        """The answer, or how it went without a whole one."""
        try:
            return self.c.receive()
        except (Closed, ConnectionError):
            return CLOSED


class Upload2:
    """The same over HTTP/2. length None: without one."""

    def __init__(self, connection, target, headers=(), length=None, method="POST"):
        self.c, self.response, self.ended, self.was_reset = connection, None, False, None
        self.stream = self.c.h2.get_next_available_stream_id()
        fields = [(":method", method), (":scheme", self.c.scheme), (":path", target), (":authority", "edge.test")]
        fields += [(n.lower(), v) for n, v in headers] + ([("content-length", str(length))] if length is not None else [])
        self.c.h2.send_headers(self.stream, fields)
        self.c.flush()

    def send(self, data=b"", end=False):
        try:
            self.c.send_body(self.stream, data, end)
            if not data and not end:
                self.c.flush()
        except (h2.exceptions.StreamClosedError, h2.exceptions.ProtocolError, OSError, Closed):
            return False
        return True

    def take(self, event):
        if isinstance(event, h2.events.ResponseReceived):
            fields = dict(event.headers)
            self.response = Response(int(fields[":status"]), [(n, v) for n, v in event.headers if not n.startswith(":")])
        elif isinstance(event, h2.events.DataReceived):
            self.response.body += event.data
            with contextlib.suppress(h2.exceptions.StreamClosedError):
                self.c.h2.acknowledge_received_data(event.flow_controlled_length, self.stream)
            self.c.flush()
        elif isinstance(event, h2.events.StreamEnded):
            self.ended = True
        elif isinstance(event, h2.events.StreamReset):
            self.was_reset = event.error_code

    def outcome(self):
        try:
            while not self.ended and self.was_reset is None:
                for event in self.c.handle(self.c.sock.recv(65536)):
                    if getattr(event, "stream_id", None) == self.stream:
                        self.take(event)
        except (Closed, ConnectionError):
            return CLOSED
        return self.response if self.ended else RESET


@contextlib.contextmanager
def upload(edge, protocol, target, headers=(), length=None, **kwargs):
    with PROTOCOLS[protocol](edge) as connection:
        yield upload_on(connection, target, headers, length, **kwargs)


def upload_on(connection, target, headers=(), length=None, **kwargs):
    kind = Upload1 if isinstance(connection, Http1) else Upload2
    return kind(connection, target, headers, length, **kwargs)


class BodyUpstream(Upstream):
    """Remembers a request as soon as its headers are there, with what has come of its body so far and whether that is all.

    Beside the verbs of Upstream: /early answers before the body, /part begins an answer before the body and ends it after, /hints
    sends 103 and /continue 100 before the body; /large/<n> answers with n bytes; /pause/<ms> waits in the middle of its answer."""

    BLOCK = hashlib.sha256(b"block").digest() * 2048

    def serve(self, sock):
        with self.lock:
            self.socks.add(sock)
        reader = Reader(sock)
        try:
            while True:
                request = self.request(sock, reader)
                if not self.respond(sock, request):
                    return
        except (Gone, OSError, ValueError):
            pass
        finally:
            with self.lock:
                self.socks.discard(sock)
            sock.close()

    def request(self, sock, reader):
        method, target, version = reader.line().decode("latin-1").split(" ", 2)
        headers = reader.headers()
        request = {"method": method, "target": target, "version": version, "headers": headers, "body_len": 0, "whole": False, "trailers": []}
        with self.lock:
            self.requests.append(request)
        self.before_body(sock, target.split("?")[0].lstrip("/").partition("/")[0])
        lower = {name.lower(): value for name, value in headers}
        digest = hashlib.sha256()
        if lower.get("transfer-encoding", "").lower() == "chunked":
            while size := int(reader.line().split(b";")[0], 16):
                self.take(reader, size, request, digest)
                reader.take(2)
            request["trailers"] = reader.headers()
        else:
            self.take(reader, int(lower.get("content-length", "0")), request, digest)
        request["body_sha256"] = digest.hexdigest()
        request["whole"] = True
        return request

    @staticmethod
    def take(reader, size, request, digest):
        while size > 0:
            if not reader.buffer:
                reader.fill()
            piece, reader.buffer = reader.buffer[:size], reader.buffer[size:]
            size -= len(piece)
            digest.update(piece)
            request["body_len"] += len(piece)

    @staticmethod
    def before_body(sock, verb):
        if verb == "early":
            sock.sendall(answer(200, b"early"))
        elif verb == "part":
            sock.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nbegun\r\n")
        elif verb == "hints":
            sock.sendall(b"HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\n\r\n")
        elif verb == "continue":
            sock.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")

    def respond(self, sock, request):
        verb, _, argument = request["target"].split("?")[0].lstrip("/").partition("/")
        if verb == "early":
            return True
        if verb == "part":
            sock.sendall(b"5\r\nended\r\n0\r\n\r\n")
            return True
        if verb == "large":
            return self.large(sock, int(argument))
        if verb == "pause":
            sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nbegun\r\n")
            self.stopping.wait(int(argument) / 1000)
            sock.sendall(b"5\r\nended\r\n0\r\n\r\n")
            return True
        return super().respond(sock, request)

    def large(self, sock, size):
        sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size)
        while size > 0:
            sock.sendall(self.BLOCK[:size])
            size -= len(self.BLOCK)
        return True

    def came(self, marker, body_len):
        """Waits until that much of a body has come, and returns the one request."""
        found = poll(lambda: [r for r in self.seen(marker) if r["body_len"] >= body_len], f"{body_len} bytes of {marker} at the upstream")
        assert len(found) == 1 and len(self.seen(marker)) == 1, f"{marker} reached the upstream {len(self.seen(marker))} times"
        return found[0]


def trickle(request, gap_s, end_after=None):
    """Sends a byte now and then, from a thread of its own, until the edge takes no more or end_after bytes are sent. Returns how to
    stop it."""
    stop = threading.Event()

    def run():
        sent = 0
        while not stop.wait(gap_s):
            sent += 1
            if not request.send(b"x", end=sent == end_after) or sent == end_after:
                return

    thread = threading.Thread(target=run, daemon=True)
    thread.start()

    def end():
        stop.set()
        thread.join()

    return end


class TurnsUpstream:
    """Answers at once and sends each piece of the body back as it comes."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self.accept, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.listener.close()

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                threading.Thread(target=self.serve, args=self.listener.accept()[:1], daemon=True).start()

    @staticmethod
    def serve(sock):
        reader = Reader(sock)
        with contextlib.suppress(Gone, OSError), sock:
            reader.line()
            reader.headers()
            sock.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
            while size := int(reader.line().split(b";")[0], 16):
                piece = reader.take(size)
                reader.take(2)
                sock.sendall(b"%x\r\n%s\r\n" % (size, piece))
            sock.sendall(b"0\r\n\r\n")
