"""Peers that keep to no rule: bytes over HTTP/1 and frames over HTTP/2, and what the edge did about them."""

import contextlib
import itertools
import json
import socket
import subprocess

import hpack

from clients import Closed, connect, port_of
from edge import BINARY

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RESET, SETTINGS, PUSH, PING, GOAWAY, WINDOW, CONTINUATION = 0, 1, 3, 4, 5, 6, 7, 8, 9
END_STREAM, END_HEADERS, PADDED, PRIORITY, ACK = 1, 4, 8, 32, 1
# A target that fills HAProxy's buffer and not a byte more. What does not fit stays unread, so the connection ends with a reset, and a
# proxy on the way (the TLS hop is one) then sometimes ends before it passed the answer on.
ENDLESS_TARGET = b"GET /" + b"t" * 65475
PROTOCOLS1, PROTOCOLS2 = ["h1", "tls-h1"], ["h2", "tls-h2"]

numbers = itertools.count(1)


def fresh():
    """A path that no other request has, and that is in no other path."""
    return f"/marked/{next(numbers)}/here"


def own_answer(c, own=None):
    """What a kept connection says to one more request: 200 with that very request in it, or nothing because it is closed."""
    own = own or fresh()
    with contextlib.suppress(Closed, OSError):
        response = c.request("GET", own)
        assert response.status == 200, f"{own} was answered {response.status}: {response.body[:200]}"
        assert response.json()["target"] == own, "the answer to another request"
        return True
    return False


def idle(edge):
    """Whether nothing is left of any client's connection."""
    requests = edge.stat("BACKEND", "scur")
    return {edge.stat("FRONTEND", "scur")["edge"], requests["plain"], requests["body"]} == {"0"}


# --- HTTP/2 ---


def frame(kind, flags, stream, payload=b""):
    return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload


def number(prefix_bits, value):
    """RFC 7541 5.1, with nothing else in the first byte."""
    most = 2**prefix_bits - 1
    if value < most:
        return bytes([value])
    out, value = bytes([most]), value - most
    while value >= 128:
        out, value = out + bytes([value % 128 + 128]), value // 128
    return out + bytes([value])


def block(fields):
    """Fields as they are, not indexed, not compressed."""
    out = b""
    for field in fields:
        out += b"\0" + b"".join(number(7, len(raw)) + raw for raw in (t if isinstance(t, bytes) else t.encode("latin-1") for t in field))
    return out


def headers(fields, flags=END_STREAM | END_HEADERS, stream=1):
    return frame(HEADERS, flags, stream, block(fields))


def plain(path, *more, scheme="http"):
    return [(":method", "GET"), (":scheme", scheme), (":authority", "edge.test"), (":path", path), *more]


class Wire2:
    """One HTTP/2 connection of raw frames. What came: statuses {stream: status}, bodies, resets and ended {stream}, and gone."""

    def __init__(self, edge, protocol, settings=b""):
        self.sock = connect(port_of(edge, protocol), protocol.startswith("tls-"), "h2")
        self.sock.settimeout(10)
        self.buffer, self.decoder = b"", hpack.Decoder()
        self.statuses, self.headers, self.bodies, self.resets, self.ended, self.gone = {}, {}, {}, {}, set(), None
        self.sock.sendall(PREFACE + frame(SETTINGS, 0, 0, settings))

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.sock.close()

    def send(self, data):
        """The peer may have closed meanwhile; what it said before can still be read."""
        with contextlib.suppress(OSError):
            self.sock.sendall(data)

    def over(self, stream):
        return stream in self.ended or stream in self.resets or self.gone is not None

    def read(self):
        try:
            data = self.sock.recv(65536)
        except ConnectionError:
            data = b""
        if not data:
            self.gone = self.gone if self.gone is not None else "closed"
        self.buffer += data
        while len(self.buffer) >= 9 and len(self.buffer) >= 9 + int.from_bytes(self.buffer[:3], "big"):
            size = 9 + int.from_bytes(self.buffer[:3], "big")
            self.take(self.buffer[3], self.buffer[4], int.from_bytes(self.buffer[5:9], "big"), self.buffer[9:size])
            self.buffer = self.buffer[size:]

    def take(self, kind, flags, stream, payload):
        if kind == SETTINGS and not flags & ACK:
            self.send(frame(SETTINGS, ACK, 0))
        elif kind == HEADERS and stream not in self.statuses:
            assert flags & END_HEADERS
            fields = self.decoder.decode(payload)
            self.statuses[stream], self.headers[stream] = int(dict(fields)[":status"]), fields[1:]
        elif kind == DATA:
            self.bodies[stream] = self.bodies.get(stream, b"") + payload
        elif kind == RESET:
            self.resets.setdefault(stream, int.from_bytes(payload, "big"))
        elif kind == GOAWAY:
            self.gone = int.from_bytes(payload[4:8], "big")
        if kind in (HEADERS, DATA) and flags & END_STREAM:
            self.ended.add(stream)

    def outcome(self, stream=1):
        """Status; "reset"; "gone" for the whole connection."""
        while not self.over(stream):
            self.read()
        if stream in self.statuses:
            return self.statuses[stream]
        return "reset" if stream in self.resets else "gone"

    def own_answer(self, stream, scheme="http"):
        """As above, on another stream."""
        own = fresh()
        self.send(headers(plain(own, scheme=scheme), stream=stream))
        status = self.outcome(stream)
        if status == "gone":
            return False
        assert status == 200, f"{own} was answered {status}"
        assert json.loads(self.bodies[stream])["target"] == own, "the answer to another request"
        return True


def simulated(policy_file, request):
    """What `edge-spoa simulate` says; None when it takes the request for none."""
    done = subprocess.run([BINARY, "simulate", policy_file], input=json.dumps(request), capture_output=True, text=True, timeout=20, check=False)
    return json.loads(done.stdout) if done.returncode == 0 else None


def raw_answer(port, data):
    """Everything that is answered until the peer closes; the other side stays open."""
    with socket.create_connection(("127.0.0.1", port), 10) as s:
        s.settimeout(10)
        s.sendall(data)
        answer = b""
        with contextlib.suppress(ConnectionError):
            while piece := s.recv(65536):
                answer += piece
        return answer
