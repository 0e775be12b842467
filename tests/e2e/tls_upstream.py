"""An https upstream that picks its certificate by the server name asked for (SNI) and remembers what each connection asked for."""

import contextlib
import socket
import ssl

from faulty_upstream import FaultyUpstream
from fingerprints import Hello

SERVER_NAME, SESSION_TICKET, PRE_SHARED_KEY = 0, 35, 41
PEEK_MAX = 16 * 1024


def client_hello(data):
    """What the first record of a connection says: {"sni", "alpn": [names], "offers_session"}; None while it is cut."""
    if len(data) < 5 or len(data) < 5 + int.from_bytes(data[3:5], "big"):
        return None
    hello = Hello(data)
    names = hello.body(SERVER_NAME)
    return {
        "sni": names[5:].decode() if names else None,
        "alpn": [name.decode() for name in hello.protocols()],
        "offers_session": hello.body(PRE_SHARED_KEY) is not None or bool(hello.body(SESSION_TICKET)),
    }


def peek_hello(sock):
    """The ClientHello, left where it is; None when the peer closes before it is whole."""
    n = 0
    while True:
        data = sock.recv(PEEK_MAX, socket.MSG_PEEK)
        if found := client_hello(data):
            return found
        if len(data) == n:
            return None
        n = len(data)


class NamedUpstream(FaultyUpstream):
    """certificates: {server name: PEM file}; None is the name of those that ask for none or for another. An entry may be exchanged
    while it runs. alpn: what it speaks, best first. Requests carry "sni" and "connection" (a number) in record and answer."""

    def __init__(self, certificates, alpn=("http/1.1",)):
        self.certificates, self.alpn = certificates, list(alpn)
        self.contexts, self.connections, self.by_sock = {}, [], {}
        self.first = self.context_of(None)
        self.first.sni_callback = self.choose
        super().__init__()
        self.url = f"https://127.0.0.1:{self.port}"

    def context_of(self, name):
        """Kept for as long as the certificate is the same, so that sessions can be resumed."""
        pem = self.certificates.get(name, self.certificates[None])
        if pem not in self.contexts:
            self.contexts[pem] = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self.contexts[pem].load_cert_chain(pem)
            self.contexts[pem].set_alpn_protocols(self.alpn)
        return self.contexts[pem]

    def choose(self, secure, name, _):
        secure.context = self.context_of(name)

    def asked_for(self, name):
        """The connections that asked for this server name."""
        with self.lock:
            return [c for c in self.connections if c["sni"] == name]

    def handshake(self, sock):
        """The TLS socket; None when there is none to be had."""
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        hello = peek_hello(sock)
        if hello is None:
            return None
        with self.lock:
            connection = {**hello, "number": len(self.connections), "resumed": None}
            self.connections.append(connection)
        with contextlib.suppress(OSError):
            secure = self.first.wrap_socket(sock, server_side=True)
            connection["resumed"] = secure.session_reused
            self.by_sock[secure] = connection
            return secure
        return None

    def serve(self, sock):
        secure = self.handshake(sock)
        if secure is None:
            sock.close()
            return
        self.serve_secure(secure)

    def serve_secure(self, sock):
        super().serve(sock)

    def respond(self, sock, request):
        connection = self.by_sock[sock]
        request |= {"sni": connection["sni"], "connection": connection["number"]}
        return super().respond(sock, request)
