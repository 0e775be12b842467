"""An upstream that speaks HTTP/2 (python3-h2) and HTTP/1 on one port, in the clear by the preface and over TLS by ALPN.

Over HTTP/1 it is upstream.py's, and switches to an echo where asked for a WebSocket. Over HTTP/2 the path says how it answers:
  /grpc.Test/Unary        the message again, once it is whole; trailers grpc-status 0
  /grpc.Test/Bidi         headers at once, each piece again as it comes; trailers at the end
  /grpc.Test/Fail         headers only, with grpc-status 5
  /grpc.Test/Large/<n>    n bytes, as fast as windows allow
  /grpc.Test/Reset/<code> no headers; the stream is reset with that error code (RFC 9113 7)
  /grpc.Test/Cut          headers and a piece, then a reset
  /grpc.Test/Goaway       no headers; GOAWAY that says the request was not looked at, and the end of the connection
Anything else is answered with JSON of exactly what was received, as upstream.py does.
"""

import hashlib
import json
import socket

import h2.config
import h2.connection
import h2.events
import h2.exceptions

from faulty_upstream import FaultyUpstream
from tls_upstream import NamedUpstream
from upstream import Gone
from websocket import accept_of

PREFACE = b"PRI * HTTP/2.0"
GRPC = [(":status", "200"), ("content-type", "application/grpc")]
GRPC_OK = [("grpc-status", "0"), ("grpc-message", "fine"), ("x-trailer", "a"), ("x-trailer", "b")]


class Stream:
    """One request and what is still to be sent for it. end: trailers (or [] for none) once out is sent; None while open."""

    def __init__(self, headers):
        fields = dict(headers)
        self.path, self.method = fields.get(":path", ""), fields.get(":method")
        self.headers = [[n, v] for n, v in headers]
        self.received, self.trailers, self.out, self.end = b"", [], b"", None

    def request(self):
        return {
            "method": self.method,
            "target": self.path,
            "version": "HTTP/2.0",
            "headers": self.headers,
            "trailers": self.trailers,
            "body_len": len(self.received),
            "body_sha256": hashlib.sha256(self.received).hexdigest(),
        }


