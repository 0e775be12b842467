"""The access log: one JSON line for each finished request, whoever answered it, and never a secret in it."""

import json
import re
import subprocess

import pytest

from clients import Closed, StreamReset, client, fetch
from edge import Edge, poll
from faults import NoAgent
from policies import config_rule, header_rule, limit_rule, policy, under

POLICY = policy(
    version=41,
    config=[config_rule("shut", under("/shut"), block="block"), config_rule("seen", under("/seen"), block="log")],
    limits=[limit_rule("once", under("/once"), limit=1, period="1h", burst=1)],
    headers=[header_rule("mark", under("/seen"), ("X-Mark", "1"))],
)
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z\Z")
REQUEST_ID = re.compile(r"[0-9a-f]{32}\Z")


@pytest.fixture(scope="module")
def edge(upstream):
    with Edge(POLICY, upstream.url) as e:
        yield e


def check_common(record):
    assert TIME.match(record["time"]), record
    assert (record["level"], record["msg"]) == ("info", "access")
    assert isinstance(record["duration_ms"], int) and record["duration_ms"] >= 0
    assert record["client.address"] == "127.0.0.1"


@pytest.mark.parametrize("protocol", ["h1", "h2"])
@pytest.mark.parametrize(
    "method, path, status, decision, more",
    [
        ("GET", "/passes", 200, "allow", {"edge.upstream_answered": True}),
        ("POST", "/status/404", 404, "allow", {"edge.upstream_answered": True}),
        ("GET", "/shut", 403, "block", {"edge.upstream_answered": False, "edge.config_rules": ["shut"]}),
        (
            "GET",
            "/seen",
            200,
            "would_block",
            {"edge.upstream_answered": True, "edge.config_rules": ["seen"], "edge.request_header_rules": ["mark"]},
        ),
        ("GET", "/once/spent", 429, "rate_limited", {"edge.upstream_answered": False, "edge.rate_limit_rule": "once"}),
        ("GET", "/a%5Cb", 400, "path", {"edge.upstream_answered": False}),
        ("get", "/lower", 400, "method", {"edge.upstream_answered": False}),
    ],
)
def test_a_decided_request_is_one_line(edge, protocol, method, path, status, decision, more):
    if decision == "rate_limited":
        fetch(edge, "GET", "/once/first")
    target = f"{path}/{protocol}/{method}"
    assert fetch(edge, method, target, protocol=protocol, host="Edge.TEST:8080").status == status
    record = edge.record_of(target)
    check_common(record)
    assert record["http.request.method"] == method
    assert record["server.address"] == "edge.test"
    assert record["http.response.status_code"] == status
    assert record["edge.config_version"] == 41
    assert REQUEST_ID.match(record["request_id"])
    assert record["edge.decision"] == decision
    assert {name: record.get(name) for name in more} == more


@pytest.mark.parametrize("path, status", [("/close", 502), ("/garbage", 502), ("/status/503", 503)])
def test_a_request_whose_upstream_fails_is_one_line(edge, path, status):
    """Over HTTP/1, on a connection of its own: where a client could know that asking again is safe, HAProxy closes without an
    answer, and without a record, when an upstream connection that it had kept turns out to be closed."""
    assert fetch(edge, "GET", f"{path}/fails").status == status
    record = edge.record_of(f"{path}/fails")
    check_common(record)
    assert (record["http.response.status_code"], record["edge.config_version"]) == (status, 41)
    assert record["edge.upstream_answered"] is (path == "/status/503")


def test_a_request_without_an_agent_is_one_line(edge):
    with NoAgent(edge):
        assert fetch(edge, "GET", "/no/agent").status == 503
    record = edge.record_of("/no/agent")
    check_common(record)
    assert (record["edge.decision"], record["http.response.status_code"]) == ("unavailable", 503)
    assert record["http.request.method"] == "GET"
    assert REQUEST_ID.match(record["request_id"])


