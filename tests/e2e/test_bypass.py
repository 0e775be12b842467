"""Ways around the policy that a client could try with the connection or the request's form, each closed."""

import socket

import pytest

from clients import Http1, fetch
from edge import Edge, poll
from policies import config_rule, header_rule, policy, under

POLICY = policy(
    config=[config_rule("no-host", 'http.host eq "admin.test"', block="block"), config_rule("no-admin", under("/admin"), block="block")],
    headers=[header_rule("proof", under("/padded"), ("X-Proof", "p" * 4000))],
)


@pytest.fixture(scope="module")
def edge(upstream):
    with Edge(POLICY, upstream.url) as e:
        yield e


@pytest.fixture(scope="module")
def open_edge(upstream):
    with Edge(POLICY, upstream.url, settings={"EDGE_ON_AGENT_FAILURE": "open"}) as e:
        yield e


def raw(port, data):
    """The answer to these bytes, read to the end of the connection."""
    with socket.create_connection(("127.0.0.1", port), 10) as s:
        s.sendall(data)
        s.shutdown(socket.SHUT_WR)
        answer = b""
        while piece := s.recv(65536):
            answer += piece
    return answer


def status_of(edge, data):
    with Http1(edge.port) as c:
        c.send(data)
        return c.receive().status


@pytest.mark.parametrize(
    "head",
    [
        "GET http://admin.test/absolute HTTP/1.0\r\n\r\n",
        "GET http://admin.test/absolute HTTP/1.1\r\n\r\n",
        "GET http://edge.test@admin.test/absolute HTTP/1.1\r\nHost: edge.test@admin.test\r\n\r\n",
        "GET http://u:p@edge.test/absolute HTTP/1.1\r\nHost: edge.test\r\n\r\n",
    ],
    ids=["1.0 without Host", "1.1 without Host", "userinfo for a host", "userinfo"],
)
def test_an_absolute_target_names_no_host_but_the_one_that_was_judged(edge, upstream, head):
    assert status_of(edge, head.encode()) == 400
    assert not upstream.seen("/absolute")


def test_an_absolute_target_of_the_judged_host_reaches_the_upstream_as_a_path(edge):
    with Http1(edge.port) as c:
        c.send(b"GET http://edge.test/plain-path?a=1 HTTP/1.1\r\nHost: edge.test\r\n\r\n")
        assert c.receive().json()["target"] == "/plain-path?a=1"


@pytest.mark.parametrize("n", range(20))
def test_a_client_that_closes_its_side_does_not_open_the_edge(open_edge, upstream, n):
    data = f"POST /admin/half-closed-{n} HTTP/1.1\r\nHost: edge.test\r\nContent-Length: 3\r\n\r\nabc"
    answer = raw(open_edge.port, data.encode())
    assert not answer or answer.split(b" ", 2)[1] in (b"400", b"403")
    assert fetch(open_edge, "GET", f"/after/{n}").status == 200
    assert not upstream.seen(f"/admin/half-closed-{n}")


@pytest.mark.parametrize("size", [40, 48, 52, 55, 56, 57, 58, 59, 60])
def test_a_rule_s_header_is_there_or_the_request_is_not(edge, size):
    filler = [(f"x-fill-{i}", "f" * 1000) for i in range(size)]
    response = fetch(edge, "GET", f"/padded/{size}", filler)
    if response.status == 200:
        assert "p" * 4000 in [value for name, value in response.json()["headers"] if name == "x-proof"]
    else:
        assert response.status in (400, 431)


@pytest.mark.parametrize("upgrade", ["h2c", "h2c;q=1", '"h2c"', "h2c/1", "HTTP/2.0", "TLS/1.0, h2c"])
def test_no_other_http_version_is_negotiated_with_the_upstream(edge, upgrade):
    headers = [("Connection", "Upgrade, HTTP2-Settings"), ("Upgrade", upgrade), ("HTTP2-Settings", "AAMAAABkAAQAAP__")]
    sent = {name for name, _ in fetch(edge, "GET", "/upgrade", headers).json()["headers"]}
    assert not sent & {"upgrade", "http2-settings", "connection"}


def test_names_that_upstreams_read_as_framing_do_not_reach_them(edge):
    headers = [("Transfer_Encoding", "chunked"), ("Content_Length", "5"), ("Keep-Alive", "timeout=5"), ("Proxy-Connection", "close")]
    sent = {name for name, _ in fetch(edge, "GET", "/framing", headers).json()["headers"]}
    assert not sent & {name.lower() for name, _ in headers}


def test_a_path_too_long_to_search_in_is_refused(edge, upstream):
    assert fetch(edge, "GET", "/" + "a" * 8192).status == 400
    assert poll(lambda: fetch(edge, "GET", "/" + "b" * 8000).status == 200, "the longest paths pass")
