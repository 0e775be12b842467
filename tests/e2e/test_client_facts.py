"""What a trusted front says about a client, whatever form it says it in, and what is no such form; secrets in exchange; warnings of such settings."""

import itertools
import socket

import pytest

from clients import fetch
from edge import Edge
from policies import header_rule, policy

CLIENT = "203.0.113.7"
OLD, NEW = "the-old-secret-8a61", "the-new-secret-52fb"
JA3, JA4 = "e7d705a3286e19ea42f587b344ee6865", "t13d1516h2_8daaf6152771_02713d6af862"
SERIAL = itertools.count(1)
FIELDS = {
    "ssl": "H-Ssl",
    "http_version": "H-Version",
    "country": "H-Country",
    "continent": "H-Continent",
    "asnum": "H-Asnum",
    "ja3": "H-Ja3",
    "ja4": "H-Ja4",
    "cert_verified": "H-Verified",
    "cert_subject": "H-Subject",
}
SETTINGS = {
    "CLIENT_IP_SOURCE": "xff",
    "TRUSTED_PROXIES": "127.0.0.1, 10.0.0.0/8",
    "VIEWER_HEADERS": ",".join(f"{field}={header}" for field, header in FIELDS.items()),
    "INGRESS_SECRET_HEADER": "X-Ingress-Secret",
    "INGRESS_SECRET": f"{OLD},{NEW}",
}
RULES = {
    "X-Version": 'http.request.version eq "2.0"',
    "X-Ja3": f'tls.client.ja3 eq "{JA3}"',
    "X-Verified": "tls.client.cert.verified eq true",
    "X-Subject": 'tls.client.cert.subject eq "CN=a"',
}
EMPTY = {"x-forwarded-proto": "http"}
# What the front adds to a client's address, and what of it the upstream sees and rules find.
VIEWERS = {
    "nothing": ([], EMPTY),
    "https": ([("H-Ssl", "HTTPS")], {"x-forwarded-proto": "https"}),
    "true": ([("H-Ssl", "true")], {"x-forwarded-proto": "https"}),
    "ssl twice": ([("H-Ssl", "https"), ("H-Ssl", "https")], EMPTY),
    "version": ([("H-Version", "HTTP/2")], EMPTY | {"x-version": "held"}),
    "no version": ([("H-Version", "h2")], EMPTY),
    "country": ([("H-Country", "de"), ("H-Continent", "eu"), ("H-Asnum", "AS64500")],
                EMPTY | {"x-edge-geo-country": "DE", "x-edge-geo-continent": "EU", "x-edge-geo-asn": "64500"}),
    "unknown country": ([("H-Country", "XX"), ("H-Continent", "XX"), ("H-Asnum", "0")], EMPTY),
    "Tor": ([("H-Country", "T1")], EMPTY),
    "country twice": ([("H-Country", "DE"), ("H-Country", "FR")], EMPTY),
    "fingerprints": ([("H-Ssl", "https"), ("H-Ja3", JA3), ("H-Ja4", JA4)], {"x-forwarded-proto": "https", "x-ja3": "held", "x-edge-tls-ja4": JA4}),
    "fingerprints in clear": ([("H-Ssl", "http"), ("H-Ja3", JA3), ("H-Ja4", JA4)], EMPTY),
    "malformed fingerprints": ([("H-Ssl", "https"), ("H-Ja3", JA3.upper()), ("H-Ja4", JA4 + "0")], {"x-forwarded-proto": "https"}),
    "certificate": ([("H-Verified", "1"), ("H-Subject", "CN=a")], EMPTY | {"x-verified": "held", "x-subject": "held"}),
    "unverified": ([("H-Verified", "no")], EMPTY),
}
# Lines of X-Forwarded-For, and who that is: None is refused, for the reason behind.
ADDRESSES = {
    "one": ([CLIENT], CLIENT, None),
    "invented": ([f"192.0.2.66, {CLIENT}"], CLIENT, None),
    "invented proxies": ([f"10.0.0.9, {CLIENT}, 10.0.0.1"], CLIENT, None),
    "nonsense left of the client": ([f"::::, x, {CLIENT}, 10.0.0.1"], CLIENT, None),
    "lines": (["192.0.2.66", CLIENT, "10.0.0.2, 10.0.0.1"], CLIENT, None),
    "ports": ([f"{CLIENT}:4711, 10.0.0.1:80"], CLIENT, None),
    "IPv6": (["[2001:db8::7]:443, 10.0.0.1"], "2001:db8::7", None),
    "IPv6 without brackets": (["2001:db8::1:443"], "2001:db8::1:443", None),
    "mapped": ([f"::ffff:{CLIENT}"], CLIENT, None),
    "200 proxies": ([f"192.0.2.66, {CLIENT}" + ", 10.0.0.1" * 200], CLIENT, None),
    "zone": (["fe80::1%eth0"], None, "malformed"),
    "unknown": (["unknown, 10.0.0.1"], None, "malformed"),
    "empty": ([" , ,"], None, "missing"),
    "none": ([], None, "missing"),
}
SECRETS = {
    "old": ([OLD], True),
    "new": ([NEW], True),
    "none": ([], False),
    "wrong": ([OLD[:-1] + "2"], False),
    "shorter": ([OLD[:-1]], False),
    "longer": ([OLD + "1"], False),
    "both": ([f"{OLD},{NEW}"], False),
    "twice": ([OLD, OLD], False),
}


