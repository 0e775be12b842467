"""/metrics of an agent: a scraper's rules, and that the numbers are those of the requests made."""

import contextlib
import json
import os
import resource
import shutil
import signal
import socket
import subprocess
import sys

import pytest

import spop
from clients import fetch
from edge import ROOT, Edge, Ports, poll
from policies import config_rule, header_rule, limit_rule, policy, under
from valkey import Valkey

sys.path.insert(0, str(ROOT / "schemas/reference"))
import tables  # noqa: E402

POLICY = policy(
    version=7,
    config=[config_rule("shut", under("/shut"), block="block"), config_rule("watch", under("/watch"), block="log")],
    limits=[
        limit_rule("once", under("/once"), limit=1, period="1h", burst=1),
        limit_rule("loose", under("/loose"), limit=1, period="1h", burst=1, action="log"),
    ],
    headers=[header_rule("tag", under("/tagged"), ("X-Tag", "1"))],
)


@pytest.fixture(scope="module")
def edge(upstream):
    with Edge(POLICY, upstream.url) as e:
        yield e


def rows(*states):
    return {m["name"]: m for m in tables.metrics() if m["when"] in ("always", "nonzero", *states)}


def labels_of(family):
    """The sets of label names of its series; of a histogram's _count there are none."""
    return {tuple(sorted(name for name, _ in labels)) for sample, labels in family.samples if not sample.endswith("_count")}


def hold_against_the_table(families, known):
    assert list(families) == list(known)
    for name, family in families.items():
        row = known[name]
        assert (family.type, family.help) == (row["type"], row["meaning"]), name
        assert labels_of(family) <= {tuple(sorted(row["labels"]))}, name
        assert family.samples or row["when"] == "nonzero", f"{name} has no sample"
        assert name.startswith("edge_") and name.endswith("_total") == (family.type == "counter"), f"{name} is a {family.type}"


def ask_for_everything(edge):
    """One request for each of the families whose series are there once they are above zero."""
    for path in ("/shut/all", "/once/all", "/tagged/all"):
        fetch(edge, "GET", path)

    def all_there():
        families = edge.metrics()
        return families if all(families[name].samples for name, row in rows().items() if row["when"] == "nonzero") else None

    return poll(all_there, "every family has a series")


def test_the_page_is_what_the_table_says(edge):
    status, _, headers = edge.internal("/metrics")
    assert (status, headers["content-type"]) == (200, "text/plain; version=0.0.4; charset=utf-8")
    hold_against_the_table(ask_for_everything(edge), rows("embedded"))


def test_the_page_is_what_the_table_says_where_limits_are_counted_in_valkey(upstream):
    with Valkey() as valkey, Edge(POLICY, upstream.url, settings={"VALKEY_URL": valkey.url()}) as edge:
        hold_against_the_table(ask_for_everything(edge), rows("valkey"))
    assert rows("embedded", "valkey") == {m["name"]: m for m in tables.metrics()}, "a row that is on no page"


def test_prometheus_own_tool_finds_no_fault(edge):
    if shutil.which("promtool") is None:
        pytest.skip("there is no promtool (Debian's package prometheus)")
    ask_for_everything(edge)
    text = edge.internal("/metrics")[1]
    done = subprocess.run(["promtool", "check", "metrics"], input=text, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, "")


def test_no_counter_falls_between_two_scrapes(edge):
    before = edge.metrics()
    for path in ("/", "/shut", "/once", "/once", "/a/../b"):
        fetch(edge, "GET", path)
    after = edge.settled()
    for name, family in before.items():
        if family.type in ("counter", "histogram"):
            for series, value in family.samples.items():
                assert after[name].samples[series] >= value, series


def moved(name, before, after):
    """{labels' values: by how much} of the series of a family that moved."""
    grown = {series: n - before[name].samples.get(series, 0) for series, n in after[name].samples.items()}
    return {tuple(value for _, value in labels): n for (_, labels), n in grown.items() if n}


def counted(edge, method, path, **headers):
    """The metrics before and after one request."""
    before = edge.settled()
    fetch(edge, method, path, list(headers.items()))
    return before, edge.settled()


# How each ends: status and origin as a scraper sees them.
@pytest.mark.parametrize(
    "method, path, decision, code, origin",
    [
        ("GET", "/passes", "allow", "200", "upstream"),
        ("GET", "/shut/1", "block", "403", "edge"),
        ("GET", "/watch/1", "would_block", "200", "upstream"),
        ("GET", "/a/../b", "path", "400", "edge"),
        ("get", "/passes", "method", "400", "edge"),
    ],
)
def test_a_request_counts_once_under_each_heading(edge, method, path, decision, code, origin):
    before, after = counted(edge, method, path)
    assert moved("edge_decisions_total", before, after) == {(decision,): 1}
    assert moved("edge_responses_total", before, after) == {(code, origin): 1}
    assert moved("edge_requests_total", before, after) == {(f"{code[0]}xx",): 1}
    assert moved("edge_upstream_errors_total", before, after) == {}
    assert moved("edge_request_duration_seconds", before, after)[()] == 1


