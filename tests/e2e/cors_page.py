"""Both ends of a page that asks the edge from another origin: the server of the page, and an upstream with opinions of its own about CORS."""

import json
import queue
import ssl
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import websocket
from upstream import KeepingReader, Upstream, answer

PAGE = Path(__file__).with_name("pages") / "cors.html"


def headers_of(request):
    return {name.lower(): value for name, value in request["headers"]}


def fields(*headers):
    return b"".join(f"{name}: {value}\r\n".encode() for name, value in headers)


def redirect(target):
    """302 to what the query's `to` says."""
    return answer(302, b"", fields(("Location", parse_qs(urlsplit(target).query)["to"][0])))


class PageServer(Upstream):
    """One origin: its page, what that shall try, and what it found. pem: it speaks TLS.

    /hop?to=URL redirects there; so does /stray, for pages of every origin to read. /back tells them whose request it was."""

    def __init__(self, pem=None):
        self.pem, self.plan, self.next = pem, [], None
        self.readers, self.reports = {}, queue.Queue()
        super().__init__()
        self.origin = f"{'https' if pem else 'http'}://127.0.0.1:{self.port}"

    def serve(self, sock):
        if self.pem:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(self.pem)
            try:
                sock = context.wrap_socket(sock, server_side=True)
            except OSError:
                sock.close()  # a connection that the browser opened in advance
                return
        super().serve(sock)

    def reader(self, sock):
        self.readers[sock] = KeepingReader(sock)
        return self.readers[sock]

    def respond(self, sock, request):
        verb = urlsplit(request["target"]).path.lstrip("/")
        if verb == "page":
            page = PAGE.read_bytes()
            sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n" % len(page) + page)
        elif verb == "plan":
            sock.sendall(answer(200, json.dumps(self.plan).encode()))
        elif verb == "report":
            self.reports.put(json.loads(self.readers[sock].body))
            sock.sendall(answer(200, json.dumps(self.next).encode()))
        elif verb == "hop":
            sock.sendall(redirect(request["target"]))
        elif verb == "stray":
            sock.sendall(redirect(request["target"]).replace(b"Location", b"Access-Control-Allow-Origin: *\r\nLocation"))
        elif verb == "back":
            sock.sendall(answer(200, headers_of(request).get("origin", "none").encode(), fields(("Access-Control-Allow-Origin", "*"))))
        else:
            sock.sendall(answer(404, b""))
        return True


class CorsUpstream(Upstream):
    """The edge's upstream. The first segment of a path chooses the edge's CORS policy, the second how this answers; an answer's body is
    the request as it came, or its number where caches may keep it."""

    CONTRADICTION = fields(
        ("Access-Control-Allow-Origin", "*"),
        ("Access-Control-Allow-Origin", "https://other.example"),
        ("Access-Control-Allow-Origin", "*"),
        ("Access-Control-Allow-Credentials", "false"),
        ("Access-Control-Expose-Headers", "x-hidden"),
        ("Access-Control-Allow-Methods", "DELETE"),
    )
    # What an upstream says that answers all of CORS by itself.
    OPEN = fields(("Access-Control-Allow-Origin", "*"), ("Access-Control-Allow-Methods", "PUT"), ("Access-Control-Allow-Headers", "x-page"))
    EXTRA = {
        "contradict": CONTRADICTION,
        "open": OPEN,
        "login": fields(("Set-Cookie", "basket=full; Path=/; HttpOnly")),
        "cached": fields(("Cache-Control", "public, max-age=600")),
        "varied": fields(("Cache-Control", "public, max-age=600"), ("Vary", "Accept-Encoding"), ("Content-Language", "en")),
        "validated": fields(("Cache-Control", "no-cache"), ("ETag", '"one"')),
        "who": fields(("WWW-Authenticate", "Bearer")),
    }

    def __init__(self):
        self.readers = {}
        super().__init__()

    def reader(self, sock):
        self.readers[sock] = KeepingReader(sock)
        return self.readers[sock]

    def respond(self, sock, request):
        headers = headers_of(request)
        verb = urlsplit(request["target"]).path.split("/")[2]
        if verb == "slow":
            self.stopping.wait(60)
            return False
        if verb == "garbage":
            sock.sendall(b"this is not HTTP\r\n\r\n")
            return False
        if verb == "echo":
            self.echo(sock, headers)
            return False
        if verb == "redirect":
            sock.sendall(redirect(request["target"]))
        elif verb == "events":
            event = f"data: {headers.get('cookie', 'no cookie')}\n\n".encode()
            sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
            sock.sendall(b"%x\r\n%s\r\n0\r\n\r\n" % (len(event), event))
        elif verb == "validated" and headers.get("if-none-match"):
            sock.sendall(b'HTTP/1.1 304 Not Modified\r\nCache-Control: no-cache\r\nETag: "one"\r\n\r\n')
        else:
            self.plain(sock, request, verb)
        return True

    def plain(self, sock, request, verb):
        numbered = verb in ("cached", "varied", "validated")
        number = sum(r["method"] != "OPTIONS" for r in self.seen(request["target"]))
        body = json.dumps(number if numbered else request).encode()
        extra = self.EXTRA.get(verb, b"") + fields(("X-Shown", "shown"), ("X-Hidden", "hidden"), ("Timing-Allow-Origin", "*"))
        whole = answer(401 if verb == "who" else 200, body, extra)
        sock.sendall(whole[: -len(body)] if request["method"] == "HEAD" else whole)

    def echo(self, sock, headers):
        proof = websocket.accept_of(headers["sec-websocket-key"]).encode()
        sock.sendall(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: " + proof + b"\r\n\r\n")
        frames = websocket.Socket(self.readers[sock], is_client=False)
        while (frame := frames.receive()).opcode != websocket.CLOSE:
            frames.send(frame.opcode, frame.payload)
        frames.send(websocket.CLOSE, frame.payload)
