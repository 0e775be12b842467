"""An https upstream is asked for the name of the request's host and must prove it: nothing travels on a connection, nor rests on a TLS
session, that was made for another name."""

import pytest

from authority import DAY, Authority
from certs import make_cert
from clients import Http1, client, fetch
from edge import Edge, poll
from h2_upstream import H2NamedUpstream
from policies import policy
from test_upstream_faults import check_page, kept

PROTOCOLS = pytest.mark.parametrize("protocol", ["h1", "h2"])
VERSIONS = {"h1": "HTTP/1.1", "h2": "HTTP/2.0"}


@pytest.fixture(scope="module")
def certificates(authority, tmp_path_factory):
    """By the server name that is asked for. a.test and b.test have one certificate."""
    other = Authority(tmp_path_factory.mktemp("other-authority"), "Another Authority")
    shared = authority.issue("a.test", "b.test")
    return {
        None: authority.issue("default.test", "127.0.0.1", "::1", subject="127.0.0.1"),
        "a.test": shared,
        "b.test": shared,
        "sub.wild.test": authority.issue("*.wild.test"),
        "deep.sub.wild.test": authority.issue("*.wild.test"),
        "expired.test": authority.issue("expired.test", valid=-DAY),
        "self-signed.test": make_cert(authority.folder, "self-signed.test"),
        "another-authority.test": other.issue("another-authority.test"),
        "another-name.test": authority.issue("edge.test"),
        "part-of-name.test": authority.issue("name.test", "of-name.test", "part-of-name.test.example"),
    }


@pytest.fixture(scope="module", params=["h1", "h2"])
def secure(request, certificates):
    """The upstream; it speaks the HTTP version that `version` names, and the other one where it must."""
    with H2NamedUpstream(dict(certificates), ["h2", "http/1.1"] if request.param == "h2" else ["http/1.1"]) as u:
        u.version = VERSIONS[request.param]
        yield u


@pytest.fixture(scope="module")
def edge(secure, authority):
    """With one thread, since each has TLS sessions of its own."""
    with Edge(policy(version=7), secure.url, settings={"SSL_CERT_FILE": authority.pem, "EDGE_HAPROXY_THREADS": "1"}) as e:
        for protocol in ("h1", "h2"):
            with client(e, protocol) as c:
                for _ in range(20):  # learns the policy's pages
                    assert c.request("GET", "/ordinary", host="a.test").status == 200
        yield e


@PROTOCOLS
@pytest.mark.parametrize(
    "host, name",
    [("a.test", "a.test"), ("A.Test", "a.test"), ("a.test:8443", "a.test"), ("a.test.", "a.test"), ("A.TEST.:443", "a.test"), ("sub.wild.test", "sub.wild.test")],
)
def test_the_server_name_is_the_requests_host_and_the_host_is_forwarded_as_it_was(edge, secure, host, name, protocol):
    response = fetch(edge, "GET", "/named", host=host, protocol=protocol)
    assert response.status == 200
    received = response.json()
    headers = dict(received["headers"])
    assert (received["version"], received["sni"]) == (secure.version, name)
    assert headers[":authority" if (protocol, secure.version) == ("h2", "HTTP/2.0") else "host"] == host


@PROTOCOLS
@pytest.mark.parametrize(
    "name",
    ["expired", "self-signed", "another-authority", "another-name", "part-of-name", "deep.sub.wild", "unknown", "under_score"],
)
def test_a_certificate_that_does_not_prove_the_name_gets_a_502_and_no_request(edge, secure, name, protocol):
    """Guards against an upstream that another machine pretends to be."""
    target = f"/unproven/{name}/{protocol}"
    check_page(edge, fetch(edge, "GET", target, host=f"{name}.test", protocol=protocol), target, 502)
    assert secure.seen(target) == []
    assert secure.asked_for(f"{name}.test"), "it was asked for that name"


@PROTOCOLS
@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.1:8443", "[::1]", "[::1]:8443", "1.2.3.4.5", "a" * 64 + "." + "b" * 195])
def test_a_host_that_is_no_name_is_never_asked_for_nor_proven(edge, secure, host, protocol):
    """An address is no server name (RFC 6066 3). The certificate at hand has both addresses, one even as its common name, where
    HAProxy would take it for a host name; it can't look for addresses, so none may pass."""
    before = len(secure.connections)
    target = f"/literal/{len(host)}/{host[1]}/{protocol}"
    check_page(edge, fetch(edge, "GET", target, host=host, protocol=protocol), target, 502)
    assert [c["sni"] for c in secure.connections[before:]] == [None]
    assert secure.seen(target) == []


