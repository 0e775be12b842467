"""A second opinion on HTTP/1: the requests in a run of bytes as RFC 9112 reads them, up to where it allows no or more than one reading."""

import re
from dataclasses import dataclass
from urllib.parse import unquote_to_bytes, urlsplit

TOKEN = rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+"
LINE = re.compile(rb"(" + TOKEN + rb") ([\x21-\x7e]+) HTTP/1\.([0-9])\r\n")
FIELD = re.compile(rb"(" + TOKEN + rb"):[ \t]*([^\r\n\0]*)\r\n")
CHUNK = re.compile(rb"([0-9A-Fa-f]{1,16})[ \t]*(?:;[^\r\n]*)?\r\n")


class Stop(Exception):
    """From here on no request may reach anybody: what follows is no HTTP, or belongs to nobody."""


class Doubt(Stop):
    """From here on a server may read it this way or that way (RFC 9112 2.2, 3, 5.2): nothing is said about the rest."""


class Unfinished(Stop):
    """The bytes end before the request does."""


@dataclass
class Request:
    method: str
    path: bytes
    body_len: int


def path_of(target):
    """What identifies a target whatever the edge has escaped, and whatever of the query it has dropped."""
    text = target.decode("latin-1") if isinstance(target, bytes) else target
    if not text.startswith("/"):
        text = urlsplit(text).path or "/"
    return unquote_to_bytes(text.partition("?")[0].encode("latin-1"))


class Reading:
    def __init__(self, data):
        self.data, self.at = data, 0

    def match(self, pattern):
        """At the place where the reading is."""
        found = pattern.match(self.data, self.at)
        if found is None:
            self.why(self.data[self.at :])
        self.at = found.end()
        return found

    @staticmethod
    def why(rest):
        """Why a line is none: it is not there yet, it ends or is parted in a way that servers may allow, or it is wrong."""
        line, end, _ = rest.partition(b"\n")
        if not end:
            raise Unfinished
        raise Doubt if not line.endswith(b"\r") or line[:1] in b" \t" or re.search(rb"[ \t]{2}|\t|HTTP/[2-9]", line) else Stop

    def take(self, n):
        if len(self.data) - self.at < n:
            raise Unfinished
        self.at += n
        return self.data[self.at - n : self.at]

    def fields(self):
        found = []
        while not self.data.startswith(b"\r\n", self.at):
            name, value = self.match(FIELD).groups()
            found.append((name.lower(), value.strip(b" \t")))
        self.at += 2
        return found

    def chunks(self):
        size = 0
        while n := int(self.match(CHUNK)[1], 16):
            self.take(n)
            if self.take(2) != b"\r\n":
                raise Stop
            size += n
        self.fields()
        return size

    def request(self):
        """(the request, whether it is the connection's last)"""
        while self.data.startswith(b"\r\n", self.at):
            self.at += 2
        method, target, minor = self.match(LINE).groups()
        fields = self.fields()
        codings = [v.lower() for n, v in fields if n == b"transfer-encoding"]
        lengths = {part.strip(b" \t") for n, v in fields if n == b"content-length" for part in v.split(b",")}
        options = b",".join(v.lower() for n, v in fields if n == b"connection")
        if any(n == b"upgrade" for n, _ in fields):
            raise Doubt
        if codings and (codings != [b"chunked"] or minor == b"0"):
            raise Stop
        if len(lengths) > 1 or not all(re.fullmatch(rb"[0-9]{1,18}", v) for v in lengths):
            raise Stop
        size = self.chunks() if codings else len(self.take(int(lengths.pop()))) if lengths else 0
        last = b"close" in options or minor == b"0" or method == b"CONNECT" or bool(codings and lengths)
        return Request(method.decode(), path_of(target), size), last


def read(data):
    """(the requests in order, whether something behind them is in doubt)"""
    reading, found, last = Reading(data), [], False
    try:
        while not last:
            request, last = reading.request()
            found.append(request)
    except Doubt:
        return found, True
    except Stop:
        pass
    return found, False
