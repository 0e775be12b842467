"""An upstream that fails in more ways than it answers: refuses, lets connections wait, resets, speaks TLS badly.

Beside the paths of upstream.py:
  /reset          resets the connection instead of answering
  /large          answers with a header larger than HAProxy's buffer
"""

import contextlib
import select
import socket
import ssl
import struct
import threading

from edge import Ports
from upstream import Upstream

LARGE = 128 * 1024


class FaultyUpstream(Upstream):
    """Its port stays reserved while nobody listens there."""

    def __init__(self):
        super().__init__()
        self.close_listener()
        self.ports = Ports()
        self.port = self.ports.first
        self.url = f"http://127.0.0.1:{self.port}"
        self.listen()

    def stop(self):
        super().stop()
        self.ports.close()

    def end_kept(self):
        """Closes every connection."""
        with self.lock:
            socks = list(self.socks)
        for sock in socks:
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)

    def close_listener(self):
        """accept() in another thread would keep the socket of a mere close() alive."""
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()

    def listen(self):
        self.listener = socket.create_server(("127.0.0.1", self.port), backlog=256, reuse_port=True)
        threading.Thread(target=self.accept, daemon=True).start()

    @contextlib.contextmanager
    def refusing(self):
        self.close_listener()
        try:
            yield
        finally:
            self.listen()

    @contextlib.contextmanager
    def blackholed(self):
        """A full queue of connections that nobody accepts: the kernel then drops what would begin another one."""
        self.close_listener()
        with contextlib.ExitStack() as held:
            held.enter_context(socket.create_server(("127.0.0.1", self.port), backlog=0, reuse_port=True))
            connected = True
            while connected:
                sock = held.enter_context(socket.socket())
                sock.setblocking(False)
                sock.connect_ex(("127.0.0.1", self.port))
                connected = select.select([], [sock], [], 0.3)[1]
            try:
                yield
            finally:
                held.close()
                self.listen()

    def respond(self, sock, request):
        if request["target"].startswith("/reset"):
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            return False
        if request["target"].startswith("/large"):
            sock.sendall(b"HTTP/1.1 200 OK\r\nX-Large: " + b"v" * LARGE + b"\r\nContent-Length: 0\r\n\r\n")
            return False
        return super().respond(sock, request)


class TlsUpstream(FaultyUpstream):
    """Speaks TLS with the certificate of a PEM file; answers in the clear when pem is None."""

    def __init__(self, pem):
        self.pem = pem
        super().__init__()
        self.url = f"https://127.0.0.1:{self.port}"

    @contextlib.contextmanager
    def using(self, pem):
        self.pem, before = pem, self.pem
        try:
            yield
        finally:
            self.pem = before

    def serve(self, sock):
        try:
            if self.pem is None:
                with sock:
                    sock.recv(65536)
                    sock.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
                return
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(self.pem)
            sock = context.wrap_socket(sock, server_side=True)
        except OSError:
            sock.close()
            return
        super().serve(sock)
