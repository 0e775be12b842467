"""What a client gets when the upstream fails: 502 or 504 by what went wrong, with the page of the policy, over HTTP/1 and HTTP/2
alike; and the edge serves as before once the upstream does."""

import contextlib

import pytest

from certs import make_cert
from clients import Closed, StreamReset, client, fetch
from edge import Edge, poll
from faulty_upstream import FaultyUpstream, TlsUpstream
from policies import config_rule, policy, template, under

POLICY = policy(
    version=7,
    config=[config_rule("own", under("/own"), responses={"bad_gateway": "own_bad_gateway", "gateway_timeout": "own_gateway_timeout"})],
    responses={
        "own_bad_gateway": template(502, "<p>own 502 {{request_id}}</p>", "text/html"),
        "own_gateway_timeout": template(504, "<p>own 504 {{request_id}}</p>", "text/html"),
    },
)
KINDS = {502: "bad_gateway", 504: "gateway_timeout"}
PROTOCOLS = pytest.mark.parametrize("protocol", ["h1", "h2"])


@pytest.fixture(scope="module")
def faulty():
    with FaultyUpstream() as u:
        yield u


@pytest.fixture(scope="module")
def edge(faulty):
    with Edge(POLICY, faulty.url, settings={"EDGE_UPSTREAM_CONNECT_TIMEOUT": "300ms"}) as e:
        serves(e)
        yield e


def serves(edge):
    """Ordinary requests; an edge that has just begun learns the policy's pages with them."""
    for protocol in ("h1", "h2"):
        with client(edge, protocol) as c:
            for _ in range(20):
                assert c.request("GET", "/ordinary").status == 200


def ask_afresh(edge, upstream, target, protocol):
    """One request that finds no kept connection to the upstream: on one that ends, HAProxy answers nothing, see the last tests here."""
    upstream.end_kept()
    poll(lambda: kept(edge) == 0, "HAProxy has noticed")
    return fetch(edge, "GET", target, protocol=protocol)


def kept(edge):
    """Idle connections that HAProxy holds to the upstream."""
    names, *rows = [line.lstrip("# ").split() for line in edge.haproxy_command("show servers conn").splitlines() if line]
    return sum(int(row[names.index("idle_cur")]) for row in rows if row[0].endswith("/upstream"))


def check_page(edge, response, target, status):
    """The answer, its page with the request's id, and its one line."""
    assert (response.status, response.get("cache-control"), response.get("retry-after")) == (status, "no-store", None)
    assert response.get("x-content-type-options") == "nosniff"
    record = edge.record_of(target)
    assert (record["http.response.status_code"], record["edge.upstream_answered"]) == (status, False)
    assert response.get("content-type") == "application/json"
    page = response.json()
    assert (page["kind"], page["status"], page["request_id"]) == (KINDS[status], status, record["request_id"])


# Over HTTP/2, and on an HTTP/1 connection that has carried a request, HAProxy has no answer to a connect timeout: see the end.
UNREACHABLE = pytest.mark.parametrize(
    "inflict, status, protocol",
    [
        pytest.param(FaultyUpstream.refusing, 502, "h1", id="refused-h1"),
        pytest.param(FaultyUpstream.refusing, 502, "h2", id="refused-h2"),
        pytest.param(FaultyUpstream.blackholed, 504, "h1", id="never-accepted-h1"),
    ],
)
ANSWERS = {
    "reset": ("/reset", 502),
    "closed without an answer": ("/close", 502),
    "no HTTP": ("/garbage", 502),
    "a header larger than the buffer": ("/large", 502),
}


@UNREACHABLE
def test_an_upstream_that_can_not_be_reached_is_answered_with_the_policys_page(edge, faulty, inflict, status, protocol):
    target = f"/unreached/{status}/{protocol}"
    with inflict(faulty):
        response = ask_afresh(edge, faulty, target, protocol)
    check_page(edge, response, target, status)
    assert faulty.seen(target) == []
    serves(edge)


@PROTOCOLS
@pytest.mark.parametrize("answer", ANSWERS)
def test_an_upstream_that_gives_no_answer_is_answered_with_the_policys_page(edge, faulty, answer, protocol):
    path, status = ANSWERS[answer]
    target = f"{path}/unanswered/{protocol}"
    response = ask_afresh(edge, faulty, target, protocol)
    check_page(edge, response, target, status)
    assert len(faulty.seen(target)) == 1, "it is asked once"
    serves(edge)


