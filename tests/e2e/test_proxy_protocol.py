"""Behind a balancer that opens each connection with a PROXY protocol header: whom it names is the peer, and nobody else is heard."""

import ipaddress

import pytest

from clients import PROTOCOLS, Closed, Http1, fetch
from doctor import holds, wrong
from edge import Edge, poll
from policies import config_rule, policy, under
from proxy_header import LOCAL, PROXY, v1, v2
from shapes import managed

POLICY = policy(config=[config_rule("not-them", f'{under("/rules/")} and ip.src in {{203.0.113.0/24 2001:db8:bad::/48}}', block="block")])
BALANCERS = "127.0.0.1,2001:db8:1::/48"
NAMED = {
    "v1-ipv4": (v1("203.0.113.9"), "203.0.113.9"),
    "v1-ipv6": (v1("2001:db8:bad::9"), "2001:db8:bad::9"),
    "v2-ipv4": (v2("203.0.113.9"), "203.0.113.9"),
    "v2-ipv6": (v2("2001:db8:bad::9"), "2001:db8:bad::9"),
    "v2-more": (v2("203.0.113.9", extra=b"\x04\x00\x03abc"), "203.0.113.9"),
    "v2-mapped": (v2("::ffff:203.0.113.9"), "203.0.113.9"),
}


@pytest.fixture(scope="module")
def edge(upstream, cert):
    """The balancer is the client's only way: there are no headers to trust."""
    with Edge(POLICY, upstream.url, settings={"EDGE_PROXY_PROTOCOL": BALANCERS}, cert=cert) as e:
        yield e


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("named", NAMED)
def test_whom_the_balancer_names_is_the_client(edge, named, protocol):
    header, address = NAMED[named]
    target = f"/named/{named}/{protocol}"
    response = fetch(edge, "GET", target, protocol=protocol, peer={"first": header})
    assert response.status == 200
    assert dict(managed(response.json()))["x-edge-client-ip"] == dict(managed(response.json()))["x-forwarded-for"] == address
    assert edge.record_of(target)["client.address"] == address
    assert fetch(edge, "GET", "/rules/a", protocol=protocol, peer={"first": header}).status == 403


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("header", [b"PROXY UNKNOWN\r\n", v2(None, LOCAL)], ids=["v1-unknown", "v2-local"])
def test_a_connection_of_the_balancers_own_has_its_address(edge, header, protocol):
    response = fetch(edge, "GET", "/local", protocol=protocol, peer={"first": header})
    assert (response.status, dict(managed(response.json()))["x-edge-client-ip"]) == (200, "127.0.0.1")


BROKEN = {
    "none": b"",
    "cut": b"PROXY TCP4 203.0.113.9\r\n",
    "other-family": b"PROXY TCP4 2001:db8::9 2001:db8::1 1 2\r\n",
    "no-address": b"PROXY TCP4 nobody 192.0.2.1 1 2\r\n",
    "too-long": b"PROXY UNKNOWN " + b"x" * 200 + b"\r\n",
    "lower-case": b"proxy TCP4 203.0.113.9 192.0.2.80 1 2\r\n",
    "v2-cut": v2("203.0.113.9")[:13] + b"\x11\x00\x04" + b"\0" * 4,
    "v2-local-with-addresses": v2("203.0.113.9", LOCAL),
    "v2-nobody": v2(None, PROXY),
    "v2-datagram": v2("203.0.113.9").replace(b"\x21\x11", b"\x21\x12"),
    "v2-version-3": v2("203.0.113.9").replace(b"QUIT\n\x21", b"QUIT\n\x31"),
}


def is_closed(port, first, **peer):
    """No byte comes back."""
    try:
        with Http1(port, first=first, **peer) as c:
            c.send(b"GET /broken HTTP/1.1\r\nHost: edge.test\r\n\r\n")
            return c.sock.recv(1) == b""
    except (ConnectionResetError, BrokenPipeError):
        return True


