"""What tests of CORS share: a policy, an upstream with an opinion of its own, and how a response's headers are read."""

from clients import fetch
from faulty_upstream import FaultyUpstream
from policies import config_rule, limit_rule, policy, under
from upstream import answer
from websocket import accept_of

SITE, OTHER, EVIL = "https://app.example", "http://localhost:3000", "https://evil.example"
ORIGIN = [("Origin", SITE)]
LISTED = {
    "origins": [SITE, OTHER],
    "methods": ["PUT", "DELETE"],
    "request_headers": ["Content-Type", "X-Token"],
    "exposed_headers": ["X-Request-Id", "RateLimit"],
    "credentials": True,
    "max_age": "10m",
}
ALLOWED = {
    "access-control-allow-origin": [SITE],
    "access-control-allow-credentials": ["true"],
    "access-control-expose-headers": ["x-request-id, ratelimit"],
}
PREFLIGHT = {
    "access-control-allow-origin": [SITE],
    "access-control-allow-credentials": ["true"],
    "access-control-allow-methods": ["PUT, DELETE"],
    "access-control-allow-headers": ["content-type, x-token"],
    "access-control-max-age": ["600"],
}
OWN = {"cache-control": "no-store", "x-content-type-options": "nosniff"}

POLICY = policy(
    config=[
        config_rule("web", "true", cors_policy="listed"),
        config_rule("single", under("/single/"), cors_policy="single"),
        config_rule("any", under("/any/"), cors_policy="any"),
        config_rule("none", under("/none/"), cors_policy="none"),
        config_rule("shut", under("/block/"), block="block"),
        config_rule("seen", under("/logged/"), block="log"),
        config_rule("counted", under("/limited/"), ratelimit_headers=True),
        config_rule("slow", under("/delay/"), upstream_timeout="200ms"),
        config_rule("small", under("/small/"), body_limit=10),
    ],
    limits=[
        limit_rule("once", under("/limited/"), limit=1, period="24h", burst=1),
        limit_rule("one-each", under("/unspent/"), limit=2, period="24h", burst=2),
    ],
)
POLICY["global"]["cors_policies"] = {
    "listed": LISTED,
    "single": {"origins": [SITE], "credentials": True},
    "any": {"origins": ["*"], "methods": ["*"], "request_headers": ["*", "Authorization"], "exposed_headers": ["*"]},
}
POLICY["global"]["defaults"]["body_read_timeout"] = "1s"

UPSTREAMS_OWN = (
    b"Access-Control-Allow-Origin: *\r\nAccess-Control-Allow-Origin: https://old.example\r\nACCESS-CONTROL-EXPOSE-HEADERS: x-old\r\n"
    b"Access-Control-Allow-Private-Network: true\r\nAccess_Control_Allow_Origin: *\r\nVary: Accept-Encoding\r\n"
)


class Opinionated(FaultyUpstream):
    """Beside what others answer: /own/... has CORS headers of its own, /events streams, /socket switches protocols, /full has a large body."""

    def respond(self, sock, request):
        if "/own/" in request["target"]:
            sock.sendall(answer(200, b"" if request["method"] == "HEAD" else b"{}", UPSTREAMS_OWN))
        elif request["target"].startswith("/full/"):
            sock.sendall(answer(200, b"x" * 300000))
        elif request["target"].startswith("/events/"):
            sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n" + UPSTREAMS_OWN + b"\r\ndata: 1\n\n")
            return False
        elif request["target"].startswith("/socket/"):
            key = next(v for n, v in request["headers"] if n.lower() == "sec-websocket-key")
            head = "HTTP/1.1 101 Switching\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: %s\r\n" % accept_of(key)
            sock.sendall(head.encode() + UPSTREAMS_OWN + b"\r\n")
            return False
        else:
            return super().respond(sock, request)
        return True


def cors(response):
    """All Access-Control-* of a response: name to values."""
    found = {}
    for name, value in response.headers:
        if name.startswith("access-control-"):
            found.setdefault(name, []).append(value)
    return found


def vary(response):
    return [item.strip().lower() for value in response.all("vary") for item in value.split(",")]


def preflight(edge, target, protocol, origin=SITE, method="PUT", headers=None, extra=()):
    asked = [("Origin", origin)] + ([("Access-Control-Request-Method", method)] if method else [])
    asked += [("Access-Control-Request-Headers", headers)] if headers is not None else []
    return fetch(edge, "OPTIONS", target, [*asked, *extra], protocol=protocol)


def is_answer(response):
    return (response.status, response.body, response.get("content-type"), response.get("content-length")) == (204, b"", None, "0")