class H2Session:
    """One HTTP/2 connection until it ends."""

    def __init__(self, sock, record, extra):
        self.sock, self.record, self.extra, self.streams = sock, record, extra, {}
        self.h2 = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False, header_encoding="latin-1"))

    def run(self):
        self.h2.initiate_connection()
        self.flush()
        while data := self.sock.recv(65536):
            for event in self.h2.receive_data(data):
                self.handle(event)
            self.send_pending()

    def flush(self):
        if data := self.h2.data_to_send():
            self.sock.sendall(data)

    def handle(self, event):
        if isinstance(event, h2.events.RequestReceived):
            stream = self.streams[event.stream_id] = Stream(event.headers)
            if stream.path.startswith("/grpc.Test/Bidi"):
                self.h2.send_headers(event.stream_id, GRPC)
        elif isinstance(event, h2.events.DataReceived) and event.stream_id in self.streams:
            stream = self.streams[event.stream_id]
            stream.received += event.data
            if stream.path.startswith("/grpc.Test/Bidi"):
                stream.out += event.data
            self.h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
        elif isinstance(event, h2.events.TrailersReceived):
            self.streams[event.stream_id].trailers = [[n, v] for n, v in event.headers]
        elif isinstance(event, h2.events.StreamEnded):
            self.ended(event.stream_id, self.streams[event.stream_id])
        elif isinstance(event, h2.events.StreamReset):
            self.streams.pop(event.stream_id, None)

    def ended(self, number, stream):
        """The whole request is there."""
        request = {**stream.request(), **self.extra}
        self.record(request)
        if stream.path.startswith(("/grpc.Test/Reset/", "/grpc.Test/Cut", "/grpc.Test/Goaway")):
            del self.streams[number]
            self.break_off(number, stream.path)
            return
        if stream.path == "/grpc.Test/Fail":
            self.h2.send_headers(number, [*GRPC, ("grpc-status", "5"), ("grpc-message", "no such thing")], end_stream=True)
            del self.streams[number]
            return
        if stream.path.startswith("/grpc.Test/"):
            if not stream.path.startswith("/grpc.Test/Bidi"):
                self.h2.send_headers(number, GRPC)
                large = stream.path.startswith("/grpc.Test/Large/")
                stream.out = b"x" * int(stream.path.rpartition("/")[2]) if large else stream.received
            stream.end = GRPC_OK
            return
        self.h2.send_headers(number, [(":status", "200"), ("content-type", "application/json")])
        stream.out, stream.end = b"" if stream.method == "HEAD" else json.dumps(request).encode(), []

    def break_off(self, number, path):
        if path.startswith("/grpc.Test/Goaway"):
            self.h2.close_connection(last_stream_id=0)
            self.flush()
            raise Gone
        if path.startswith("/grpc.Test/Cut"):
            self.h2.send_headers(number, GRPC)
            self.h2.send_data(number, b"half")
        self.h2.reset_stream(number, int(path.rpartition("/")[2]) if path.startswith("/grpc.Test/Reset/") else 2)

    def send_pending(self):
        """As much as the peer's windows take; the rest follows when they grow."""
        for number, stream in list(self.streams.items()):
            while stream.out:
                n = min(self.h2.local_flow_control_window(number), self.h2.max_outbound_frame_size, len(stream.out))
                if n <= 0:
                    break
                self.h2.send_data(number, stream.out[:n])
                stream.out = stream.out[n:]
            if stream.end is not None and not stream.out:
                if stream.end:
                    self.h2.send_headers(number, stream.end, end_stream=True)
                else:
                    self.h2.end_stream(number)
                del self.streams[number]
        self.flush()


def switches(sock, request):
    """Answers an asked-for WebSocket with 101 and echoes until the peer ends; false: none was asked for."""
    headers = {name.lower(): value for name, value in request["headers"]}
    if headers.get("upgrade", "").lower() != "websocket":
        return False
    accept = accept_of(headers["sec-websocket-key"]).encode()  # HAProxy checks it
    sock.sendall(b"HTTP/1.1 101 Switching\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: %s\r\n\r\n" % accept)
    while data := sock.recv(65536):
        sock.sendall(data)
    return True


class Both:
    """Speaks HTTP/2 or HTTP/1 on a connection; remembers the requests of both."""

    def serve_h2(self, sock, extra):
        def record(request):
            with self.lock:
                self.requests.append(request)

        with self.lock:
            self.socks.add(sock)
        try:
            H2Session(sock, record, extra).run()
        except (Gone, OSError, h2.exceptions.ProtocolError):
            pass
        finally:
            with self.lock:
                self.socks.discard(sock)
            sock.close()

    def respond(self, sock, request):
        if switches(sock, request):
            raise Gone
        return super().respond(sock, request)


class H2Upstream(Both, FaultyUpstream):
    """In the clear: HTTP/2 for those that begin with its preface."""

    def serve(self, sock):
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if sock.recv(len(PREFACE), socket.MSG_PEEK | socket.MSG_WAITALL) == PREFACE:
            self.serve_h2(sock, {})
        else:
            super().serve(sock)


class H2NamedUpstream(Both, NamedUpstream):
    """Over TLS, by ALPN; see NamedUpstream."""

    def __init__(self, certificates, alpn=("h2", "http/1.1")):
        super().__init__(certificates, alpn)

    def serve_secure(self, sock):
        connection = self.by_sock[sock]
        if sock.selected_alpn_protocol() == "h2":
            self.serve_h2(sock, {"sni": connection["sni"], "connection": connection["number"]})
        else:
            super().serve_secure(sock)
