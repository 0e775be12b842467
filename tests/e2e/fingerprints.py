"""JA3 and JA4 of a ClientHello's own bytes, by their descriptions: what the edge computes from what HAProxy tells it is held against this."""

import hashlib


class Hello:
    """The records at the beginning of a TLS connection, as a client sent them."""

    def __init__(self, stream):
        message = b""
        while len(message) < 4 or len(message) < 4 + int.from_bytes(message[1:4], "big"):
            assert stream[0] == 0x16, f"no handshake record: {stream[:5].hex()}"
            length = int.from_bytes(stream[3:5], "big")
            assert len(stream) >= 5 + length, "a record is cut"
            message, stream = message + stream[5 : 5 + length], stream[5 + length :]
        assert message[0] == 1, "no ClientHello"
        self.rest = message[4 : 4 + int.from_bytes(message[1:4], "big")]
        self.version = int.from_bytes(self.take(2), "big")
        self.take(32)
        self.session_id = self.take_vector(1)
        self.ciphers = numbers(self.take_vector(2))
        self.take_vector(1)
        self.extensions = []
        self.rest = self.take_vector(2) if self.rest else b""
        while self.rest:
            kind = int.from_bytes(self.take(2), "big")
            self.extensions.append((kind, self.take_vector(2)))

    def take(self, n):
        assert len(self.rest) >= n, "the hello is cut"
        taken, self.rest = self.rest[:n], self.rest[n:]
        return taken

    def take_vector(self, width):
        return self.take(int.from_bytes(self.take(width), "big"))

    def body(self, kind):
        return next((body for number, body in self.extensions if number == kind), None)

    def list_of(self, kind, length_bytes, width=2):
        body = self.body(kind)
        return [] if body is None else numbers(body[length_bytes:], width)

    def protocols(self):
        """Those offered by ALPN."""
        names, found = (self.body(16) or b"")[2:], []
        while names:
            found.append(names[1 : 1 + names[0]])
            names = names[1 + names[0] :]
        return found


def numbers(data, width=2):
    return [int.from_bytes(data[i : i + width], "big") for i in range(0, len(data), width)]


GREASE = {n * 0x1010 + 0x0A0A for n in range(16)}
VERSIONS = {0x0304: "13", 0x0303: "12", 0x0302: "11", 0x0301: "10", 0x0300: "s3", 0x0002: "s2"}


def no_grease(values):
    return [value for value in values if value not in GREASE]


def ja3(hello):
    kinds = [kind for kind, _ in hello.extensions]
    lists = (no_grease(hello.ciphers), no_grease(kinds), no_grease(hello.list_of(10, 2)), hello.list_of(11, 1, 1))
    text = ",".join([str(hello.version)] + ["-".join(map(str, values)) for values in lists])
    return hashlib.md5(text.encode()).hexdigest()


def digest(text):
    return hashlib.sha256(text.encode()).hexdigest()[:12] if text else "0" * 12


def ja4_alpn(name):
    if not name:
        return "00"
    ends = bytes((name[0], name[-1]))
    return ends.decode() if ends.isalnum() else name.hex()[0] + name.hex()[-1]


def in_hex(values):
    return ",".join(f"{value:04x}" for value in values)


def ja4(hello):
    ciphers, kinds = no_grease(hello.ciphers), no_grease([kind for kind, _ in hello.extensions])
    version = max(no_grease(hello.list_of(43, 1)), default=hello.version)
    signatures = in_hex(no_grease(hello.list_of(13, 2)))
    extensions = in_hex(sorted(kind for kind in kinds if kind not in (0, 16)))
    return (
        f"t{VERSIONS.get(version, '00')}{'d' if 0 in kinds else 'i'}{min(len(ciphers), 99):02}{min(len(kinds), 99):02}{ja4_alpn(next(iter(hello.protocols()), None))}"
        f"_{digest(in_hex(sorted(ciphers)))}_{digest(extensions + ('_' + signatures if extensions and signatures else ''))}"
    )
