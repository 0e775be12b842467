"""A TLS 1.3 client (RFC 8446) whose ClientHello is what the test says, byte for byte. It trusts every server: tests only."""

import hashlib
import hmac
import socket
import struct

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

TIMEOUT = 15
AES_128_GCM_SHA256 = 0x1301
HANDSHAKE, DATA = 22, 23
ZEROS = bytes(32)


def vector(width, data):
    return len(data).to_bytes(width, "big") + data


def shorts(values):
    return b"".join(value.to_bytes(2, "big") for value in values)


def extension(kind, body=b""):
    return shorts([kind]) + vector(2, body)


def alpn(*names):
    return extension(16, vector(2, b"".join(vector(1, name) for name in names)))


def expand(secret, label, context, length):
    info = length.to_bytes(2, "big") + vector(1, b"tls13 " + label) + vector(1, context)
    return hmac.digest(secret, info + b"\x01", "sha256")[:length]


def derive(secret, label, transcript):
    return expand(secret, label, hashlib.sha256(transcript).digest(), 32)


class Direction:
    """One direction's keys; counts its records."""

    def __init__(self, secret):
        self.secret, self.n = secret, 0
        self.cipher, self.iv = AESGCM(expand(secret, b"key", b"", 16)), expand(secret, b"iv", b"", 12)

    def nonce(self):
        number, self.n = self.n.to_bytes(12, "big"), self.n + 1
        return bytes(a ^ b for a, b in zip(self.iv, number))

    def seal(self, kind, data):
        head = struct.pack("!BHH", DATA, 0x0303, len(data) + 17)
        return head + self.cipher.encrypt(self.nonce(), data + bytes([kind]), head)

    def open(self, head, data):
        plain = self.cipher.decrypt(self.nonce(), data, head).rstrip(b"\0")
        return plain[-1], plain[:-1]


class RawTls:
    """ciphers, extensions: in front of what this client needs for itself. pieces: bytes of the hello that each record takes."""

    def __init__(self, port, ciphers=(), extensions=b"", pieces=None, groups=(29,), signatures=(0x0403, 0x0804), versions=(0x0304,)):
        self.key = X25519PrivateKey.generate()
        share = shorts([29]) + vector(2, self.key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw))
        extensions += extension(43, vector(1, shorts(versions))) + extension(10, vector(2, shorts(groups)))
        extensions += extension(13, vector(2, shorts(signatures))) + extension(51, vector(2, share))
        body = shorts([0x0303]) + ZEROS + b"\0" + vector(2, shorts([*ciphers, AES_128_GCM_SHA256])) + b"\x01\0" + vector(2, extensions)
        self.transcript = b"\x01" + vector(3, body)
        self.records, rest = b"", self.transcript
        for size in [*(pieces or ()), len(rest)]:
            self.records += struct.pack("!BHH", HANDSHAKE, 0x0301, len(rest[:size])) + rest[:size] if rest else b""
            rest = rest[size:]
        self.buffer = b""
        self.sock = socket.create_connection(("127.0.0.1", port), TIMEOUT)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.sock.close()

    def take(self, n):
        while len(self.buffer) < n:
            data = self.sock.recv(65536)
            assert data, "closed by the server"
            self.buffer += data
        taken, self.buffer = self.buffer[:n], self.buffer[n:]
        return taken

    def record(self):
        head = self.take(5)
        data = self.take(int.from_bytes(head[3:], "big"))
        return self.record() if head[0] == 20 else (head, data)  # change_cipher_spec says nothing

    def handshake(self):
        self.sock.sendall(self.records)
        self.handshake_keys()
        flight = b""
        while not self.is_finished(flight):
            kind, data = self.server.open(*self.record())
            assert kind == HANDSHAKE
            flight += data
        self.transcript += flight
        master = hmac.digest(derive(self.secret, b"derived", b""), ZEROS, "sha256")
        finished = hmac.digest(expand(self.client.secret, b"finished", b"", 32), hashlib.sha256(self.transcript).digest(), "sha256")
        self.sock.sendall(self.client.seal(HANDSHAKE, b"\x14" + vector(3, finished)))
        self.client, self.server = (Direction(derive(master, name, self.transcript)) for name in (b"c ap traffic", b"s ap traffic"))
        return self

    def handshake_keys(self):
        head, hello = self.record()
        assert head[0] == HANDSHAKE, f"an alert instead of a ServerHello: {hello.hex()}"
        self.transcript += hello
        rest = hello[4 + 2 + 32 :]
        rest = rest[1 + rest[0] + 3 + 2 :]
        while rest:
            kind, length = struct.unpack("!HH", rest[:4])
            if kind == 51:
                peer = rest[8 : 4 + length]
            rest = rest[4 + length :]
        early = hmac.digest(ZEROS, ZEROS, "sha256")
        shared = self.key.exchange(X25519PublicKey.from_public_bytes(peer))
        self.secret = hmac.digest(derive(early, b"derived", b""), shared, "sha256")
        self.client, self.server = (Direction(derive(self.secret, name, self.transcript)) for name in (b"c hs traffic", b"s hs traffic"))

    @staticmethod
    def is_finished(flight):
        while len(flight) >= 4:
            kind, length = flight[0], int.from_bytes(flight[1:4], "big")
            if kind == 20 and len(flight) == 4 + length:
                return True
            flight = flight[4 + length :]
        return False

    def send(self, data):
        self.sock.sendall(self.client.seal(DATA, data))

    def receive(self):
        """The next bytes of the application; what else there is (tickets) is passed over."""
        kind, data = self.server.open(*self.record())
        return data if kind == DATA else self.receive()

    def get(self, target):
        """An HTTP/1 answer's body whose length is known."""
        self.send(f"GET {target} HTTP/1.1\r\nHost: edge.test\r\n\r\n".encode())
        answer = self.receive()
        while b"\r\n\r\n" not in answer:
            answer += self.receive()
        head, _, body = answer.partition(b"\r\n\r\n")
        length = next(int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
        while len(body) < length:
            body += self.receive()
        return body