@pytest.mark.parametrize("broken", BROKEN)
def test_a_connection_without_a_header_that_can_be_read_is_closed(edge, upstream, broken):
    assert is_closed(edge.tls_port, BROKEN[broken])
    line = len(edge.lines)
    assert is_closed(edge.port, BROKEN[broken])
    poll(lambda: any((new["json"] or {}).get("http.response.status_code") == 0 for new in edge.lines[line:]), "it is a line")
    assert upstream.seen("/broken") == []


def test_a_second_header_is_no_request(edge, upstream):
    with Http1(edge.port, first=NAMED["v1-ipv4"][0] * 2) as c:
        assert c.request("GET", "/second").status == 400
    assert upstream.seen("/second") == []


@pytest.mark.parametrize("named", NAMED)
def test_a_header_of_anybody_else_is_not_even_read(edge, upstream, named):
    for port in (edge.port, edge.tls_port):
        assert is_closed(port, NAMED[named][0], source="127.0.0.2")
    assert is_closed(edge.port, b"", source="127.0.0.2")
    assert upstream.seen("/broken") == []


def test_the_doctor_is_heard_as_a_balancer_and_says_when_it_is_none(edge, upstream):
    assert wrong(edge) == {}
    with Edge(POLICY, upstream.url, settings={"EDGE_PROXY_PROTOCOL": "192.0.2.0/24"}) as e:
        found = wrong(e)
        assert set(found) == {"front-door", "proof"}
        holds(found["front-door"], "EDGE_PROXY_PROTOCOL")


def test_health_is_asked_without_a_header(edge):
    assert edge.health("/livez")[0] == 200 and edge.readyz()[0] == 200


def test_without_the_setting_a_header_is_no_request(upstream):
    with Edge(POLICY, upstream.url) as e:
        with Http1(e.port, first=v1("203.0.113.9")) as c:
            assert c.request("GET", "/unasked").status == 400
        with pytest.raises((Closed, ConnectionError)):
            with Http1(e.port, first=v2("203.0.113.9")) as c:
                assert c.request("GET", "/unasked").status == 400
                c.request("GET", "/unasked")
        assert upstream.seen("/unasked") == []


@pytest.fixture(scope="module")
def chain(upstream):
    """A CDN in front of the balancer: who connects to the balancer must be trusted. On a socket of both families, whose peers are mapped."""
    settings = {"EDGE_PROXY_PROTOCOL": BALANCERS, "TRUSTED_PROXIES": "198.51.100.0/24,2001:db8:cd::/48", "CLIENT_IP_SOURCE": "header:X-Real-IP"}
    with Edge(POLICY, upstream.url, settings=settings).listen_everywhere() as e:
        yield e


# The last two are other hosts than 198.51.100.7, whose bytes they hold: a 6to4 and an IPv4-compatible address.
@pytest.mark.parametrize("protocol", ["h1", "h2"])
@pytest.mark.parametrize(
    "peer,trusted",
    [("198.51.100.7", True), ("2001:db8:cd::7", True), ("::ffff:198.51.100.7", True), ("203.0.113.7", False), ("127.0.0.1", False),
     ("2002:c633:6407::1", False), ("::198.51.100.7", False)],
)  # fmt: skip
def test_trust_is_in_whom_the_balancer_names(chain, peer, trusted, protocol):
    target = f"/chain/{protocol}/{peer.replace(':', '-')}"
    headers = [("X-Real-IP", "192.0.2.99"), ("X-Request-Id", "given")]
    response = fetch(chain, "GET", target, headers, protocol=protocol, peer={"first": v2(peer)})
    record = chain.record_of(target)
    assert response.status == (200 if trusted else 400)
    assert (record["request_id"] == "given") == trusted
    assert ipaddress.ip_address(record["client.address"]) == ipaddress.ip_address("192.0.2.99" if trusted else peer)
