"""HTTP clients that send what they are told, byte for byte: HTTP/1 on a plain socket, HTTP/2 on python3-h2."""

import json
import socket
import ssl
from dataclasses import dataclass, field

import h2.config
import h2.connection
import h2.events

TIMEOUT = 15


class Closed(Exception):
    """The peer closed before a whole answer was there."""


class Unprocessed(Exception):
    """A GOAWAY says that this request was not looked at: it may be sent again (RFC 9113 6.8)."""


class StreamReset(Exception):
    """The peer reset the HTTP/2 stream."""


@dataclass
class Response:
    status: int
    headers: list = field(default_factory=list)  # (name in lower case, value), in order
    body: bytes = b""

    def all(self, name):
        return [value for n, value in self.headers if n == name]

    def get(self, name):
        """The value of a header that may stand there once at most; None without it."""
        values = self.all(name)
        assert len(values) <= 1, f"{name} stands there {len(values)} times: {values}"
        return values[0] if values else None

    def json(self):
        return json.loads(self.body)


def tls_context(alpn=None, version=None, pem=None):
    """alpn: what is offered; version: the only one of TLS; pem: the client's certificate with its key. Each may be left out."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE  # the certificate is made for the test run
    if alpn:
        context.set_alpn_protocols([alpn])
    if version:
        context.minimum_version = context.maximum_version = version
    if pem:
        context.load_cert_chain(pem)
    return context


def connect(port, tls, alpn, source="127.0.0.1", first=b""):
    """source: the address to come from; first: bytes ahead of everything, TLS included."""
    sock = socket.create_connection(("127.0.0.1", port), TIMEOUT, (source, 0))
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.sendall(first)
    if not tls:
        return sock
    secure = tls_context(alpn).wrap_socket(sock, server_hostname="edge.test")
    assert secure.selected_alpn_protocol() == alpn
    return secure


class Http1:
    """One HTTP/1 connection. Header values are str (latin-1) or bytes. peer: source and first, as connect takes them."""

    def __init__(self, port, tls=False, **peer):
        self.sock = connect(port, tls, "http/1.1", **peer)
        self.buffer = b""

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.close()

    def close(self):
        self.sock.close()

    def send(self, data):
        self.sock.sendall(data)

    def fill(self):
        """Reads more; false at the end."""
        data = self.sock.recv(65536)
        self.buffer += data
        return len(data) > 0

    def take(self, n):
        while len(self.buffer) < n:
            if not self.fill():
                raise Closed(f"{len(self.buffer)} of {n} bytes: {self.buffer[:200]!r}")
        data, self.buffer = self.buffer[:n], self.buffer[n:]
        return data

    def take_line(self):
        while b"\r\n" not in self.buffer:
            if not self.fill():
                raise Closed(f"in a line: {self.buffer[:200]!r}")
        line, self.buffer = self.buffer.split(b"\r\n", 1)
        return line

    def take_headers(self):
        headers = []
        while line := self.take_line():
            name, value = line.split(b":", 1)
            headers.append((name.decode("latin-1").lower(), value.strip().decode("latin-1")))
        return headers

    def take_chunks(self):
        body = b""
        while size := int(self.take_line().split(b";")[0], 16):
            body += self.take(size)
            self.take(2)
        self.take_headers()
        return body

    def take_rest(self):
        while self.fill():
            pass
        body, self.buffer = self.buffer, b""
        return body

    def receive(self, head=False):
        """The next final answer; interim ones are skipped."""
        status = 100
        while status < 200 and status != 101:
            status = int(self.take_line().split(b" ")[1])
            response = Response(status, self.take_headers())
        if head or status in (101, 204, 304):
            return response
        if response.get("transfer-encoding") == "chunked":
            response.body = self.take_chunks()
        elif response.get("content-length") is not None:
            response.body = self.take(int(response.get("content-length")))
        else:
            response.body = self.take_rest()
        return response

    def request(self, method, target, headers=(), body=None, trailers=None, host="edge.test"):
        self.send(render1(method, target, headers, body, trailers, host))
        return self.receive(head=method == "HEAD")


def as_bytes(text):
    return text if isinstance(text, bytes) else text.encode("latin-1")


def render1(method, target, headers=(), body=None, trailers=None, host="edge.test"):
    """The bytes of a request; trailers make it a chunked one."""
    lines = [b"%s %s HTTP/1.1" % (as_bytes(method), as_bytes(target))]
    if host is not None:
        lines.append(b"Host: " + as_bytes(host))
    lines += [b"%s: %s" % (as_bytes(name), as_bytes(value)) for name, value in headers]
    data = b""
    if trailers is not None:
        lines.append(b"Transfer-Encoding: chunked")
        data = b"%x\r\n%s\r\n0\r\n" % (len(body), body) if body else b"0\r\n"
        data += b"".join(b"%s: %s\r\n" % (as_bytes(name), as_bytes(value)) for name, value in trailers) + b"\r\n"
    elif body is not None:
        lines.append(b"Content-Length: %d" % len(body))
        data = body
    return b"\r\n".join(lines) + b"\r\n\r\n" + data


class Frames:
    """What an HTTP/2 peer sends, cut into whole frames, and those of GOAWAY kept aside: the library would refuse the rest of
    the connection after one, so it never sees any.

    last_stream: what the newest GOAWAY said; streams up to it are still answered."""

    GOAWAY = 7

    def __init__(self):
        self.last_stream, self.buffer = None, b""

    def take(self, data):
        """The whole frames that are there with data added."""
        self.buffer += data
        frames = b""
        while len(self.buffer) >= 9:
            size = 9 + int.from_bytes(self.buffer[:3], "big")
            if len(self.buffer) < size:
                break
            frame, self.buffer = self.buffer[:size], self.buffer[size:]
            if frame[3] == self.GOAWAY:
                self.last_stream = int.from_bytes(frame[9:13], "big")
            else:
                frames += frame
        return frames


def h2_state():
    """The library's side of a client's connection; it neither checks nor changes what is sent."""
    return h2.connection.H2Connection(
        h2.config.H2Configuration(
            client_side=True,
            header_encoding="latin-1",
            validate_outbound_headers=False,
            normalize_outbound_headers=False,
        )
    )


class Http2:
    """One HTTP/2 connection, one stream at a time."""

    def __init__(self, port, tls=False, **peer):
        self.scheme = "https" if tls else "http"
        self.frames = Frames()
        self.sock = connect(port, tls, "h2", **peer)
        self.h2 = h2_state()
        self.h2.initiate_connection()
        self.flush()

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.close()

    def close(self):
        self.sock.close()

    def flush(self):
        self.sock.sendall(self.h2.data_to_send())

    def send_body(self, stream, body, end):
        """In pieces of the size that the peer takes."""
        while len(body) > 0 or end:
            n = min(self.h2.local_flow_control_window(stream), self.h2.max_outbound_frame_size, len(body))
            if n <= 0 and len(body) > 0:
                self.handle(self.sock.recv(65536))
                continue
            last = end and n == len(body)
            self.h2.send_data(stream, body[:n], end_stream=last)
            body = body[n:]
            self.flush()
            if last:
                return

    def request(self, method, target, headers=(), body=None, trailers=None, host="edge.test"):
        return self.receive(self.send_request(method, target, headers, body, trailers, host))

    def send_request(self, method, target, headers=(), body=None, trailers=None, host="edge.test"):
        stream = self.h2.get_next_available_stream_id()
        fields = [(":method", method), (":scheme", self.scheme), (":path", target)]
        if method == "CONNECT":  # RFC 9113 8.5
            fields = [(":method", method), (":authority", target)]
        elif host is not None:
            fields.append((":authority", host))
        fields += [(as_bytes(n).lower(), as_bytes(v)) for n, v in headers]
        self.h2.send_headers(stream, fields, end_stream=body is None and trailers is None)
        if body is not None:
            self.send_body(stream, body, end=not trailers)
        if trailers:
            self.h2.send_headers(stream, [(as_bytes(n).lower(), as_bytes(v)) for n, v in trailers], end_stream=True)
        self.flush()
        return stream

    def handle(self, data):
        if not data:
            raise Closed("the HTTP/2 connection ended")
        events = self.h2.receive_data(self.frames.take(data))
        self.flush()
        return events

    def receive(self, stream):
        """The answer on a stream; Unprocessed when the peer said that it never looked at the request."""
        response, body = None, b""
        while True:
            events = self.handle(self.sock.recv(65536))
            if self.frames.last_stream is not None and self.frames.last_stream < stream:
                raise Unprocessed
            for event in events:
                if getattr(event, "stream_id", None) != stream:
                    continue
                if isinstance(event, h2.events.ResponseReceived):
                    fields = dict(event.headers)
                    headers = [(n, v) for n, v in event.headers if not n.startswith(":")]
                    response = Response(int(fields[":status"]), headers)
                elif isinstance(event, h2.events.DataReceived):
                    body += event.data
                    self.h2.acknowledge_received_data(event.flow_controlled_length, stream)
                    self.flush()
                elif isinstance(event, h2.events.StreamReset):
                    raise StreamReset(f"error {event.error_code}")
                elif isinstance(event, h2.events.StreamEnded):
                    response.body = body
                    return response


PROTOCOLS = {
    "h1": lambda edge, **peer: Http1(edge.port, **peer),
    "h2": lambda edge, **peer: Http2(edge.port, **peer),
    "tls-h1": lambda edge, **peer: Http1(edge.tls_port, tls=True, **peer),
    "tls-h2": lambda edge, **peer: Http2(edge.tls_port, tls=True, **peer),
}


def port_of(edge, protocol):
    return edge.tls_port if protocol.startswith("tls-") else edge.port


def client(edge, protocol="h1", **peer):
    return PROTOCOLS[protocol](edge, **peer)


def fetch(edge, method, target, *args, protocol="h1", peer=None, **kwargs):
    """One request on a connection of its own, which peer describes as connect takes it."""
    with client(edge, protocol, **(peer or {})) as c:
        return c.request(method, target, *args, **kwargs)
