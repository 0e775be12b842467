"""/metrics of an agent: a scraper's rules, and that the numbers are those of the requests made."""

import contextlib
import resource
import socket

import pytest

import spop
from clients import fetch
from edge import Edge, poll
from policies import config_rule, limit_rule, policy, under

POLICY = policy(
    version=7,
    config=[config_rule("shut", under("/shut"), block="block"), config_rule("watch", under("/watch"), block="log")],
    limits=[limit_rule("once", under("/once"), limit=1, period="1h", burst=1)],
)


@pytest.fixture(scope="module")
def edge(upstream):
    with Edge(POLICY, upstream.url) as e:
        yield e


def test_the_page_keeps_the_rules_of_the_exposition_format(edge):
    status, text, headers = edge.internal("/metrics")
    assert (status, headers["content-type"]) == (200, "text/plain; version=0.0.4; charset=utf-8")
    families = edge.metrics()
    for name, family in families.items():
        assert family.samples, f"{name} has no sample"
        assert family.type in ("counter", "gauge", "histogram"), name
        assert name.startswith("edge_"), name
        assert name.endswith("_total") == (family.type == "counter"), f"{name} is a {family.type}"
    assert "edge_requests_total" in families


def test_no_counter_falls_between_two_scrapes(edge):
    before = edge.metrics()
    for path in ("/", "/shut", "/once", "/once", "/a/../b"):
        fetch(edge, "GET", path)
    after = edge.metrics()
    for name, family in before.items():
        if family.type == "counter":
            for series, value in family.samples.items():
                assert after[name].samples[series] >= value, series


@pytest.mark.parametrize(
    "method, path, decision",
    [
        ("GET", "/passes", "allow"),
        ("GET", "/shut/1", "block"),
        ("GET", "/watch/1", "would_block"),
        ("GET", "/a/../b", "path"),
        ("get", "/passes", "method"),
    ],
)
def test_a_request_counts_once_under_its_decision(edge, method, path, decision):
    before = edge.metrics()["edge_requests_total"].samples
    fetch(edge, method, path)
    after = edge.metrics()["edge_requests_total"].samples
    moved = {dict(labels)["decision"]: after[key] - before[key] for key in after if after[key] != before[key] for labels in [key[1]]}
    assert moved == {decision: 1}


def test_a_refusal_by_a_limit_counts(edge):
    fetch(edge, "GET", "/once/warm")
    before = edge.metric("edge_requests_total", decision="rate_limited")
    assert fetch(edge, "GET", "/once/spent").status == 429
    assert edge.metric("edge_requests_total", decision="rate_limited") == before + 1
    assert edge.metric("edge_ratelimit_keys") == 1
    assert edge.metric("edge_ratelimit_store", kind="embedded") == 1


def test_every_answered_notify_is_an_ack_and_in_the_end_a_record(edge):
    for i in range(20):
        fetch(edge, "GET", f"/counted/{i}")
    families = edge.metrics()
    notifies = families["edge_spop_notifies_total"].samples[("edge_spop_notifies_total", ())]
    assert notifies >= 20
    assert edge.metric("edge_spop_acks_total") == notifies
    poll(lambda: edge.metric("edge_records_total") == notifies, "every decided request has its record")
    assert edge.metric("edge_records_malformed_total") == 0
    assert edge.metric("edge_spop_protocol_errors_total") == 0


def test_a_refused_request_before_any_agent_counts_as_without_verdict(edge):
    before = edge.metric("edge_records_without_verdict_total")
    assert fetch(edge, "GET", "/bad", [("Bad Name", "x")]).status == 400
    poll(lambda: edge.metric("edge_records_without_verdict_total") == before + 1, "the record without a verdict is counted")


def test_the_version_in_force_is_shown(edge):
    assert edge.metric("edge_policy_version") == 7
    assert edge.metric("edge_policy_loads_total", result="loaded") == 1


def test_a_disconnect_counts_when_the_agent_says_it(edge):
    before = edge.metric("edge_spop_disconnects_total")
    path = edge.run_dir / "agent-0.sock"
    with spop.Agent(path) as agent:
        agent.sock.sendall(b"\xff\xff\xff\xff")
        assert agent.receive()[0] == spop.AGENT_DISCONNECT
    poll(lambda: edge.metric("edge_spop_disconnects_total") == before + 1, "the agent's DISCONNECT is counted")


def test_connections_beyond_the_number_a_worker_keeps_are_refused_and_counted(upstream):
    with Edge(POLICY, upstream.url, settings={"EDGE_WORKERS": "1"}) as edge, contextlib.ExitStack() as stack:
        for _ in range(1300):
            stack.enter_context(spop.Agent(edge.run_dir / "agent-0.sock", greet=False))
        poll(lambda: edge.metric("edge_spop_refused_total") > 0, "refused connections are counted")
        stack.close()
        poll(lambda: fetch(edge, "GET", "/passes").status == 200, "the edge serves on")


def test_an_agent_without_descriptors_rests_says_so_once_and_goes_on_later(upstream):
    with Edge(POLICY, upstream.url) as edge:
        agent = edge.agent_pids()[0]
        limits = resource.prlimit(agent, resource.RLIMIT_NOFILE)
        resource.prlimit(agent, resource.RLIMIT_NOFILE, (3, limits[1]))
        with socket.socket(socket.AF_UNIX) as waiting:
            waiting.connect(str(edge.run_dir / "records-0.sock"))
            edge.event("accept_failed", component="agent-0")
            resource.prlimit(agent, resource.RLIMIT_NOFILE, limits)
        poll(lambda: edge.metric("edge_accept_failures_total") > 0, "it is counted")
        poll(lambda: edge.readyz()[0] == 200 and fetch(edge, "GET", "/passes").status == 200, "the edge serves again")


@pytest.mark.parametrize("path, status", [("/livez", 200), ("/readyz", 200), ("/nothing", 404)])
def test_the_internal_pages(edge, path, status):
    assert edge.internal(path)[0] == status


@pytest.mark.parametrize("path, status", [("/livez", 200), ("/readyz", 200), ("/metrics", 404), ("/", 404)])
def test_the_pages_for_the_balancer(edge, path, status):
    got, _, headers = edge.health(path)
    assert (got, headers["cache-control"]) == (status, "no-store")
