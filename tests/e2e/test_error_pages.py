"""HAProxy's own answers with the pages that an agent has sent; the agent is told what to say."""

import contextlib
import socket
import threading

import pytest

from clients import Http1, StreamReset, client, fetch
from edge import Ports, poll
from haproxy_alone import HAProxy
from mock_agent import FORWARD

KINDS = ["overloaded", "unavailable", "payload_too_large", "bad_gateway", "gateway_timeout"]
PROTOCOLS = ["h1", "h2"]
# Whatever could mean something to HAProxy, to Lua or to a format, as large as a page may be.
HOSTILE = 'a "b" \'c\' %d %% %[src] %ci %1 %0 \\n \\" ${EDGE_RUN_DIR} {{x}} {{request_id} }} $& #; \t\r\n \u00fc\u20ac {{request_id}} '
PAGE_MAX = 32768
UNDECIDED = {"txn.ok": None}
OWN = {"cache-control": "no-store", "x-content-type-options": "nosniff"}
PLAIN = "text/plain; charset=utf-8"


def page(kind, scope="proc"):
    """As large as the contract allows, once {{request_id}} is filled in."""
    text = f"{scope} {kind}: {HOSTILE}{{{{request_id}}}}"
    return text + "x" * (PAGE_MAX - len(text.encode()) - 2 * (32 - len("{{request_id}}")))


def rendered(text, request_id):
    return text.replace("{{request_id}}", request_id).encode()


# A content type of its own for each kind, so that a mix-up shows.
TYPES = {kind: f"text/html; charset=utf-8; kind={kind}" for kind in KINDS}


def taught(haproxy):
    """One answer teaches HAProxy one page, since all of them together fit no frame. Open mode does without an answer that is late."""

    def knows(kind):
        fetch(haproxy, "GET", f"/teach/{kind}")
        return TYPES[kind] in haproxy.command(f"get var proc.edge.ct_{kind}")

    for kind in KINDS:
        haproxy.agent.always = {f"proc.t_{kind}": page(kind), f"proc.ct_{kind}": TYPES[kind]}
        poll(lambda: knows(kind), f"HAProxy knows the page of {kind}")
    haproxy.agent.always = {}
    return haproxy


def check(response, status, kind, request_id, scope="proc", content_type=None):
    assert (response.status, response.get("content-type")) == (status, content_type or TYPES[kind])
    assert {name: response.get(name) for name in OWN} == OWN
    assert response.get("retry-after") == ("1" if status == 503 else None)
    assert response.body == rendered(page(kind, scope), request_id)


@pytest.fixture(scope="module")
def edge(upstream):
    with HAProxy({"EDGE_UPSTREAM_ADDR": f"127.0.0.1:{upstream.port}"}, mock=True) as h:
        yield taught(h)


@pytest.fixture(scope="module")
def open_edge(upstream):
    with HAProxy({"EDGE_UPSTREAM_ADDR": f"127.0.0.1:{upstream.port}", "EDGE_FAIL_OPEN": "1"}, mock=True) as h:
        yield taught(h)


@pytest.fixture(scope="module")
def slow_answer(edge, upstream):
    """A request whose upstream takes longer than HAProxy waits; asked first and looked at last, since it takes half a minute."""
    answers = {}

    def ask(protocol):
        with client(edge, protocol) as c:
            c.sock.settimeout(60)
            answers[protocol] = c.request("GET", f"/delay/45000/{protocol}")

    threads = [threading.Thread(target=ask, args=(protocol,), daemon=True) for protocol in PROTOCOLS]
    for thread in threads:
        thread.start()
    poll(lambda: len(upstream.seen("/delay/45000/")) == len(PROTOCOLS), "the upstream has the slow requests")
    yield threads, answers
    for thread in threads:
        thread.join(60)


@pytest.mark.usefixtures("slow_answer")
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_without_a_decision_it_is_the_page_of_unavailable(edge, protocol):
    target = f"/undecided/{protocol}"
    edge.agent.answers[target] = UNDECIDED
    response = fetch(edge, "GET", target, protocol=protocol)
    check(response, 503, "unavailable", edge.line_of(target)["request_id"])


