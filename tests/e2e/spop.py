"""Just enough SPOP to speak to an agent as HAProxy does, and to speak it badly."""

import socket
import struct

HELLO, DISCONNECT, NOTIFY = 1, 2, 3
AGENT_HELLO, AGENT_DISCONNECT, ACK = 101, 102, 103
FIN = struct.pack(">I", 1)
MAX_FRAME = 65532


def varint(n):
    if n < 240:
        return bytes([n])
    out, n = [(n | 240) & 255], (n - 240) >> 4
    while n >= 128:
        out.append((n | 128) & 255)
        n = (n - 128) >> 7
    return bytes(out + [n])


def counted(data):
    return varint(len(data)) + data


def text(value):
    return b"\x08" + counted(value.encode())


def binary(value):
    return b"\x09" + counted(value)


def integer(n):
    return b"\x04" + varint(n)


def boolean(value):
    return b"\x11" if value else b"\x01"


def ipv4(address):
    return b"\x06" + socket.inet_aton(address)


def pair(name, value):
    return counted(name.encode()) + value


def frame(kind, payload, stream=0, number=0, flags=FIN):
    body = bytes([kind]) + flags + varint(stream) + varint(number) + payload
    return struct.pack(">I", len(body)) + body


def hello(max_frame=MAX_FRAME):
    return frame(
        HELLO,
        pair("supported-versions", text("2.0"))
        + pair("max-frame-size", b"\x03" + varint(max_frame))
        + pair("capabilities", text("pipelining"))
        + pair("engine-id", text("test")),
    )


def headers_bin(headers):
    return b"".join(counted(n) + counted(v) for n, v in headers) + b"\0\0"


def arguments(path="/", headers=((b"host", b"edge.test"),), contract=1):
    """The arguments of a NOTIFY, in the order of schemas/wire.def."""
    return [
        ("contract", integer(contract)),
        ("method", text("GET")),
        ("url", text(path)),
        ("version", text("1.1")),
        ("src", ipv4("192.0.2.1")),
        ("src_port", integer(40000)),
        ("dst_port", integer(80)),
        ("tls", boolean(False)),
        ("native", boolean(False)),
        ("id", text("0123456789abcdef0123456789abcdef")),
        ("headers", binary(headers_bin(headers))),
    ]


def message(args, name="request"):
    return counted(name.encode()) + bytes([len(args)]) + b"".join(pair(n, v) for n, v in args)


def notify(stream, number, payload):
    return frame(NOTIFY, payload, stream, number)


class Agent:
    """A connection to an agent's socket, greeted unless greet is false."""

    def __init__(self, path, greet=True, timeout=10):
        self.sock = socket.socket(socket.AF_UNIX)
        # A UNIX socket that does not block is refused while the listener's queue is full; one that blocks waits for room.
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", timeout, 0))
        self.sock.connect(str(path))
        self.sock.settimeout(timeout)
        self.buffer = b""
        if greet:
            self.sock.sendall(hello())
            assert self.receive()[0] == AGENT_HELLO

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.sock.close()

    def receive(self):
        """(kind, the rest of the frame); None at the end."""
        while len(self.buffer) < 4 or len(self.buffer) < 4 + int.from_bytes(self.buffer[:4], "big"):
            data = self.sock.recv(65536)
            if not data:
                return None
            self.buffer += data
        size = int.from_bytes(self.buffer[:4], "big")
        body, self.buffer = self.buffer[4 : 4 + size], self.buffer[4 + size :]
        return body[0], body[1:]

    def ask(self, path="/", stream=1, number=1):
        """A proper NOTIFY; the payload of its ACK."""
        self.sock.sendall(notify(stream, number, message(arguments(path))))
        kind, rest = self.receive()
        prefix = FIN + varint(stream) + varint(number)
        assert kind == ACK and rest.startswith(prefix), (kind, rest[:40])
        return rest[len(prefix) :]