@UNREACHABLE
def test_a_rule_chooses_the_page_of_an_upstream_fault(edge, faulty, inflict, status, protocol):
    target = f"/own/{status}/{protocol}"
    with inflict(faulty):
        response = ask_afresh(edge, faulty, target, protocol)
    record = edge.record_of(target)
    assert (response.status, response.get("content-type"), response.get("cache-control")) == (status, "text/html", "no-store")
    assert response.body.decode() == f"<p>own {status} {record['request_id']}</p>"


@pytest.fixture(scope="module")
def secure(cert):
    with TlsUpstream(cert) as u:
        yield u


@pytest.fixture(scope="module")
def secure_edge(secure, cert):
    with Edge(POLICY, secure.url, settings={"SSL_CERT_FILE": cert}) as e:
        serves(e)
        yield e


@PROTOCOLS
@pytest.mark.parametrize("fault", ["certificate that nobody signed", "no TLS at all"])
def test_an_https_upstream_that_can_not_be_trusted_gets_no_request(secure_edge, secure, tmp_path, fault, protocol):
    """Guards against an upstream that another machine pretends to be."""
    pem = make_cert(tmp_path) if fault == "certificate that nobody signed" else None
    target = f"/secure/{'stranger' if pem else 'clear'}/{protocol}"
    with secure.using(pem):
        response = ask_afresh(secure_edge, secure, target, protocol)
    check_page(secure_edge, response, target, 502)
    assert secure.seen(target) == []
    serves(secure_edge)


@pytest.fixture(scope="module")
def nameless():
    with Edge(POLICY, "http://nothing.invalid:80") as e:
        yield e


@PROTOCOLS
def test_an_upstream_without_an_address_is_answered_with_the_policys_page(nameless, protocol):
    with client(nameless, protocol) as c:
        for _ in range(20):
            assert c.request("GET", "/learns/the/pages").status == 502
    target = f"/nameless/{protocol}"
    check_page(nameless, fetch(nameless, "GET", target, protocol=protocol), target, 502)


# --- where HAProxy gives no answer, and leaves it to the client to ask again ---


@contextlib.contextmanager
def warm(edge, protocol):
    """A client connection whose next request goes over a kept connection to the upstream."""
    with client(edge, protocol) as c:
        for _ in range(2):
            assert c.request("GET", "/ordinary").status == 200
        yield c


@pytest.mark.parametrize("path", ["/close", "/reset"])
def test_a_kept_connection_that_ends_instead_of_answering_closes_an_http1_client_silently(edge, path):
    """HAProxy can't tell it from a connection that had ended before the request came, and leaves it to the client, which may ask
    again, to do so (RFC 9112 9.3.1): no 502, no byte."""
    with warm(edge, "h1") as c:
        with pytest.raises(Closed, match="in a line: b''"):
            c.request("GET", f"{path}/kept/h1")
    serves(edge)


@pytest.mark.parametrize("path", ["/close", "/reset"])
def test_a_kept_connection_that_ends_instead_of_answering_refuses_an_http2_stream(edge, path):
    """The same over HTTP/2: REFUSED_STREAM says that the request may be sent again (RFC 9113 8.7); the connection goes on."""
    with warm(edge, "h2") as c:
        with pytest.raises(StreamReset, match="error 7"):
            c.request("GET", f"{path}/kept/h2")
        assert c.request("GET", "/ordinary").status == 200
    serves(edge)


@pytest.mark.parametrize("protocol, silence, said", [("h1", Closed, "in a line: b''"), ("h2", StreamReset, "error 7")])
def test_a_connect_timeout_has_an_answer_for_the_first_request_of_an_http1_connection_only(edge, faulty, protocol, silence, said):
    """HAProxy takes every other client for one that can ask again. The line is written all the same."""
    target = f"/silent/{protocol}"
    with client(edge, protocol) as c:
        assert c.request("GET", "/ordinary").status == 200
        faulty.end_kept()
        poll(lambda: kept(edge) == 0, "HAProxy has noticed")
        with faulty.blackholed(), pytest.raises(silence, match=said):
            c.request("GET", target)
    assert edge.record_of(target)["edge.upstream_answered"] is False
    serves(edge)