@pytest.mark.parametrize("headers", [[], [("Accept", "text/event-stream")]], ids=["plain", "stream"])
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_above_a_cap_it_is_the_page_of_overloaded(upstream, protocol, headers):
    with HAProxy({"EDGE_UPSTREAM_ADDR": f"127.0.0.1:{upstream.port}"}, mock=True) as haproxy:
        taught(haproxy).agent.always = {"proc.cap_ord": 0, "proc.cap_str": 0}
        assert fetch(haproxy, "GET", "/last", headers).status == 200
        response = fetch(haproxy, "GET", "/over", headers, protocol=protocol)
        check(response, 503, "overloaded", haproxy.line_of("/over")["request_id"])
        assert "/over" not in haproxy.agent.asked, "nobody was asked about it"


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_body_above_open_modes_limit_gets_the_page_of_payload_too_large(open_edge, protocol):
    target = f"/large/{protocol}"
    open_edge.agent.answers[target] = UNDECIDED
    response = fetch(open_edge, "POST", target, [("Content-Length", "1001")] if protocol == "h2" else [], b"x" * 1001, protocol=protocol)
    line = open_edge.line_of(target)
    check(response, 413, "payload_too_large", line["request_id"])
    assert line["edge.decision"] == "body_limit"


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_an_upstream_that_answers_no_http_gets_the_page_of_bad_gateway(edge, protocol):
    target = f"/garbage/{protocol}"
    response = fetch(edge, "GET", target, protocol=protocol)
    check(response, 502, "bad_gateway", edge.agent.id_of(target))


def test_an_upstream_that_closes_without_an_answer_gets_the_page_of_bad_gateway(edge):
    check(fetch(edge, "GET", "/close/first"), 502, "bad_gateway", edge.agent.id_of("/close/first"))


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("addr", ["nobody.invalid:80", None], ids=["no address", "refused"])
def test_an_upstream_that_can_not_be_reached_gets_the_page_of_bad_gateway(protocol, addr):
    nobody = Ports()
    try:
        with HAProxy({"EDGE_UPSTREAM_ADDR": addr or f"127.0.0.1:{nobody.first}"}, mock=True) as haproxy:
            response = fetch(taught(haproxy), "GET", "/down", protocol=protocol)
            check(response, 502, "bad_gateway", haproxy.agent.id_of("/down"))
    finally:
        nobody.close()


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_an_upstream_with_another_certificate_gets_the_page_of_bad_gateway(cert, upstream, protocol):
    with HAProxy({"EDGE_UPSTREAM_ADDR": f"127.0.0.1:{upstream.port}", "EDGE_FAIL_OPEN": "1"}, cert) as inner:
        settings = {"EDGE_UPSTREAM_ADDR": f"127.0.0.1:{inner.tls_port}", "EDGE_UPSTREAM_TLS": "1", "SSL_CERT_FILE": str(cert)}
        with HAProxy(settings, mock=True) as haproxy:
            response = fetch(taught(haproxy), "GET", "/tls", host="other.test", protocol=protocol)
            check(response, 502, "bad_gateway", haproxy.agent.id_of("/tls"))


