"""A TCP forwarder that keeps the beginning of what clients send: their ClientHellos, as they came."""

import select
import socket
import threading

KEPT = 20000


class Recorder:
    """Forwards 127.0.0.1:port to the target port, bytes as they are; .sent has what each client sent first, in order of connection."""

    def __init__(self, target):
        self.target, self.sent = target, []
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port = self.tls_port = self.listener.getsockname()[1]  # the names that an edge has
        threading.Thread(target=self.accept, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.listener.close()

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            kept = bytearray()
            self.sent.append(kept)
            threading.Thread(target=self.forward, args=(client, kept), daemon=True).start()

    def forward(self, client, kept):
        with client, socket.create_connection(("127.0.0.1", self.target)) as server:
            for sock in (client, server):
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            try:
                while True:
                    for sock in select.select([client, server], [], [])[0]:
                        data = sock.recv(65536)
                        if not data:
                            return
                        if sock is client and len(kept) < KEPT:
                            kept += data
                        (server if sock is client else client).sendall(data)
            except OSError:
                return
