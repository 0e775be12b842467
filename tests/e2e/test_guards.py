"""What is refused of a request's form before a policy is asked: hosts, values, sizes; and what such an answer looks like."""

import json
from pathlib import Path

import pytest

from clients import Closed, StreamReset, client, fetch, render1
from edge import Edge
from haproxy_alone import HAProxy
from hostile import ENDLESS_TARGET, fresh, simulated
from policies import policy
from shapes import managed

ALL = ["h1", "h2", "tls-h1", "tls-h2"]
HOSTS = json.loads(Path("tests/cases/policy/hosts.json").read_text())
BYTES = json.loads(Path("tests/cases/policy/header_bytes.json").read_text())
PROTOCOLS = pytest.mark.parametrize("protocol", ALL)


def status_of(edge, target, headers=(), protocol="h1", host="edge.test"):
    """400 also where HAProxy closes, or resets the stream, without a word."""
    try:
        return fetch(edge, "GET", target, headers, protocol=protocol, host=host).status
    except (Closed, StreamReset, ConnectionError):
        return 400


def named(row):
    return row["name"].encode("ascii", "backslashreplace").decode()


# --- Host ---


@PROTOCOLS
@pytest.mark.parametrize("row", HOSTS, ids=named)
def test_a_host_is_one_or_its_request_reaches_nobody(edge, upstream, row, protocol):
    target = fresh()
    status = status_of(edge, target, protocol=protocol, host=row["host"])
    assert status == (200 if row["passes"] else 400)
    hosts = [dict(r["headers"])["host"] for r in upstream.seen(target)]
    assert len(hosts) == row["passes"]
    if hosts and protocol.endswith("h1"):
        assert hosts == [row["host"]], "forwarded as sent"


def test_simulate_refuses_the_hosts_that_the_edge_refuses(edge):
    spoken = [row["host"] for row in HOSTS] + [f"a{chr(c)}b" for c in range(0x21, 0x7F)]
    differ = []
    for host in spoken:
        told = simulated(edge.policy_file, {"method": "GET", "host": host, "path": "/"})
        if (told["rejected"] is None) != (status_of(edge, fresh(), host=host) == 200):
            differ.append(host)
    assert differ == []


@pytest.mark.parametrize("method", ["GET", "get", "G@T", "GE\tT", "", "G,T", "G(T", "G\u00c9T", "*", "!", "G" * 300])
def test_simulate_refuses_the_methods_that_the_edge_refuses(edge, method):
    told = simulated(edge.policy_file, {"method": method, "host": "edge.test", "path": "/"})
    for protocol in ("h1", "h2"):
        try:
            status = fetch(edge, method.encode("latin-1"), fresh(), protocol=protocol).status
        except (Closed, StreamReset, ConnectionError):
            status = 400
        assert (status == 200) == (told is not None and told["rejected"] is None), protocol


@pytest.mark.parametrize("line", ["Host:\r\n", ""], ids=["empty", "none"])
@pytest.mark.parametrize("version, status", [("1.0", 200), ("1.1", 400), ("1.2", 400), ("1.9", 400)])
def test_http_1_0_alone_may_have_no_host(edge, upstream, version, status, line):
    target = fresh()
    with client(edge, "h1") as c:
        c.send(f"GET {target} HTTP/{version}\r\n{line}\r\n".encode())
        response = c.receive()
    assert response.status == status
    assert len(upstream.seen(target)) == (status == 200)
    if status == 400:
        assert response.json()["kind"] == "bad_request"
    else:
        assert ("x-forwarded-host", "") in managed(response.json())


@pytest.mark.parametrize("protocol", ["h2", "tls-h2"])
def test_http_2_without_a_host_is_refused(edge, upstream, protocol):
    target = fresh()
    response = fetch(edge, "GET", target, protocol=protocol, host=None)
    assert (response.status, response.json()["kind"]) == (400, "bad_request")
    assert not upstream.seen(target)


# --- Values ---


@PROTOCOLS
@pytest.mark.parametrize("name", ["X-Any", "Cookie", "X-Edge-Any"])
def test_a_value_with_a_control_character_reaches_nobody_and_all_else_arrives_as_sent(edge, upstream, name, protocol):
    for row in BYTES:
        target = fresh()
        value = f"a{row['byte']}b".encode("latin-1")
        assert status_of(edge, target, [(name, value)], protocol) == (200 if row["passes"] else 400), row
        received = [dict(r["headers"]) for r in upstream.seen(target)]
        assert len(received) == row["passes"], row
        if received and name != "X-Edge-Any":
            assert received[0][name.lower()] == value.decode("latin-1"), row


# --- Sizes ---


@PROTOCOLS
def test_101_headers_pass_and_102_do_not(edge, upstream, protocol):
    for n, status in ((101, 200), (102, 400)):
        target = fresh()
        assert status_of(edge, target, [(f"x-{i}", "v") for i in range(n - 1)], protocol) == status, "Host is one of them"
        assert len(upstream.seen(target)) == (status == 200)


@PROTOCOLS
def test_headers_of_60_kilobytes_pass(edge, protocol):
    response = fetch(edge, "GET", fresh(), [(f"x-{i:02}", "v" * 992) for i in range(60)], protocol=protocol)
    assert response.status == 200
    assert [len(v) for n, v in response.json()["headers"] if n.startswith("x-") and n[2:].isdigit()] == [992] * 60


