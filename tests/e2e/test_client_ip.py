"""The examples of schemas/reference/client-ip.md: an edge with these settings believes its front, nobody else, and never shows the secret."""

import itertools
import re
import socket
import threading
import types

import pytest

from clients import fetch
from edge import ROOT, Edge
from policies import header_rule, policy

PAGE = ROOT / "schemas/reference/client-ip.md"
SECRET = "not-to-be-seen-anywhere-4f2a"
SECRET_HEADER = ("X-Ingress-Secret", SECRET)
CLIENT = "203.0.113.7"
JA4 = "t13d1516h2_8daaf6152771_02713d6af862"
SERIAL = itertools.count(1)
# What the front of an example sends for a client, what rules know by it, and what reaches the upstream. direct and l4 have no such headers.
FRONTS = {
    "cloudfront": {
        "headers": [
            ("CloudFront-Viewer-Address", f"{CLIENT}:4711"),
            ("CloudFront-Forwarded-Proto", "https"),
            ("CloudFront-Viewer-Http-Version", "2.0"),
            ("CloudFront-Viewer-Country", "DE"),
            ("CloudFront-Viewer-ASN", "64500"),
            ("CloudFront-Viewer-JA4-Fingerprint", JA4),
            SECRET_HEADER,
        ],
        "rule": f'ssl eq true and http.request.version eq "2.0" and ip.src.country eq "DE" and ip.src.asnum eq 64500 and tls.client.ja4 eq "{JA4}"',
        "upstream": {"x-forwarded-proto": "https", "x-edge-geo-country": "DE", "x-edge-geo-asn": "64500", "x-edge-tls-ja4": JA4},
    },
    "cloudflare": {
        "headers": [("CF-Connecting-IP", CLIENT), ("X-Forwarded-Proto", "https"), ("CF-IPCountry", "DE"), ("CF-IPContinent", "EU"), SECRET_HEADER],
        "rule": 'ssl eq true and ip.src.country eq "DE" and ip.src.continent eq "EU"',
        "upstream": {"x-forwarded-proto": "https", "x-edge-geo-country": "DE", "x-edge-geo-continent": "EU"},
    },
    "gcp": {
        "headers": [
            ("X-Client-IP", CLIENT),
            ("X-Client-Encrypted", "true"),
            ("X-Client-Protocol", "HTTP/2"),
            ("X-Client-Region", "DE"),
            SECRET_HEADER,
        ],
        "rule": 'ssl eq true and http.request.version eq "2.0" and ip.src.country eq "DE"',
        "upstream": {"x-forwarded-proto": "https", "x-edge-geo-country": "DE"},
    },
    "xff": {
        "headers": [("X-Forwarded-For", f"192.0.2.66, {CLIENT}, 127.0.0.1"), ("X-Forwarded-Proto", "https")],
        "rule": "ssl eq true",
        "upstream": {"x-forwarded-proto": "https"},
    },
}
FORGED = [header for front in FRONTS.values() for header in front["headers"] if header != SECRET_HEADER]
WITH_SECRET = [name for name, front in FRONTS.items() if SECRET_HEADER in front["headers"]]


def settings_of(name):
    """The example's settings, with the front at 127.0.0.1; what Edge gives by itself is left out."""
    block = re.search(rf"^```env {name}\n(.*?)^```$", PAGE.read_text(), re.M | re.S)[1]
    settings = dict(line.split("=", 1) for line in block.splitlines())
    filled = {"TRUSTED_PROXIES": "127.0.0.1", "EDGE_PROXY_PROTOCOL": "127.0.0.1", "INGRESS_SECRET": SECRET}
    own = ("EDGE_LISTEN", "EDGE_TLS_LISTEN", "EDGE_TLS_CERT")
    return {key: filled.get(key, value) for key, value in settings.items() if key not in own}


class Balancer:
    """Forwards TCP connections to a port of the edge, each behind a PROXY protocol header that names CLIENT."""

    def __init__(self, port):
        self.target = port
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                near, _ = self.listener.accept()
            except OSError:
                return
            far = socket.create_connection(("127.0.0.1", self.target))
            far.sendall(f"PROXY TCP4 {CLIENT} 127.0.0.1 4711 {self.target}\r\n".encode())
            for pair in ((near, far), (far, near)):
                threading.Thread(target=self.pump, args=pair, daemon=True).start()

    @staticmethod
    def pump(source, sink):
        try:
            while data := source.recv(65536):
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            pass


@pytest.fixture(scope="module", params=FRONTS)
def front(request, upstream):
    """(name of an example, an edge with its settings)."""
    rules = [header_rule("known", FRONTS[request.param]["rule"], ("X-Rule", "held"))]
    with Edge(policy(headers=rules), upstream.url, settings_of(request.param)) as edge:
        yield request.param, edge


