"""A Valkey for tests, and things that only pretend to be one: a scripted server, and a wire that can be cut without a word."""

import hashlib
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
from pathlib import Path

import redis

from edge import ROOT, Ports, poll

SERVER = os.environ.get("EDGE_VALKEY", str(ROOT / ".deps/valkey-8/valkey-server"))


class Valkey:
    """A server of its own, on a loopback port and on a UNIX socket, without persistence."""

    def __init__(self, *arguments):
        self.dir = Path(tempfile.mkdtemp(prefix="edge-valkey-"))
        self.socket = str(self.dir / "valkey.sock")
        self.ports = Ports()
        self.port, self.arguments, self.process = self.ports.first, arguments, None

    def __enter__(self):
        return self.start()

    def __exit__(self, *unused):
        self.stop()
        self.ports.close()
        shutil.rmtree(self.dir, ignore_errors=True)

    def start(self):
        own = ["--port", str(self.port), "--bind", "127.0.0.1", "--unixsocket", self.socket, "--dir", str(self.dir)]
        self.process = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", SERVER, *own, "--save", "", "--appendonly", "no", *self.arguments],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        )  # fmt: skip
        poll(self.listens, "Valkey listens")
        return self

    def listens(self):
        assert self.process.poll() is None, "Valkey ended"
        with socket.create_connection(("127.0.0.1", self.port), 5):
            return True

    def stop(self, number=signal.SIGKILL):
        if self.process is None:
            return
        self.signal(signal.SIGCONT)
        self.signal(number)
        self.process.wait(20)
        self.process = None

    def signal(self, number):
        self.process.send_signal(number)

    def url(self, user_info="", db=0, options=""):
        return f"redis://{user_info}127.0.0.1:{self.port}/{db}{options}"

    def unix_url(self):
        return f"unix://{self.socket}"

    def client(self, raw=False, **more):
        return redis.Redis(port=self.port, decode_responses=not raw, **more)

    def keys(self):
        with self.client() as c:
            return sorted(c.scan_iter("rl:*"))


class Server:
    """Accepts on a loopback port and hands each connection to serve(sock), on a thread of its own."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port = self.listener.getsockname()[1]
        self.url = f"redis://127.0.0.1:{self.port}"
        self.socks, self.stopping = [], threading.Event()
        threading.Thread(target=self.accept, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.stopping.set()
        self.listener.close()
        for sock in self.socks:
            sock.close()

    def accept(self):
        while not self.stopping.is_set():
            try:
                sock, _ = self.listener.accept()
            except OSError:
                return
            self.socks.append(sock)
            threading.Thread(target=self.guarded, args=(sock,), daemon=True).start()

    def guarded(self, sock):
        try:
            self.serve(sock)
        except (OSError, ValueError):
            pass
        finally:
            sock.close()


class FakeValkey(Server):
    """Speaks RESP: answers EVALSHA and EVAL with the bytes of `answer` (None: closes instead), anything else with what a
    healthy server would."""

    def __init__(self, answer):
        self.answer, self.n_calls = answer, 0
        super().__init__()

    def serve(self, sock):
        with sock.makefile("rb") as lines:
            while header := lines.readline():
                words = []
                for _ in range(int(header[1:])):
                    size = int(lines.readline()[1:])
                    words.append(lines.read(size + 2)[:-2])
                command = words[0].upper()
                if command in (b"EVALSHA", b"EVAL"):
                    self.n_calls += 1
                    if self.answer is None:
                        return
                    sock.sendall(self.answer)
                elif command == b"SCRIPT":
                    sock.sendall(b"$40\r\n%s\r\n" % hashlib.sha1(words[2]).hexdigest().encode())
                else:
                    sock.sendall(b"+OK\r\n")


class Wire(Server):
    """Passes bytes to a Valkey until it is cut: from then on nothing arrives in either direction, and nobody is told, as
    with dropped packets; new connections are taken and hang the same way."""

    def __init__(self, valkey):
        self.target = valkey.port
        self.open = threading.Event()
        self.open.set()
        super().__init__()

    def cut(self):
        self.open.clear()

    def mend(self):
        self.open.set()

    def serve(self, sock):
        with socket.create_connection(("127.0.0.1", self.target)) as other:
            back = threading.Thread(target=self.guarded_pump, args=(other, sock), daemon=True)
            back.start()
            self.pump(sock, other)
            other.shutdown(socket.SHUT_RDWR)
            back.join()

    def guarded_pump(self, source, sink):
        try:
            self.pump(source, sink)
            sink.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass

    def pump(self, source, sink):
        while data := source.recv(65536):
            if not self.open.is_set():
                self.stopping.wait()
                return
            sink.sendall(data)


class Unreachable:
    """A port whose connects get no answer at all: a listener whose queue is full."""

    def __enter__(self):
        self.listener = socket.socket()
        self.listener.bind(("127.0.0.1", 0))
        self.listener.listen(0)
        self.port = self.listener.getsockname()[1]
        self.url = f"redis://127.0.0.1:{self.port}"
        self.fill = []
        for _ in range(4):
            sock = socket.socket()
            sock.setblocking(False)
            sock.connect_ex(("127.0.0.1", self.port))
            self.fill.append(sock)
        return self

    def __exit__(self, *unused):
        for sock in [*self.fill, self.listener]:
            sock.close()
