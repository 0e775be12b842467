"""The access log against hostile requests, and sampling: what stands in a line, what never does, and which lines there are."""

import hashlib
import json
import re

import pytest

from clients import Closed, StreamReset, client, fetch
from edge import ROOT, Edge, poll
from policies import config_rule, header_rule, limit_rule, policy, under

PROTOCOLS = pytest.mark.parametrize("protocol", ["h1", "h2"])
FIELDS = re.findall(r'^LOG_FIELD_ROW\(\w+, "([\w.]+)", (\w+)', (ROOT / "schemas/log_fields.def").read_text(), re.M)
ALWAYS = set(re.findall(r'^LOG_FIELD_ROW\(\w+, "([\w.]+)", \w+, "always"', (ROOT / "schemas/log_fields.def").read_text(), re.M))
EVERYWHERE = ALWAYS - {"edge.config_version", "edge.cohort", "http.request.size"}  # also in HAProxy's lines
PYTHON_TYPES = {"TEXT": str, "NUMBER": int, "BOOL": bool, "RATE": float, "IDS": list, "NAMES": list, "SIGNALS": list}
LINE_MAX = 32 * 1024
SECRET = "sEcReT-value"
SECRETS = [("Authorization", f"Bearer {SECRET}"), ("Cookie", f"session={SECRET}"), ("X-Api-Key", SECRET)]

POLICY = policy(
    version=9,
    config=[config_rule("shut", under("/shut"), block="block"), config_rule("seen", under("/seen"), block="log")],
    limits=[limit_rule("once", under("/once"), limit=1, period="24h", burst=1)],
    headers=[header_rule("mark", under("/seen"), ("X-Mark", "1"))],
)


@pytest.fixture(scope="module")
def edge(upstream):
    with Edge(POLICY, upstream.url) as e:
        yield e


def check_shape(edge):
    """Every line of standard output that is no message of HAProxy's is JSON. Access lines have members of the table, each of its type and in its
    order; those of HAProxy, which knows less about a request, in an order of their own."""
    types = dict(FIELDS)
    order = [name for name, _ in FIELDS]
    for line in list(edge.lines):
        if line["stream"] != "stdout" or line["text"].startswith("["):
            continue
        assert line["json"] is not None, line["text"][:500]
        assert len(line["text"].encode()) <= LINE_MAX
        if line["json"].get("msg") != "access":
            continue
        names = [name for name, _ in json.loads(line["text"], object_pairs_hook=list)]
        assert len(set(names)) == len(names) and EVERYWHERE <= set(names), names
        if "edge.config_version" in names:
            assert names == [name for name in order if name in names] and ALWAYS <= set(names), names
        for name, value in line["json"].items():
            assert type(value) is PYTHON_TYPES[types[name]], (name, value)


def ask(edge, protocol, target, headers=(), host="edge.test"):
    """However it ends."""
    try:
        fetch(edge, "GET", target, headers, protocol=protocol, host=host)
    except (Closed, StreamReset, ConnectionError):
        pass


HOSTILE = {
    "quotes": b'"}{"edge.decision":"allow","x":"\\"\\\\',
    "an escape that is none": b"\\u00zz\\ud800\\",
    "newlines, escaped": b"%0A%0D%22",
    "bytes that are no UTF-8": b"\xff\xfe\xc3\x28\xed\xa0\x80",
    "UTF-8": "é€😀\u2028".encode(),
    "control bytes": b"\x01\x1b[31m\x7f",
    "NUL": b"a\x00b",
    "a newline": b"a\nb",
    "very long": b"x" * 50000,
    "very long and to be escaped": b'"' * 50000,
    "words of the record": b"- 3 0 a 1 allow - \t\t200",
}


@pytest.fixture(scope="module")
def undecided(upstream):
    """Its agent has no policy, so HAProxy writes the lines."""
    edge = Edge(b"{}", upstream.url).start(ready=False)
    yield edge
    edge.stop()


@PROTOCOLS
@pytest.mark.parametrize("who", ["edge", "undecided"])
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_bytes_break_no_line_wherever_they_stand(request, protocol, who, name):
    """A line that could be broken would hide or forge records."""
    edge, text = request.getfixturevalue(who), HOSTILE[name]
    mark = f"/hostile/{protocol}/{list(HOSTILE).index(name)}"
    ask(edge, protocol, mark.encode() + b"/path/" + text, SECRETS)
    ask(edge, protocol, mark.encode() + b"/agent", [*SECRETS, ("User-Agent", text)])
    ask(edge, protocol, mark.encode() + b"/key?a=" + SECRET.encode() + b"&" + text + b"=" + SECRET.encode(), SECRETS)
    ask(edge, protocol, mark.encode() + b"/host", SECRETS, host=text)
    ask(edge, protocol, mark.encode() + b"/name", [*SECRETS, ("X-Request-Id", text)])
    assert fetch(edge, "GET", f"{mark}/last", protocol=protocol).status == (200 if who == "edge" else 503)
    edge.record_of(f"{mark}/last")
    check_shape(edge)
    assert [line["text"] for line in edge.lines if SECRET in line["text"]] == []


