"""Clients that send their headers so slowly that they never end: all of them have ten seconds, and those of this file wait together.

A connection that is idle instead costs a descriptor and is closed as such, later."""

import socket

from clients import connect, port_of
from hostile import CONTINUATION, END_HEADERS, END_STREAM, HEADERS, PREFACE, SETTINGS, block, frame, fresh, plain

LINE = b"GET %s HTTP/1.1\r\nHost: edge.test\r\n"
BEGUN = PREFACE + frame(SETTINGS, 0, 0)


def open_block(path):
    return BEGUN + frame(HEADERS, END_STREAM, 1, block(plain(path)))


def h1_line(path):
    return LINE % path.encode() + b"X: "


# name: (what is sent at once for a path, what follows now and then or b"", whether an answer is possible)
SLOW = {
    "h1 says nothing": (lambda path: b"", b"", False),
    "h1 half a line": (lambda path: b"GET " + path.encode(), b"", True),
    "h1 a byte of a value": (h1_line, b"x", True),
    "h1 a header": (lambda path: LINE % path.encode(), b"X: y\r\n", True),
    "h1 empty lines": (lambda path: b"\r\n", b"\r\n", True),
    "h2 half a frame": (lambda path: BEGUN + frame(HEADERS, END_STREAM | END_HEADERS, 1, block(plain(path)))[:15], b"", False),
    "h2 headers without an end": (open_block, b"", False),
    "h2 CONTINUATION": (open_block, frame(CONTINUATION, 0, 1, block([("x", "y")])), False),
}
HANDSHAKE = (lambda path: b"\x16\x03\x01\x02", b"", False)


class Slow:
    def __init__(self, edge, protocol, name):
        begin, self.more, self.answers = SLOW.get(name, HANDSHAKE)
        self.name, self.path, self.said, self.over = f"{protocol}: {name}", fresh(), b"", False
        if name in SLOW:
            self.sock = connect(port_of(edge, protocol), protocol.startswith("tls-"), "h2" if protocol.endswith("h2") else "http/1.1")
        else:
            self.sock = socket.create_connection(("127.0.0.1", edge.tls_port))
        self.sock.sendall(begin(self.path))
        self.sock.settimeout(0.02)

    def go_on(self):
        """Takes what is there, and sends a little more."""
        try:
            piece = self.sock.recv(65536)
            self.said, self.over = self.said + piece, not piece
            return
        except TimeoutError:
            pass
        except OSError:
            self.over = True
            return
        try:
            self.sock.sendall(self.more)
        except OSError:
            pass


def test_headers_that_never_end_are_ended_whatever_trickles_in(edge, upstream):
    """Five times the ten seconds are given; a client that were not cut off would still be there. What can be answered is, with 408."""
    slow = [Slow(edge, p + name[:2], name) for name in SLOW for p in ("", "tls-")] + [Slow(edge, "tls", "a handshake that never ends")]
    rounds = 0
    while not all(client.over for client in slow):
        for client in slow:
            if not client.over:
                client.go_on()
        rounds += 1
        assert rounds < 500, [client.name for client in slow if not client.over]
    for client in slow:
        client.sock.close()
        assert not upstream.seen(client.path), client.name
        if client.answers:
            head, _, _ = client.said.partition(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 408 ") and b"\r\ncache-control: no-store" in head.lower(), (client.name, client.said)
        else:
            assert not client.said.startswith(b"HTTP/1.1 2"), client.name