def test_an_upstream_that_does_not_accept_gets_the_page_of_gateway_timeout(cert):
    """A TLS handshake that nobody answers counts as connecting. Only the first request of an HTTP/1 connection gets an answer:
    haproxy/README.md, "What HAProxy does not answer"."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        settings = {"EDGE_UPSTREAM_ADDR": f"127.0.0.1:{silent.getsockname()[1]}", "EDGE_UPSTREAM_CONNECT_TIMEOUT_MS": "200"}
        with HAProxy({**settings, "EDGE_UPSTREAM_TLS": "1", "SSL_CERT_FILE": str(cert)}, mock=True) as haproxy:
            with contextlib.suppress(StreamReset):
                fetch(haproxy, "GET", "/silent/h2", protocol="h2")
            poll(lambda: [r for r in haproxy.records() if r[5] == "sC"], "a record that says so")
            haproxy.agent.always = {"proc.t_gateway_timeout": page("gateway_timeout"), "proc.ct_gateway_timeout": TYPES["gateway_timeout"]}
            response = fetch(haproxy, "GET", "/silent/h1")
            check(response, 504, "gateway_timeout", haproxy.agent.id_of("/silent/h1"))


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_switch_that_nobody_asked_for_gets_the_page_of_bad_gateway(protocol):
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def switch():
            with contextlib.suppress(OSError):
                while True:
                    sock, _ = listener.accept()
                    with sock:
                        sock.recv(65536)
                        sock.sendall(b"HTTP/1.1 101 Switching\r\nConnection: upgrade\r\nUpgrade: foo\r\n\r\n")

        threading.Thread(target=switch, daemon=True).start()
        with HAProxy({"EDGE_UPSTREAM_ADDR": f"127.0.0.1:{listener.getsockname()[1]}"}, mock=True) as haproxy:
            taught(haproxy)
            response = fetch(haproxy, "GET", "/switch", protocol=protocol)
            check(response, 502, "bad_gateway", haproxy.agent.id_of("/switch"))
        listener.shutdown(socket.SHUT_RDWR)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_page_of_the_request_goes_before_the_default(edge, protocol):
    target = f"/garbage/own/{protocol}"
    own = {"txn.t_bad_gateway": page("bad_gateway", "own"), "txn.ct_bad_gateway": "application/problem+json"}
    edge.agent.answers[target] = {**FORWARD, **own}
    response = fetch(edge, "GET", target, protocol=protocol)
    check(response, 502, "bad_gateway", edge.agent.id_of(target), "own", "application/problem+json")
    other = f"/garbage/other/{protocol}"
    check(fetch(edge, "GET", other, protocol=protocol), 502, "bad_gateway", edge.agent.id_of(other))


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_page_of_a_verdict_that_broke_off_is_not_used(open_edge, protocol):
    target = f"/garbage/broke-off/{protocol}"
    own = {"txn.t_bad_gateway": "not this one", "txn.ct_bad_gateway": "text/html"}
    open_edge.agent.answers[target] = {**FORWARD, **own, **UNDECIDED}
    response = fetch(open_edge, "GET", target, protocol=protocol)
    check(response, 502, "bad_gateway", open_edge.line_of(target)["request_id"])


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_head_gets_the_headers_of_a_page_and_no_body(edge, protocol):
    edge.agent.answers["/head/undecided"] = UNDECIDED
    with client(edge, protocol) as c:
        for target, status, kind in [("/garbage/head", 502, "bad_gateway"), ("/head/undecided", 503, "unavailable")]:
            response = c.request("HEAD", target)
            assert (response.status, response.body, response.get("content-type")) == (status, b"", TYPES[kind])
            assert response.get("cache-control") == "no-store"
        assert c.request("GET", "/head/after").status == 200, "the connection goes on with the next answer"


@pytest.mark.parametrize("status", [502, 503, 504])
def test_the_upstreams_own_errors_are_no_occasion_for_a_page(edge, status):
    response = fetch(edge, "GET", f"/status/{status}")
    assert (response.status, response.json()["target"]) == (status, f"/status/{status}")


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_while_no_agent_has_sent_a_page_plain_words_are_said(upstream, protocol):
    with HAProxy({"EDGE_UPSTREAM_ADDR": f"127.0.0.1:{upstream.port}"}, mock=True) as haproxy:
        haproxy.agent.answers["/undecided"] = UNDECIDED
        response = fetch(haproxy, "GET", "/undecided", protocol=protocol)
        assert (response.status, response.get("content-type"), response.body) == (503, PLAIN, b"unavailable\n")
        response = fetch(haproxy, "GET", "/garbage", protocol=protocol)
        assert (response.status, response.get("content-type"), response.body) == (502, PLAIN, b"The upstream gave no valid answer.\n")
        haproxy.agent.always = {"proc.t_bad_gateway": "page", "proc.ct_bad_gateway": "text/html"}
        assert fetch(haproxy, "GET", "/garbage", protocol=protocol).body == b"page"
        haproxy.agent.always = {"proc.t_bad_gateway": "other page"}
        response = fetch(haproxy, "GET", "/garbage", protocol=protocol)
        assert (response.get("content-type"), response.body) == ("text/html", b"other page"), "a page can be exchanged while running"


def test_an_upstream_that_takes_too_long_gets_the_page_of_gateway_timeout(edge, slow_answer):
    threads, answers = slow_answer
    for thread in threads:
        thread.join(60)
    for protocol in PROTOCOLS:
        check(answers[protocol], 504, "gateway_timeout", edge.agent.id_of(f"/delay/45000/{protocol}"))


def test_a_page_is_sent_on_a_connection_that_goes_on(edge):
    edge.agent.answers["/undecided/kept"] = UNDECIDED
    with Http1(edge.port) as c:
        assert [c.request("GET", "/undecided/kept").status for _ in range(3)] == [503, 503, 503]
