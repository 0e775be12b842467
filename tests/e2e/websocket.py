"""WebSocket (RFC 6455) as both of its ends need it in tests: the handshake, and frames byte for byte."""

import base64
import hashlib
import os
import struct
from dataclasses import dataclass

GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG = 0x0, 0x1, 0x2, 0x8, 0x9, 0xA


def new_key():
    return base64.b64encode(os.urandom(16)).decode()


def accept_of(key):
    """What the server proves with that it has read the key (RFC 6455 4.2.2)."""
    return base64.b64encode(hashlib.sha1(key.encode() + GUID).digest()).decode()


def request_headers(key, *more):
    return [("Connection", "Upgrade"), ("Upgrade", "websocket"), ("Sec-WebSocket-Version", "13"), ("Sec-WebSocket-Key", key), *more]


@dataclass
class Frame:
    opcode: int
    payload: bytes
    fin: bool = True
    masked: bool = False

    def code(self):
        """The status of a CLOSE; None without one."""
        return struct.unpack(">H", self.payload[:2])[0] if self.payload else None


def close_payload(code, reason=b""):
    return struct.pack(">H", code) + reason


def masked_with(key, data):
    whole = (key * (len(data) // 4 + 1))[: len(data)]
    return (int.from_bytes(data, "big") ^ int.from_bytes(whole, "big")).to_bytes(len(data), "big")


def encode(frame):
    size = len(frame.payload)
    head = bytes([frame.opcode | (0x80 if frame.fin else 0)])
    bit = 0x80 if frame.masked else 0
    if size < 126:
        head += bytes([bit | size])
    elif size < 1 << 16:
        head += bytes([bit | 126]) + struct.pack(">H", size)
    else:
        head += bytes([bit | 127]) + struct.pack(">Q", size)
    if not frame.masked:
        return head + frame.payload
    key = os.urandom(4)
    return head + key + masked_with(key, frame.payload)


class Socket:
    """Frames over anything with take(n) and send(data). A client masks what it sends, a server must not (RFC 6455 5.1)."""

    def __init__(self, link, is_client):
        self.link, self.is_client = link, is_client

    def send(self, opcode, payload=b"", fin=True):
        self.link.send(encode(Frame(opcode, payload, fin, self.is_client)))

    def receive(self):
        first, second = self.link.take(2)
        size = second & 0x7F
        if size == 126:
            (size,) = struct.unpack(">H", self.link.take(2))
        elif size == 127:
            (size,) = struct.unpack(">Q", self.link.take(8))
        masked = bool(second & 0x80)
        assert masked != self.is_client, "a client's frames are masked, a server's are not"
        key = self.link.take(4) if masked else b""
        payload = self.link.take(size)
        return Frame(first & 0x0F, masked_with(key, payload) if masked else payload, bool(first & 0x80), masked)