@pytest.mark.parametrize(
    "path, family, want",
    [
        ("/shut/2", "edge_config_rule_total", {("matched", "shut"): 1, ("blocked", "shut"): 1}),
        ("/watch/2", "edge_config_rule_total", {("matched", "watch"): 1, ("would_block", "watch"): 1}),
        ("/tagged/2", "edge_header_rule_total", {("matched", "tag"): 1}),
        ("/loose/2", "edge_ratelimit_rule_total", {("checked", "loose"): 1, ("would_limit", "loose"): 1}),
        ("/free/2", "edge_ratelimit_rule_total", {}),
    ],
)
def test_a_rule_counts_what_it_did(edge, path, family, want):
    fetch(edge, "GET", path)
    assert moved(family, *counted(edge, "GET", path)) == want


def test_a_refusal_by_a_limit_counts(edge):
    fetch(edge, "GET", "/once/warm")
    before, after = counted(edge, "GET", "/once/spent")
    assert moved("edge_decisions_total", before, after) == {("rate_limited",): 1}
    assert moved("edge_responses_total", before, after) == {("429", "edge"): 1}
    assert moved("edge_ratelimit_rule_total", before, after) == {("checked", "once"): 1, ("limited", "once"): 1}
    assert edge.metric("edge_ratelimit_keys") >= 1
    assert edge.metric("edge_ratelimit_store", kind="embedded") == 1


def test_an_upstream_that_does_not_answer_counts_by_its_cause():
    nobody = Ports()
    with contextlib.closing(nobody), Edge(POLICY, f"http://127.0.0.1:{nobody.first}") as edge:
        before, after = counted(edge, "GET", "/passes")
    assert moved("edge_upstream_errors_total", before, after) == {("refused",): 1}
    assert moved("edge_decisions_total", before, after) == {("upstream_error",): 1}
    assert moved("edge_responses_total", before, after) == {("502", "edge"): 1}


def sum_of(families, name):
    return sum(value for (sample, _), value in families[name].samples.items() if sample == name)


def test_all_headings_add_up_to_the_same(edge):
    ask_for_everything(edge)
    families = edge.settled()
    n = sum_of(families, "edge_responses_total")
    assert n > 0
    assert sum_of(families, "edge_requests_total") == sum_of(families, "edge_decisions_total") == n
    assert families["edge_request_duration_seconds"].samples[("edge_request_duration_seconds_count", ())] == n


def test_what_was_counted_outlives_the_agent(upstream):
    with Edge(POLICY, upstream.url) as edge:
        ask_for_everything(edge)
        before, killed = edge.settled(), edge.agent_pids()[0]
        os.kill(killed, signal.SIGKILL)
        poll(lambda: edge.agent_pids().get(0, killed) != killed and edge.readyz()[0] == 200, "another agent serves")
        after = poll(edge.metrics, "it shows its metrics")
        for name in ("edge_responses_total", "edge_decisions_total", "edge_ratelimit_rule_total"):
            for series, value in before[name].samples.items():
                assert after[name].samples[series] >= value, series


def test_stats_show_the_version_that_decided(edge):
    ask_for_everything(edge)
    families = edge.settled()
    status, text, headers = edge.internal("/stats")
    assert (status, headers["content-type"]) == (200, "application/json")
    page = json.loads(text)
    assert (page["agent"], page["records_lost"], page["rules_left_out"]) == (0, 0, 0)
    [version] = page["versions"]
    assert (version["config_version"], version["cohort"]) == (7, "active")
    assert version["requests"] == sum(sum(codes.values()) for codes in version["status_codes"].values()) == sum(version["latency"].values())
    for decision in ("block", "rate_limited", "allow"):
        assert version["decisions"].get(decision, 0) == families["edge_decisions_total"].samples[("edge_decisions_total", (("decision", decision),))]
    assert version["rules"]["config"]["shut"]["blocked"] == version["rules"]["config"]["shut"]["matched"] >= 1
    assert version["rules"]["request_headers"]["tag"]["matched"] >= 1
    assert json.loads(edge.internal("/stats")[1]) == page


def test_stats_name_who_is_limited_most(upstream):
    with Edge(POLICY, upstream.url) as edge:
        for i in range(40):
            fetch(edge, "GET", f"/once/{i}")
        edge.settled()
        [most, *_] = poll(lambda: json.loads(edge.internal("/stats")[1])["versions"][0]["most_limited"], "a limited subject was looked at")
        assert (most["rule"], most["display"]) == ("once", "127.0.0.1")
        assert most["count"] % 16 == 0 and len(most["subject"]) == 32 and most["err"] == 0


def test_a_refused_policy_file_shows_until_it_is_corrected(upstream):
    with Edge(POLICY, upstream.url) as edge:
        assert edge.metric("edge_policy_refused") == 0
        edge.write_policy(b"{")
        edge.signal(signal.SIGHUP)
        poll(lambda: edge.metric("edge_policy_refused") == 1, "the file is refused")
        assert edge.metric("edge_policy_version") == 7
        edge.write_policy(POLICY)
        edge.signal(signal.SIGHUP)
        poll(lambda: edge.metric("edge_policy_refused") == 0, "the file is taken again")


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
