"""The local backstop: a client that floods one edge is refused from that edge's own memory, in time and by its own page, and nobody else is."""

import signal
import threading
import time

import pytest

from agent_faults import FAULTS, both_up
from clients import client, fetch
from edge import Edge, poll
from policies import config_rule, limit_rule, policy, template, under

PROTOCOLS = pytest.mark.parametrize("protocol", ["h1", "h2"])
SETTINGS = {"CLIENT_IP_SOURCE": "xff", "TRUSTED_PROXIES": "127.0.0.1"}
HOUR = {"limit": 2, "period": "1h", "burst": 2}  # a token each half hour: none comes while a test runs
SECOND = {"limit": 1, "period": "1s", "burst": 1}
ORIGIN = "https://app.test"
PREFLIGHT = [("Origin", ORIGIN), ("Access-Control-Request-Method", "PUT")]
UNREACHABLE = "redis://127.0.0.1:9/"  # nobody listens on the discard port

numbers = iter(range(1, 250))


def limited(backstop=HOUR, version=1, **members):
    """/own/: a page of its own; /shut/: blocked; /web/: pages of ORIGIN may read it."""
    document = policy(
        config=[
            config_rule("own", under("/own/"), responses={"rate_limited": "own"}),
            config_rule("shut", under("/shut/"), block="block"),
            config_rule("web", under("/web/"), cors_policy="web"),
        ],
        responses={"own": template(429, "wait {{retry_after}} s, {{request_id}}", "text/plain")},
        version=version,
        **members,
    )
    document["global"]["cors_policies"] = {"web": {"origins": [ORIGIN, "https://other.test"], "methods": ["PUT"]}}
    if backstop is not None:
        document["global"]["backstop"] = backstop
    return document


@pytest.fixture(scope="module")
def edge(upstream):
    with Edge(limited(), upstream.url, SETTINGS) as e:
        yield e


@pytest.fixture
def address():
    """A client that no other test has."""
    return f"198.51.100.{next(numbers)}"


def of(address):
    return [("X-Forwarded-For", address)]


def ask(edge, address, target="/", method="GET", protocol="h1", headers=()):
    return fetch(edge, method, target, of(address) + list(headers), protocol=protocol)


def statuses(edge, address, n, **kwargs):
    return [ask(edge, address, **kwargs).status for _ in range(n)]


def publish(edge, document):
    """Waits until every agent has it in force."""
    n = len(edge.matching(event="policy_loaded"))
    edge.write_policy(document)
    edge.signal(signal.SIGHUP)
    edge.wait_lines(n + int(edge.environment["EDGE_AGENTS"]), event="policy_loaded")


# --- what a client is told ---


@PROTOCOLS
def test_a_refusal_has_its_page_and_retry_after_and_is_not_stored(edge, address, protocol):
    assert statuses(edge, address, 2, protocol=protocol) == [200, 200]
    refused = ask(edge, address, f"/refused/{protocol}", protocol=protocol)
    wait = int(refused.get("retry-after"))
    assert refused.status == 429 and 1700 < wait <= 1800
    assert refused.get("cache-control") == "no-store" and refused.get("content-type") == "application/json"
    assert refused.json()["kind"] == "rate_limited" and refused.json()["retry_after"] == wait
    own = ask(edge, address, "/own/refused", protocol=protocol)
    assert own.status == 429 and own.get("content-type") == "text/plain"
    assert own.body.startswith(f"wait {own.get('retry-after')} s, ".encode())
    record = edge.record_of(f"/refused/{protocol}")
    assert record["edge.decision"] == "backstop" and record["client.address"] == address
    assert not any("rate_limit" in name for name in record), record


@PROTOCOLS
def test_other_clients_pass_while_one_is_refused(edge, address, protocol):
    assert statuses(edge, address, 5, protocol=protocol) == [200, 200, 429, 429, 429]
    assert statuses(edge, f"203.0.113.{address.rpartition('.')[2]}", 2, protocol=protocol) == [200, 200]


def test_both_protocols_spend_one_share(edge, address):
    assert ask(edge, address, protocol="h1").status == ask(edge, address, protocol="h2").status == 200
    assert [ask(edge, address, protocol=p).status for p in ("h1", "h2")] == [429, 429]


def test_a_subscriber_of_ipv6_has_one_share_whatever_address_it_uses(edge):
    assert [ask(edge, f"2001:db8:1:2::{i:x}").status for i in range(1, 5)] == [200, 200, 429, 429]
    assert ask(edge, "2001:db8:1:2:ffff:ffff:ffff:ffff").status == 429
    assert ask(edge, "2001:db8:1:3::1").status == 200


@PROTOCOLS
def test_a_preflight_is_charged(edge, address, protocol):
    """With a CORS policy, where the edge answers it, and without one, where the upstream does."""
    seen = [ask(edge, address, target, "OPTIONS", protocol, PREFLIGHT).status for target in ("/web/x", "/plain", "/web/x", "/plain")]
    assert seen == [204, 200, 429, 429]
    assert ask(edge, address, protocol=protocol).status == 429


@PROTOCOLS
@pytest.mark.parametrize("method, headers", [("GET", [("Origin", ORIGIN)]), ("OPTIONS", PREFLIGHT)], ids=["request", "preflight"])
def test_a_page_may_read_the_refusal_where_it_may_read_the_answer(edge, address, protocol, method, headers):
    assert statuses(edge, address, 2, protocol=protocol) == [200, 200]
    refused = ask(edge, address, "/web/x", method, protocol, headers)
    assert (refused.status, refused.get("access-control-allow-origin")) == (429, ORIGIN)
    assert "origin" in refused.get("vary").lower() and int(refused.get("retry-after")) > 0
    foreign = ask(edge, address, "/web/x", method, protocol, [("Origin", "https://evil.test"), *headers[1:]])
    assert (foreign.status, foreign.get("access-control-allow-origin")) == (429, None)