@pytest.mark.parametrize("version", ["1.0", "1.1"])
def test_a_request_without_a_host_is_never_sent_to_an_https_upstream(edge, secure, version):
    with Http1(edge.port) as c:
        c.send(f"GET /hostless/{version} HTTP/{version}\r\n\r\n".encode())
        assert c.receive().status in (400, 502)
    assert secure.seen(f"/hostless/{version}") == []


@PROTOCOLS
def test_connections_are_reused_for_the_host_they_were_made_for_only(edge, secure, protocol):
    """a.test and b.test share a certificate, which would let a client of the upstream share a connection."""
    used = {"a.test": set(), "b.test": set()}
    with client(edge, protocol) as c:
        for host in ["a.test", "b.test"] * 6 + ["a.test"] * 3 + ["b.test"] * 3:
            received = c.request("GET", "/reuse", host=host).json()
            assert received["sni"] == host
            used[host].add(received["connection"])
    assert not used["a.test"] & used["b.test"]
    assert len(used["a.test"]) + len(used["b.test"]) < 18, "there is reuse"


def fresh(edge, secure, host):
    """One request over a new connection to the upstream: (the answer, what that connection asked for)."""
    secure.end_kept()
    poll(lambda: kept(edge) == 0, "HAProxy has noticed")
    before = len(secure.connections)
    response = fetch(edge, "GET", "/fresh", host=host)
    assert len(secure.connections) == before + 1
    return response, secure.connections[before]


def test_a_tls_session_is_resumed_for_its_own_name_and_offered_for_no_other(edge, secure):
    """A resumed session skips the check of names, so one that went with another name would let any name pass."""
    fresh(edge, secure, "a.test")
    response, again = fresh(edge, secure, "a.test")
    assert response.status == 200
    assert (again["offers_session"], again["resumed"]) == (True, True), "there is resumption"
    for host, status in [("b.test", 200), ("unknown.test", 502), ("a.test", 200), ("127.0.0.1", 502)]:
        response, connection = fresh(edge, secure, host)
        assert (response.status, connection["offers_session"]) == (status, False), host


def test_a_certificate_that_is_exchanged_for_a_bad_one_is_noticed_on_the_next_full_handshake(edge, secure, certificates):
    fresh(edge, secure, "b.test")  # whatever session there was is now of this name
    secure.certificates["a.test"] = certificates["another-name.test"]
    try:
        assert fresh(edge, secure, "a.test")[0].status == 502
    finally:
        secure.certificates["a.test"] = certificates["a.test"]
    assert fresh(edge, secure, "a.test")[0].status == 200


@PROTOCOLS
def test_only_the_authorities_of_ssl_cert_file_are_trusted(secure, tmp_path, protocol):
    stranger = Authority(tmp_path, "Stranger")
    with Edge(policy(), secure.url, settings={"SSL_CERT_FILE": stranger.pem}) as e:
        assert fetch(e, "GET", "/stranger", host="a.test", protocol=protocol).status == 502
    assert secure.seen("/stranger") == []


@PROTOCOLS
@pytest.mark.parametrize("proto, offered", [("auto", ["h2", "http/1.1"]), ("h1", ["http/1.1"]), ("h2", ["h2"])])
def test_the_http_version_that_is_set_is_the_one_that_is_offered(secure, authority, proto, offered, protocol):
    """Who does not take HTTP/2 when nothing else is offered takes nothing (RFC 7301 3.2 lets it go on), and gets HTTP/1."""
    with Edge(policy(), secure.url, settings={"SSL_CERT_FILE": authority.pem, "EDGE_UPSTREAM_PROTO": proto}) as e:
        before = len(secure.connections)
        received = fetch(e, "GET", "/alpn", host="a.test", protocol=protocol).json()
        assert [c["alpn"] for c in secure.connections[before:]] == [offered]
        assert received["version"] == (VERSIONS["h1"] if proto == "h1" else secure.version)