LIMIT = 2048


def sized(n, target):
    """Headers that make a GET of n bytes, over HTTP/1 to the byte."""
    return [("x-fill", "v" * (n - len(render1("GET", target, [("x-fill", "")]))))]


def check_limit(edge, upstream, protocol, status, headers=()):
    """status: of what is as large as may be."""
    for n in (LIMIT, LIMIT + 1):
        target = fresh() + "?query=1"
        fill = [*headers, *sized(n - sum(len(k) + len(v) + 4 for k, v in headers), target)]
        response = fetch(edge, "GET", target, fill, protocol=protocol)
        assert response.status == (status if n == LIMIT else 431)
        assert len(upstream.seen(target)) == (n == LIMIT and status == 200)
        if n > LIMIT:
            assert (response.get("cache-control"), response.get("x-content-type-options")) == ("no-store", "nosniff")
            assert response.body == b"The request headers are too large.\n"


@pytest.fixture(scope="module")
def limited(upstream, cert):
    with Edge(policy(), upstream.url, settings={"MAX_HEADER_BYTES": LIMIT}, cert=cert) as e:
        yield e


@PROTOCOLS
def test_a_limit_of_header_bytes_holds_to_the_byte(limited, upstream, protocol):
    check_limit(limited, upstream, protocol, 200)
    check_limit(limited, upstream, protocol, 200, [("accept", "text/event-stream")])


def test_what_is_larger_has_a_line_that_says_so_and_its_connection_goes_on(limited):
    target = fresh()
    with client(limited, "h1") as c:
        assert c.request("POST", target, sized(LIMIT + 1, target), body=b"b" * 5000).status == 431
        assert c.request("GET", "/after/too-large").json()["target"] == "/after/too-large"
    line = limited.record_of(target)
    assert (line["edge.decision"], line["http.response.status_code"], line["http.request.method"]) == ("bad_request", 431, "POST")


MODES = {"closed": ({}, 503), "open": ({"EDGE_FAIL_OPEN": "1"}, 200), "overload": ({"EDGE_CAP_ORDINARY": "0", "EDGE_FAIL_OPEN": "1"}, 503)}


@pytest.mark.parametrize("mode", MODES)
def test_a_limit_of_header_bytes_holds_without_an_agent(upstream, cert, mode):
    settings, status = MODES[mode]
    address = {"EDGE_UPSTREAM_ADDR": f"127.0.0.1:{upstream.port}", "EDGE_MAX_HEADER_BYTES": str(LIMIT)}
    with HAProxy({**address, **settings}, cert) as haproxy:
        for protocol in ALL:
            check_limit(haproxy, upstream, protocol, status)


# --- Answers that no policy was resolved for ---

ORIGIN = b"Origin: https://a.example\r\n"
EARLY = {  # bytes: status, and whether an agent answers with the policy's template
    "path": (b"GET /a/../b HTTP/1.1\r\nHost: a\r\n" + ORIGIN, 400, True),
    "method": (b"get / HTTP/1.1\r\nHost: a\r\n" + ORIGIN, 400, True),
    "host": (b"GET / HTTP/1.1\r\nHost: a:x\r\n" + ORIGIN, 400, True),
    "no host": (b"GET / HTTP/1.1\r\n" + ORIGIN, 400, True),
    "value": (b"GET / HTTP/1.1\r\nHost: a\r\nX: \1\r\n" + ORIGIN, 400, True),
    "preflight": (b"OPTIONS /a/../b HTTP/1.1\r\nHost: a\r\nAccess-Control-Request-Method: GET\r\n" + ORIGIN, 400, True),
    "version": (b"GET / HTTP/0.9\r\nHost: a\r\n" + ORIGIN, 400, True),
    "length in 1.0": (b"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n" + ORIGIN, 400, True),
    "no HTTP": (b"\x16\x03\x01\r\n", 400, False),
    "two hosts": (b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n" + ORIGIN, 400, False),
    "coding": (b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n" + ORIGIN, 422, False),
    "target": (ENDLESS_TARGET, 414, False),
    "too large": (b"GET / HTTP/1.1\r\nHost: a\r\nX: " + b"x" * 62000 + b"\r\n" + ORIGIN, 431, False),
}
INTERNALS = (b"haproxy", b"spoe", b"spop", b"agent", b"edge-spoa", b"127.0.0.1", b"upstream", b"backend", b"/tmp")


@pytest.mark.parametrize("case", EARLY)
@pytest.mark.parametrize("protocol", ["h1", "tls-h1"])
def test_an_answer_before_a_policy_is_never_cached_grants_nothing_and_names_no_internals(edge, upstream, protocol, case):
    data, status, by_agent = EARLY[case]
    before = len(upstream.requests)
    with client(edge, protocol) as c:
        c.send(data if data is ENDLESS_TARGET else data + b"\r\n")
        response = c.receive()
    assert response.status == status
    assert (response.get("cache-control"), response.get("x-content-type-options")) == ("no-store", "nosniff")
    names = {name for name, _ in response.headers}
    assert not [name for name in names if name.startswith("access-control-")] and not names & {"server", "via", "x-powered-by"}
    assert (response.get("content-type") == "application/json") == by_agent
    if by_agent:
        assert response.json()["kind"] == "bad_request"
    assert not [word for word in INTERNALS if word in response.body.lower()]
    assert len(upstream.requests) == before