@pytest.fixture(scope="module")
def edge(upstream):
    rules = [header_rule(name.lower(), text, (name, "held")) for name, text in RULES.items()]
    with Edge(policy(headers=rules), upstream.url, SETTINGS) as edge:
        yield edge


def sent(edge, upstream, headers, protocol):
    """The answer's status and what the upstream got, by name; None when it got nothing."""
    target = f"/client-facts/{next(SERIAL)}"
    status = fetch(edge, "GET", target, headers, protocol=protocol).status
    seen = upstream.seen(target)
    return status, {name.lower(): value for name, value in seen[0]["headers"]} if seen else None


@pytest.mark.parametrize("protocol", ["h1", "h2"])
@pytest.mark.parametrize("case", VIEWERS)
def test_what_the_front_says_of_a_connection_has_one_form(edge, upstream, case, protocol):
    headers, want = VIEWERS[case]
    status, got = sent(edge, upstream, [("X-Forwarded-For", CLIENT), ("X-Ingress-Secret", OLD), *headers], protocol)
    assert status == 200
    edges_own = [name for name in got if name.startswith(("x-edge-geo", "x-edge-tls", "h-")) or name in {rule.lower() for rule in RULES}]
    assert {name: got[name] for name in [*edges_own, "x-forwarded-proto"]} == want


@pytest.mark.parametrize("protocol", ["h1", "h2"])
@pytest.mark.parametrize("case", ADDRESSES)
def test_the_client_is_the_last_whom_no_trusted_proxy_is(edge, upstream, case, protocol):
    lines, client, reason = ADDRESSES[case]
    before = edge.metric("edge_identity_refused_total", reason=reason) if reason else 0
    status, got = sent(edge, upstream, [*(("X-Forwarded-For", line) for line in lines), ("X-Ingress-Secret", NEW)], protocol)
    assert status == (200 if client else 400)
    assert client is None or (got["x-edge-client-ip"], got["x-forwarded-for"]) == (client, client)
    assert reason is None or edge.metric("edge_identity_refused_total", reason=reason) == before + 1


@pytest.mark.parametrize("protocol", ["h1", "h2"])
@pytest.mark.parametrize("case", SECRETS)
def test_each_configured_secret_is_let_in_and_no_other(edge, upstream, case, protocol):
    values, let_in = SECRETS[case]
    status, got = sent(edge, upstream, [("X-Forwarded-For", CLIENT), *(("X-Ingress-Secret", value) for value in values)], protocol)
    assert status == (200 if let_in else 400)
    assert (got is not None) == let_in
    assert "x-ingress-secret" not in (got or {})


@pytest.mark.parametrize("protocol", ["h1", "h2"])
def test_an_ipv4_peer_is_itself_on_a_socket_of_ipv6(upstream, protocol):
    with socket.socket(socket.AF_INET6) as reserved:
        for option in (socket.SO_REUSEADDR, socket.SO_REUSEPORT):
            reserved.setsockopt(socket.SOL_SOCKET, option, 1)
        reserved.bind(("::", 0))
        port = reserved.getsockname()[1]
        settings = {"CLIENT_IP_SOURCE": "xff", "TRUSTED_PROXIES": "127.0.0.1", "EDGE_LISTEN": f"[::]:{port}"}
        with Edge(policy(), upstream.url, settings) as edge:
            edge.port = port
            status, got = sent(edge, upstream, [("X-Forwarded-For", CLIENT)], protocol)
    assert status == 200 and got["x-edge-client-ip"] == CLIENT


def test_settings_that_cant_be_meant_are_said_once(upstream):
    settings = {"CLIENT_IP_SOURCE": "xff", "INGRESS_SECRET_HEADER": "X-Ingress-Secret", "INGRESS_SECRET": f"hunter2,{NEW}", "EDGE_AGENTS": "2"}
    with Edge(policy(), upstream.url, settings) as edge:
        pass
    said = [line["message"] for line in edge.matching(event="setting")]
    assert [text.split(":")[0] for text in said] == ["INGRESS_SECRET", "TRUSTED_PROXIES"]
    assert not [line["text"] for line in edge.lines if "hunter2" in line["text"]]
