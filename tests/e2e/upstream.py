"""The upstream of the tests: answers with JSON of exactly what it received, and remembers it.

The first segment of the path says how it answers:
  /delay/<ms>     waits before the answer           /status/<code>  with that status
  /stream/<n>     n chunks, each on its own         /close          closes without an answer
  /cut            closes in the middle of a body    /garbage        bytes that are no HTTP
Anything else is answered with 200 at once.
"""

import hashlib
import json
import socket
import threading

HEAD_MAX = 256 * 1024


class Gone(Exception):
    """The peer closed between or within requests."""


class Reader:
    """Bytes of one connection, cut into HTTP/1 requests."""

    def __init__(self, sock):
        self.sock = sock
        self.buffer = b""

    def fill(self):
        data = self.sock.recv(65536)
        if not data or len(self.buffer) > HEAD_MAX:
            raise Gone
        self.buffer += data

    def line(self):
        while b"\r\n" not in self.buffer:
            self.fill()
        line, self.buffer = self.buffer.split(b"\r\n", 1)
        return line

    def take(self, n):
        while len(self.buffer) < n:
            self.fill()
        data, self.buffer = self.buffer[:n], self.buffer[n:]
        return data

    def headers(self):
        found = []
        while line := self.line():
            name, _, value = line.partition(b":")
            found.append([name.decode("latin-1"), value.strip().decode("latin-1")])
        return found

    def request(self):
        method, target, version = self.line().decode("latin-1").split(" ", 2)
        headers = self.headers()
        lower = {name.lower(): value for name, value in headers}
        body, trailers = b"", []
        if lower.get("transfer-encoding", "").lower() == "chunked":
            while size := int(self.line().split(b";")[0], 16):
                body += self.take(size)
                self.take(2)
            trailers = self.headers()
        elif "content-length" in lower:
            body = self.take(int(lower["content-length"]))
        return {
            "method": method,
            "target": target,
            "version": version,
            "headers": headers,
            "trailers": trailers,
            "body_len": len(body),
            "body_sha256": hashlib.sha256(body).hexdigest(),
        }


class KeepingReader(Reader):
    """Remembers what it took last: the body of a request that has one."""

    def take(self, n):
        self.body = super().take(n)
        return self.body

    def send(self, data):
        self.sock.sendall(data)


def answer(status, body, extra=b""):
    return b"HTTP/1.1 %d Answer\r\nContent-Type: application/json\r\nContent-Length: %d\r\n%s\r\n%s" % (
        status,
        len(body),
        extra,
        body,
    )


class Holding:
    """Mixed into an upstream: what is under /held is answered once `released` is set."""

    def __init__(self, *args):
        self.released = threading.Event()
        super().__init__(*args)

    def respond(self, sock, request):
        if request["target"].startswith("/held") and not self.released.wait(60):
            return False
        return super().respond(sock, request)


class Upstream:
    """Listens on a port of its own from construction to stop(); one thread a connection."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=256)
        self.port = self.listener.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.lock = threading.Lock()
        self.requests = []
        self.socks = set()
        self.stopping = threading.Event()
        threading.Thread(target=self.accept, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.stop()

    def stop(self):
        self.stopping.set()
        self.listener.close()
        with self.lock:
            socks = list(self.socks)
        for sock in socks:
            try:
                sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def seen(self, marker):
        """The requests whose target contains marker."""
        with self.lock:
            return [r for r in self.requests if marker in r["target"]]

    def accept(self):
        while not self.stopping.is_set():
            try:
                sock, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(sock,), daemon=True).start()

    def serve(self, sock):
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with self.lock:
            self.socks.add(sock)
        reader = self.reader(sock)
        try:
            while True:
                request = reader.request()
                with self.lock:
                    self.requests.append(request)
                if not self.respond(sock, request):
                    return
        except (Gone, OSError, ValueError):
            pass
        finally:
            with self.lock:
                self.socks.discard(sock)
            sock.close()

    def reader(self, sock):
        return Reader(sock)

    def respond(self, sock, request):
        """False: the connection ends."""
        verb, _, rest = request["target"].split("?")[0].lstrip("/").partition("/")
        argument = rest.split("/")[0]
        body = b"" if request["method"] == "HEAD" else json.dumps(request).encode()
        if verb == "close":
            return False
        if verb == "garbage":
            sock.sendall(b"this is not HTTP\r\n\r\n")
            return False
        if verb == "cut":
            sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nhalf")
            return False
        if verb == "stream":
            self.stream(sock, int(argument))
            return True
        if verb == "delay":
            self.stopping.wait(int(argument) / 1000)
        sock.sendall(answer(int(argument) if verb == "status" else 200, body))
        return True

    def stream(self, sock, n):
        sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
        for i in range(n):
            chunk = b"data: %d\n\n" % i
            sock.sendall(b"%x\r\n%s\r\n" % (len(chunk), chunk))
            self.stopping.wait(0.02)
        sock.sendall(b"0\r\n\r\n")