def sent(edge, upstream, headers, protocol):
    """The answer's status and what the upstream got, by name; None when it got nothing."""
    target = f"/client-ip/{next(SERIAL)}"
    response = fetch(edge, "GET", target, headers, protocol=protocol)
    seen = upstream.seen(target)
    assert len(seen) <= 1
    return response.status, {name.lower(): value for name, value in seen[0]["headers"]} if seen else None


@pytest.mark.parametrize("protocol", ["h1", "h2"])
def test_the_client_is_whom_the_front_names(front, upstream, protocol):
    name, edge = front
    status, got = sent(edge, upstream, FRONTS[name]["headers"], protocol)
    assert status == 200
    want = {"x-edge-client-ip": CLIENT, "x-forwarded-for": CLIENT, "x-rule": "held", **FRONTS[name]["upstream"]}
    assert {header: got.get(header) for header in want} == want


@pytest.mark.parametrize("protocol", ["h1", "h2"])
def test_no_header_of_the_front_reaches_the_upstream(front, upstream, protocol):
    name, edge = front
    _, got = sent(edge, upstream, FRONTS[name]["headers"], protocol)
    written_by_edge = {"x-forwarded-for", "x-forwarded-proto"}
    assert not {header.lower() for header, _ in FRONTS[name]["headers"]} - written_by_edge & set(got)
    assert SECRET not in str(got)


@pytest.mark.parametrize("protocol", ["h1", "h2"])
def test_a_request_without_the_fronts_headers_is_refused_and_counted(front, upstream, protocol):
    name, edge = front
    reason = "secret" if name in WITH_SECRET else "missing"
    before = edge.metric("edge_identity_refused_total", reason=reason)
    assert sent(edge, upstream, [], protocol) == (400, None)
    assert edge.metric("edge_identity_refused_total", reason=reason) == before + 1


@pytest.mark.parametrize("protocol", ["h1", "h2"])
@pytest.mark.parametrize("name", FRONTS)
def test_a_peer_that_is_not_trusted_is_refused_whatever_it_sends(name, upstream, protocol):
    with Edge(policy(), upstream.url, {**settings_of(name), "TRUSTED_PROXIES": "192.0.2.0/24"}) as edge:
        assert sent(edge, upstream, FRONTS[name]["headers"], protocol) == (400, None)
        assert edge.metric("edge_identity_refused_total", reason="untrusted_peer") == 1
        assert edge.record(edge__decision="identity")["client.address"] == "127.0.0.1"


@pytest.mark.parametrize("protocol", ["h1", "h2", "tls-h1", "tls-h2"])
@pytest.mark.parametrize("name, client", [("direct", "127.0.0.1"), ("l4", CLIENT)])
def test_where_no_header_is_read_none_says_anything(name, client, upstream, cert, protocol):
    rules = [header_rule("ssl", "ssl eq true", ("X-Rule", "held"))]
    with Edge(policy(headers=rules), upstream.url, settings_of(name), cert=cert) as edge:
        reached = edge
        if name == "l4":
            reached = types.SimpleNamespace(port=Balancer(edge.port).port, tls_port=Balancer(edge.tls_port).port)
        status, got = sent(reached, upstream, FORGED, protocol)
        tls = protocol.startswith("tls")
        assert status == 200
        assert (got["x-edge-client-ip"], got["x-forwarded-for"]) == (client, client)
        assert (got["x-forwarded-proto"], got.get("x-rule")) == (("https", "held") if tls else ("http", None))
        assert not [header for header in got if header.startswith("x-edge-geo")]
        ja4 = got.get("x-edge-tls-ja4")  # of the edge's own handshake, if any
        assert ja4 != JA4 and (tls or ja4 is None)


@pytest.mark.parametrize("name", WITH_SECRET)
def test_the_secret_is_shown_nowhere(name, upstream):
    with Edge(policy(), upstream.url, settings_of(name)) as edge:
        for protocol in ("h1", "h2"):
            assert sent(edge, upstream, FRONTS[name]["headers"], protocol)[0] == 200
            assert sent(edge, upstream, [("X-Ingress-Secret", SECRET[:-1])], protocol) == (400, None)
        edge.wait_lines(4, msg="access")
        shown = [edge.internal(path)[1] for path in ("/metrics", "/readyz", "/livez")]
        agents = set(edge.agent_pids().values())
        for process in edge.processes():
            shown += process.argv()
            if process.pid not in agents and "haproxy" in process.argv()[0]:
                shown.append(str(process.environ()))
    shown += [line["text"] for line in edge.lines] + [str(upstream.seen("/client-ip/"))]
    assert not [text for text in shown if SECRET[:-1] in text]
