"""Every decision there is: a request that ends in it, the one line that says so, and its counter, which moves by one and no other with it."""

import collections
import contextlib
import itertools
import re
import threading

import pytest

from certs import make_cert
from clients import StreamReset, fetch
from edge import ROOT, Edge, poll
from faulty_upstream import FaultyUpstream
from policies import config_rule, limit_rule, policy, under
from tls_upstream import NamedUpstream
from upstream import Holding
from uploads import trickle, upload

DECISIONS = re.findall(r'^DECISION_ROW\((\w+), "(\w+)"', (ROOT / "schemas/decisions.def").read_text(), re.M)
NUMBERS = itertools.count(1)
PROTOCOLS = pytest.mark.parametrize("protocol", ["h1", "h2"])
CLIENT = [("X-Client", "192.0.2.1")]
CAP = 3

POLICY = policy(
    version=5,
    config=[
        config_rule("shut", under("/block/"), block="block"),
        config_rule("seen", under("/would_block/"), block="log"),
        config_rule("slow", under("/delay/"), upstream_timeout="200ms"),
        config_rule("small", under("/body_limit/"), body_limit=10),
        config_rule("web", under("/preflight/"), cors_policy="web"),
    ],
    limits=[limit_rule("once", under("/rate_limited/"), limit=1, period="24h", burst=1)],
)
POLICY["global"]["defaults"]["body_read_timeout"] = "1s"
POLICY["global"]["cors_policies"] = {"web": {"origins": ["https://app.example"]}}


class HoldingUpstream(Holding, FaultyUpstream):
    pass


@pytest.fixture(scope="module")
def upstream():
    with HoldingUpstream() as u:
        yield u
        u.released.set()


@pytest.fixture(scope="module")
def plain(upstream):
    """One thread of HAProxy's: records come in the order in which requests ended."""
    settings = {"CLIENT_IP_SOURCE": "header:X-Client", "TRUSTED_PROXIES": "127.0.0.1", "MAX_INFLIGHT": CAP, "EDGE_HAPROXY_THREADS": "1"}
    with Edge(POLICY, upstream.url, settings) as e:
        yield e


@pytest.fixture(scope="module")
def secure(tmp_path_factory, authority):
    """An upstream whose certificate nobody vouches for."""
    pem = make_cert(tmp_path_factory.mktemp("self-signed"))
    with NamedUpstream({None: pem}) as u, Edge(policy(), u.url, {"SSL_CERT_FILE": authority.pem, "EDGE_HAPROXY_THREADS": "1"}) as e:
        yield e


@pytest.fixture(scope="module")
def undecided(upstream):
    """Its agent has no policy, so it decides nothing; HAProxy writes the lines, and the agent counts."""
    edge = Edge(b"{}", upstream.url, {"EDGE_HAPROXY_THREADS": "1"}).start(ready=False)
    yield edge
    edge.stop()


@pytest.fixture(scope="module")
def flooded(upstream):
    """Its one client has spent its share."""
    document = policy()
    document["global"]["backstop"] = {"limit": 1, "period": "24h"}
    with Edge(document, upstream.url, {"CLIENT_IP_SOURCE": "header:X-Client", "TRUSTED_PROXIES": "127.0.0.1", "EDGE_HAPROXY_THREADS": "1"}) as e:
        assert fetch(e, "GET", "/spent", CLIENT).status == 200
        poll(lambda: counts(e)["allow"] == 1, "it is counted")
        yield e


class Case:
    """One request that is to end in a decision; its target is its own."""

    def __init__(self, edge, upstream, protocol, decision):
        self.edge, self.upstream, self.protocol, self.decision = edge, upstream, protocol, decision
        self.target = f"/{decision}/{protocol}/{next(NUMBERS)}"
        self.headers = CLIENT

    def ask(self, method="GET", target=None, headers=None, **kwargs):
        self.target = target or self.target
        return fetch(self.edge, method, self.target, self.headers if headers is None else headers, protocol=self.protocol, **kwargs).status


@contextlib.contextmanager
def full_edge(case):
    """As many requests at the upstream as may be under way; their own decision comes only when they end."""
    case.upstream.released.clear()
    held = [threading.Thread(target=fetch, args=(case.edge, "GET", f"/held{case.target}/{i}", CLIENT)) for i in range(CAP)]
    for thread in held:
        thread.start()
    try:
        poll(lambda: len(case.upstream.seen(f"/held{case.target}/")) == CAP, "the edge is full")
        yield
    finally:
        case.upstream.released.set()
        for thread in held:
            thread.join()


def overloaded(case):
    with full_edge(case):
        status = case.ask()
        case.edge.record_of(case.target)
    return status


def body_limit(case):
    return case.ask("POST", body=b"x" * 11)


