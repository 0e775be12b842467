"""An agent that is told what to say: answers HAProxy's NOTIFYs with any variables, broken ones included."""

import os
import socket
import threading
from urllib.parse import urlsplit

import spop

SCOPES = {"proc": 0, "sess": 1, "txn": 2, "req": 3, "res": 4}
SET_VAR = 1
CONTRACT = 1
# What a forwarded request gets; fields of `rec` as spoa/record/rec.h says.
FORWARD = {"txn.client_ip": "192.0.2.7", "txn.proto": "http", "txn.rec": "3 0 a 1 allow - 192.0.2.7 - - - - - - - - - - id GET edge.test - 0 - /"}


def deletions(*names):
    """A list as del-headers-bin reads it."""
    return b"".join(spop.counted(name.encode()) for name in names) + b"\0"


def additions(*headers):
    """A list as add-headers-bin reads it."""
    return spop.headers_bin([(name.encode(), value.encode()) for name, value in headers])


def typed(value):
    if isinstance(value, int):
        return spop.integer(value)
    return spop.binary(value) if isinstance(value, bytes) else spop.text(value)


def actions(variables):
    """Set-var actions; variables: {"<scope>.<name>": int, str or bytes}, in order."""
    out = b""
    for name, value in variables.items():
        scope, _, name = name.partition(".")
        out += bytes([SET_VAR, 3, SCOPES[scope]]) + spop.counted(name.encode()) + typed(value)
    return out


class Reader:
    """The parts of a frame, from the front."""

    def __init__(self, data):
        self.data, self.at = data, 0

    def byte(self):
        self.at += 1
        return self.data[self.at - 1]

    def varint(self):
        value = self.byte()
        if value < 240:
            return value
        shift = 4
        while True:
            byte = self.byte()
            value += byte << shift
            shift += 7
            if byte < 128:
                return value

    def bytes(self, n):
        self.at += n
        return self.data[self.at - n : self.at]

    def counted(self):
        return self.bytes(self.varint())

    def typed(self):
        """Numbers and strings as themselves, all else as its bytes."""
        kind = self.byte()
        if kind & 15 in (2, 3, 4, 5):
            return self.varint()
        if kind & 15 in (8, 9):
            return self.counted()
        return self.bytes({0: 0, 1: 0, 6: 4, 7: 16}[kind & 15])


class MockAgent:
    """Listens on a UNIX socket from construction to close(); one thread a connection.

    answers: {path: variables}; a path that is not in it is forwarded. `ok` is added as the last variable unless it is there,
    with None for none at all. always: variables that stand before those of every answer, such as caps. asked: {path: arguments}."""

    def __init__(self, path):
        self.answers, self.always, self.asked = {}, {}, {}
        self.path = path
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(path))
        self.listener.listen(64)
        threading.Thread(target=self.accept, daemon=True).start()

    def close(self):
        self.listener.close()
        os.unlink(self.path)

    def id_of(self, path):
        """The unique id of the request for that path."""
        return self.asked[path]["id"].decode()

    def accept(self):
        while True:
            try:
                sock, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(sock,), daemon=True).start()

    def serve(self, sock):
        with sock:
            try:
                while frame := self.receive(sock):
                    sock.sendall(self.reply(Reader(frame)))
            except OSError:
                pass  # HAProxy closes its connections when it likes

    @staticmethod
    def receive(sock):
        data = b""
        size = 4
        while len(data) < size:
            piece = sock.recv(size - len(data))
            if not piece:
                return None
            data += piece
            if len(data) == 4:
                size = 4 + int.from_bytes(data, "big")
        return data[4:]

    def reply(self, frame):
        kind = frame.byte()
        frame.bytes(4)
        stream, number = frame.varint(), frame.varint()
        if kind == spop.HELLO:
            greeting = spop.pair("version", spop.text("2.0")) + spop.pair("max-frame-size", b"\x03" + spop.varint(spop.MAX_FRAME))
            return spop.frame(spop.AGENT_HELLO, greeting + spop.pair("capabilities", spop.text("pipelining")))
        if kind != spop.NOTIFY:
            raise OSError("HAProxy says goodbye")
        return spop.frame(spop.ACK, actions(self.verdict(self.arguments(frame))), stream, number)

    @staticmethod
    def arguments(frame):
        frame.counted()
        return {frame.counted().decode(): frame.typed() for _ in range(frame.byte())}

    def verdict(self, args):
        path = urlsplit(args["url"].decode("latin-1")).path
        self.asked[path] = args
        variables = {**self.always, **self.answers.get(path, FORWARD)}
        variables.setdefault("txn.ok", CONTRACT)
        return {name: value for name, value in variables.items() if value is not None}