def test_a_blocked_request_costs_nothing(edge, address):
    assert statuses(edge, address, 5, target="/shut/x") == [403] * 5
    assert statuses(edge, address, 3) == [200, 200, 429]


def test_what_is_refused_does_not_reach_the_upstream(edge, upstream, address):
    assert statuses(edge, address, 4, target=f"/reach/{address}") == [200, 200, 429, 429]
    assert len(upstream.seen(f"/reach/{address}")) == 2


@PROTOCOLS
def test_of_many_requests_on_open_connections_exactly_burst_pass(edge, address, protocol):
    passed = []

    def flood():
        with client(edge, protocol) as c:
            passed.extend(c.request("GET", "/flood", of(address)).status for _ in range(50))

    threads = [threading.Thread(target=flood) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(passed) == [200] * 2 + [429] * 198


@PROTOCOLS
def test_it_recovers_after_the_wait_that_was_told(upstream, address, protocol):
    with Edge(limited(SECOND), upstream.url, SETTINGS) as edge:
        assert ask(edge, address, protocol=protocol).status == 200
        refused = poll(lambda: (lambda r: r if r.status == 429 else None)(ask(edge, address, protocol=protocol)), "the share is spent")
        told = time.monotonic() + int(refused.get("retry-after"))
        poll(lambda: time.monotonic() >= told, "the client has waited as long as it was told")
        assert ask(edge, address, protocol=protocol).status == 200


# --- what turns it off, and what does not ---


def test_the_kill_switch_of_rate_limits_leaves_it_on(upstream, address):
    document = limited(limits=[limit_rule("site", "true", 1, "1h", 1)], kill_switch={"rate_limit": True})
    with Edge(document, upstream.url, SETTINGS) as edge:
        assert statuses(edge, address, 3) == [200, 200, 429]
        poll(lambda: edge.metric("edge_decisions_total", decision="backstop") == 1, "the refusal is counted as the backstop's")


def test_it_holds_without_valkey_where_limits_pass(upstream, address):
    document = limited(limits=[limit_rule("site", "true", 1, "1h", 1)])
    with Edge(document, upstream.url, SETTINGS | {"VALKEY_URL": UNREACHABLE, "VALKEY_TIMEOUT": "10ms"}) as edge:
        assert statuses(edge, address, 3) == [200, 200, 429]
        assert edge.metric("edge_ratelimit_failed_open_total") == 2, "what the backstop refuses, no limit is asked about"
        assert edge.readyz()[0] == 200


# --- policies and agents come and go ---


@pytest.fixture
def own_edge(upstream):
    with Edge(limited(), upstream.url, SETTINGS | {"EDGE_AGENTS": "2"}) as e:
        both_up(e)
        yield e


def test_a_reload_keeps_what_a_client_has_left_unless_its_settings_change(own_edge, address):
    assert statuses(own_edge, address, 3) == [200, 200, 429]
    publish(own_edge, limited(version=2, kill_switch={"rate_limit": True}))
    assert ask(own_edge, address).status == 429
    FAULTS["reload"](own_edge)
    assert ask(own_edge, address).status == 429
    publish(own_edge, limited(HOUR | {"limit": 3}, version=3))
    assert statuses(own_edge, address, 3) == [200, 200, 429]
    publish(own_edge, limited(None, version=4))
    assert statuses(own_edge, address, 5) == [200] * 5
    publish(own_edge, limited(HOUR | {"limit": 3}, version=5))
    assert statuses(own_edge, address, 3) == [200, 200, 429]


@pytest.mark.parametrize("fault", ["exchange", "kill"])
def test_a_new_agent_begins_anew_and_refuses_again(own_edge, address, fault):
    """The state is a process's own: each new one gives a client its burst once more, and no more than that."""
    assert statuses(own_edge, address, 3) == [200, 200, 429]
    FAULTS[fault](own_edge)
    assert statuses(own_edge, address, 3) == [200, 200, 429]


# --- what is told of it ---


def test_clients_and_requests_are_counted(upstream, address):
    with Edge(limited(HOUR | {"max_entries": 1000}), upstream.url, SETTINGS) as edge:
        assert edge.metric("edge_backstop_clients_max") == 1000
        assert statuses(edge, address, 4) == [200, 200, 429, 429]
        poll(lambda: edge.metric("edge_backstop_clients") == 1, "the client is tracked")
        poll(lambda: edge.metric("edge_decisions_total", decision="backstop") == 2, "two refusals are counted")
        assert edge.metric("edge_backstop_untracked_total") == 0
        publish(edge, limited(None, version=2))
        assert edge.metric("edge_backstop_clients") == edge.metric("edge_backstop_clients_max") == 0


def test_a_full_table_lets_new_clients_pass_and_tells(upstream):
    with Edge(limited(HOUR | {"max_entries": 1000}), upstream.url, SETTINGS) as edge, client(edge) as c:
        for i in range(1000):
            assert c.request("GET", "/", of(f"10.0.{i // 250}.{i % 250}")).status == 200
        assert statuses(edge, "192.0.2.77", 5) == [200] * 5
        assert edge.metric("edge_backstop_untracked_total") == 5
        assert statuses(edge, "10.0.0.0", 2) == [200, 429]
        poll(lambda: edge.metric("edge_backstop_clients") == 1000, "all places are taken")