@pytest.mark.parametrize(
    "data",
    [
        b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        b"GET /\x00 HTTP/1.1\r\nHost: a\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GET / HTTP/1.1\r\nBad Header: x\r\n\r\n",
    ],
)
def test_what_haproxy_refuses_itself_is_one_line(edge, data):
    def early():
        return [line for line in edge.matching(msg="access", edge__decision="bad_request") if "url.path" not in line]

    n = len(early())
    with client(edge) as c:
        c.send(data)
        try:
            assert c.receive().status == 400
        except Closed:
            pass
    poll(lambda: len(early()) == n + 1, "one line for the refused request")
    record = early()[-1]
    check_common(record)
    assert record["http.response.status_code"] in (400, 0)


def test_requests_on_one_connection_are_a_line_each(edge):
    for protocol in ("h1", "h2"):
        with client(edge, protocol) as c:
            for i in range(5):
                assert c.request("GET", f"/kept/{protocol}/{i}").status == 200
        ids = {edge.record_of(f"/kept/{protocol}/{i}")["request_id"] for i in range(5)}
        assert len(ids) == 5


def test_an_abandoned_request_is_one_line(edge, upstream):
    with client(edge) as c:
        c.send(b"GET /delay/400/abandoned HTTP/1.1\r\nHost: edge.test\r\n\r\n")
        poll(lambda: upstream.seen("/delay/400/abandoned"), "the upstream has it")
    check_common(edge.record_of("/delay/400/abandoned"))


SECRET = "sEcReT-value"


def test_no_line_ever_holds_a_query_value_a_cookie_or_a_token(edge):
    headers = [("Authorization", f"Bearer {SECRET}"), ("Cookie", f"session={SECRET}"), ("X-Api-Key", SECRET)]
    targets = ["/pass", "/shut", "/seen", "/once", "/a/../b", "/a%5C", "/a|b", "/close", "/status/500"]
    for protocol in ("h1", "h2"):
        for target in targets:
            try:
                fetch(edge, "GET", f"{target}?token={SECRET}&{SECRET}&x=%zz", headers, protocol=protocol)
            except StreamReset:
                pass
    with client(edge) as c:
        c.send(b"GET /?%s HTTP/1.1\r\nBad Header: %s\r\n\r\n" % (SECRET.encode(), SECRET.encode()))
        assert c.receive().status == 400
    with NoAgent(edge):
        fetch(edge, "GET", f"/gone?token={SECRET}", headers)
    fetch(edge, "GET", "/last/one")
    edge.record_of("/last/one")
    poll(lambda: edge.metric("edge_spop_acks_total") >= 1, "the new agent answers")
    assert [line["text"] for line in edge.lines if SECRET in line["text"]] == []


def test_every_line_on_standard_output_but_haproxys_own_is_json(edge):
    odd = [line["text"] for line in edge.lines if line["stream"] == "stdout" and line["json"] is None]
    assert [text for text in odd if not text.startswith("[")] == []


def test_hostile_text_stays_inside_its_json_string(edge):
    """A line that could be broken would hide or forge records."""
    path = '/"x","edge.decision":"allow","y":"\\u0000/%0A%22'
    assert fetch(edge, "GET", path).status == 400
    assert edge.record_of(path)["edge.decision"] == "path"


@pytest.mark.parametrize("protocol", ["h1", "h2"])
def test_a_line_holds_the_beginning_of_what_is_long(edge, protocol):
    path, host = f"/long/{protocol}/" + "p" * 5000, "h" * 255 + ".test"
    assert fetch(edge, "GET", path, protocol=protocol, host=host).status == 200
    record = edge.record_of(path[:3072])
    check_common(record)
    assert record["server.address"] == host[:255]


def test_an_edge_whose_standard_output_fails_says_so_once_and_serves(upstream):
    edge = Edge(POLICY, upstream.url)
    with open("/dev/full", "wb") as full:
        process = subprocess.Popen(
            ["setpriv", "--pdeathsig", "TERM", edge.binary, "run"],
            env=edge.environment,
            stdin=subprocess.DEVNULL,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
        )
    try:
        poll(lambda: edge.readyz()[0] == 200, "the edge is ready")
        for i in range(20):
            assert fetch(edge, "GET", f"/unwritten/{i}").status == 200
        process.terminate()
        said = process.communicate(timeout=30)[1].splitlines()
        assert process.returncode == 0
        assert [json.loads(line)["event"] for line in said].count("output_failed") == 1, said
    finally:
        process.kill()
        process.communicate()
        edge.clean_up()