def body_timeout(case):
    """Over HTTP/2 its stream is reset, whichever of both is seen first."""
    with upload(case.edge, case.protocol, case.target, CLIENT, length=None) as request:
        end = trickle(request, 0.1)
        try:
            outcome = request.outcome()
        finally:
            end()
    return getattr(outcome, "status", 408)


def preflight(case):
    return case.ask("OPTIONS", headers=[*CLIENT, ("Origin", "https://app.example"), ("Access-Control-Request-Method", "GET")])


# decision: how a request ends in it, and the status it then has.
RECIPES = {
    "allow": (lambda case: case.ask(), 200),
    "would_block": (lambda case: case.ask(), 200),
    "block": (lambda case: case.ask(), 403),
    "path": (lambda case: case.ask(target=f"{case.target}/a%5Cb"), 400),
    "method": (lambda case: case.ask("get"), 400),
    "identity": (lambda case: case.ask(headers=[]), 400),
    "bad_request": (lambda case: case.ask(host="edge.test:x"), 400),
    "backstop": (lambda case: case.ask(), 429),
    "rate_limited": (lambda case: case.ask(), 429),
    "unavailable": (lambda case: case.ask(), 503),
    "overloaded": (overloaded, 503),
    "body_limit": (body_limit, 413),
    "body_timeout": (body_timeout, 408),
    "upstream_timeout": (lambda case: case.ask(target=f"/delay/5000{case.target}"), 504),
    "upstream_tls": (lambda case: case.ask(), 502),
    "upstream_error": (lambda case: case.ask(target=f"/garbage{case.target}"), 502),
    "preflight": (preflight, 204),
}
# Decisions that no request can end in while an agent refuses to serve what leads to them: the policy, and where it is refused.
REFUSED = {
    "missing_key": (
        policy(limits=[{**limit_rule("keyed", under("/"), limit=1, period="1h", burst=1), "key": ["ip", "header:x-key"], "on_missing_key": "reject"}]),
        "/rate_limit_rules/0/key",
    ),
}
ELSEWHERE = {"backstop": "flooded", "upstream_tls": "secure", "unavailable": "undecided"}  # edges on which no request is allowed


def counts(edge):
    return {dict(labels)["decision"]: n for (_, labels), n in edge.metrics()["edge_decisions_total"].samples.items()}


def moved(edge, before):
    return {name: n - before[name] for name, n in counts(edge).items() if n != before[name]}


def settle(edge):
    """Every request so far is counted: one more is, and its record came behind theirs."""
    target = f"/settled/{next(NUMBERS)}"
    assert fetch(edge, "GET", target, CLIENT).status == 200
    edge.record_of(target)


def ends_in(case, recipe, status):
    with contextlib.suppress(StreamReset):
        assert recipe(case) == status
    line = case.edge.record_of(case.target)
    assert (line["edge.decision"], line["http.response.status_code"]) == (case.decision, status)
    assert line["edge.upstream_answered"] is (case.decision in ("allow", "would_block"))


def test_every_decision_has_a_recipe():
    assert sorted([*RECIPES, *REFUSED]) == sorted(name for _, name in DECISIONS)


@pytest.mark.parametrize("decision", REFUSED)
def test_what_no_request_can_end_in_yet_is_refused_when_it_is_to_be_served(upstream, decision):
    """Who serves such policies gives the decision a recipe."""
    document, path = REFUSED[decision]
    edge = Edge(document, upstream.url).start(ready=False)
    try:
        assert edge.event("policy_error", code="unsupported")["path"] == path
        assert fetch(edge, "GET", "/").status == 503
    finally:
        edge.stop()


@PROTOCOLS
@pytest.mark.parametrize("decision", [name for name in RECIPES if name not in ELSEWHERE])
def test_a_decision_is_one_line_and_one_count(plain, upstream, decision, protocol):
    case = Case(plain, upstream, protocol, decision)
    if decision == "rate_limited":
        case.headers = [("X-Client", f"192.0.2.{next(NUMBERS)}")]
        assert fetch(plain, "GET", f"/rate_limited/first/{protocol}", case.headers).status == 200
    settle(plain)
    before = counts(plain)
    ends_in(case, *RECIPES[decision])
    settle(plain)
    want = collections.Counter({decision: 1}) + collections.Counter(allow=1 + (CAP if decision == "overloaded" else 0))
    assert moved(plain, before) == want


@PROTOCOLS
@pytest.mark.parametrize("decision", ELSEWHERE)
def test_a_decision_that_excludes_others_is_one_line_and_one_count(request, upstream, decision, protocol):
    """Counted are two: if one were counted twice, they would be three when the second is."""
    edge = request.getfixturevalue(ELSEWHERE[decision])
    before = counts(edge)
    for _ in range(2):
        ends_in(Case(edge, upstream, protocol, decision), *RECIPES[decision])
    poll(lambda: moved(edge, before).get(decision, 0) >= 2, "both are counted")
    assert moved(edge, before) == {decision: 2}