@PROTOCOLS
def test_a_line_says_who_asked_for_what_and_which_rules_it_met(edge, protocol):
    target = f"/seen/{protocol}"
    agent = 'Mozilla/5.0 ("quoted" \\ é)'.encode()
    headers = [("User-Agent", agent)]
    query = f"?b=1&a={SECRET}&a=2&{'k' * 65}=1&bare&c[]=x&%64=4"
    assert fetch(edge, "GET", target + query, headers, protocol=protocol, host="Edge.TEST:8080").status == 200
    line = edge.record_of(target)
    assert line["user_agent.original"] == agent.decode()
    assert line["edge.query_keys"] == ["a", "b", "c[]", "d"] and line["edge.query_keys_dropped"] == 2
    assert (line["server.address"], line["client.address"], line["edge.cohort"]) == ("edge.test", "127.0.0.1", "active")
    assert line["edge.config_rules"] == ["seen"] and line["edge.request_header_rules"] == ["mark"]
    assert line["edge.latency_ms"] <= line["duration_ms"] and line["http.request.size"] > 0 and line["http.response.size"] > 0
    assert line["client.signals"] == ["no_accept"]
    absent = {"edge.auth", "trace_id", "span_id", "edge.sample_rate", "edge.upstream_error", "edge.upstream_error_kind", "edge.rate_limit_rule"}
    assert absent.isdisjoint(line)
    assert SECRET not in json.dumps(line)


@PROTOCOLS
def test_a_limit_that_refuses_is_named(edge, protocol):
    for i in range(2):
        fetch(edge, "GET", f"/once/{protocol}/{i}", protocol=protocol)
    line = edge.record_of(f"/once/{protocol}/1")
    assert (line["edge.decision"], line["edge.rate_limit_rule"]) == ("rate_limited", "once")


# --- sampling ---

RATE = 0.25
REQUESTS = 400


def is_chosen(request_id):
    return int.from_bytes(hashlib.sha256(request_id.encode()).digest()[:8], "big") % 10000 < RATE * 10000


@pytest.fixture(scope="module")
def sampling(upstream):
    """One thread of HAProxy's: records come in the order in which requests ended."""
    settings = {"EDGE_LOG_SAMPLE_RATE": str(RATE), "TRUSTED_PROXIES": "127.0.0.1", "EDGE_HAPROXY_THREADS": "1"}
    with Edge(POLICY, upstream.url, settings) as e:
        yield e


def allowed(edge):
    return edge.metric("edge_decisions_total", decision="allow")


def lines_under(edge, prefix):
    return {line["request_id"]: line for line in edge.matching(msg="access") if line.get("url.path", "").startswith(prefix)}


@PROTOCOLS
def test_the_lines_are_those_that_the_hash_says_and_every_request_is_counted(sampling, protocol):
    prefix = f"/sampled/{protocol}/"
    before = allowed(sampling)
    ids = set()
    with client(sampling, protocol) as c:
        for i in range(REQUESTS):
            response = c.request("GET", f"{prefix}{i}")
            assert response.status == 200
            ids.add(dict(response.json()["headers"])["x-request-id"])
    chosen = {i for i in ids if is_chosen(i)}
    assert len(ids) == REQUESTS and 0 < len(chosen) < REQUESTS
    poll(lambda: allowed(sampling) == before + REQUESTS, "every request is counted")
    assert fetch(sampling, "GET", f"/shut/{protocol}").status == 403
    sampling.record_of(f"/shut/{protocol}")
    lines = lines_under(sampling, prefix)
    assert set(lines) == chosen
    assert {line["edge.sample_rate"] for line in lines.values()} == {RATE}


@PROTOCOLS
@pytest.mark.parametrize("target, status", [("/shut/{}", 403), ("/seen/{}", 200), ("/status/500/{}", 500), ("/status/599/{}", 599), ("/a%5Cb/{}", 400)])
def test_what_was_refused_or_would_have_been_and_every_5xx_is_always_there(sampling, protocol, target, status):
    unchosen = next(name for name in (f"{protocol}-{i}" for i in range(1000)) if not is_chosen(name))
    target = target.format(f"{protocol}/always")
    assert fetch(sampling, "GET", target, [("X-Request-Id", unchosen)], protocol=protocol).status == status
    line = sampling.record_of(target)
    assert line["request_id"] == unchosen and "edge.sample_rate" not in line


@PROTOCOLS
def test_a_4xx_of_the_upstream_is_sampled(sampling, protocol):
    names = [f"upstream-{protocol}-{i}" for i in range(40)]
    for name in names:
        assert fetch(sampling, "GET", f"/status/404/{name}", [("X-Request-Id", name)], protocol=protocol).status == 404
    assert fetch(sampling, "GET", f"/shut/behind/{protocol}").status == 403
    sampling.record_of(f"/shut/behind/{protocol}")
    chosen = {name for name in names if is_chosen(name)}
    assert set(lines_under(sampling, "/status/404/upstream-" + protocol)) == chosen and 0 < len(chosen) < len(names)


def test_no_line_of_an_allowed_request_is_written_at_rate_0(upstream):
    with Edge(POLICY, upstream.url, {"EDGE_LOG_SAMPLE_RATE": "0", "EDGE_HAPROXY_THREADS": "1"}) as edge:
        for i in range(20):
            assert fetch(edge, "GET", f"/none/{i}").status == 200
        assert fetch(edge, "GET", "/shut/last").status == 403
        edge.record_of("/shut/last")
        assert lines_under(edge, "/none/") == {}
        assert allowed(edge) == 20
