"""edge-spoa doctor: what it says of an edge that is well, and of each way in which one is not."""

import hashlib
import hmac
import json
import os
import shutil
import signal

import pytest

from clients import Http1, fetch
from doctor import doctor, holds, report, wrong
from edge import ROOT, Edge, Ports, poll
from faults import NoAgent
from policies import config_rule, policy

POLICY = policy(version=5, config=[config_rule("shut", "true", block="block")])
PASSES = policy(version=6)


# --- an edge that is well ---


@pytest.fixture(scope="module")
def pair(upstream):
    with Edge(POLICY, upstream.url, settings={"EDGE_AGENTS": "2"}) as e:
        poll(lambda: report(e)["proof"]["ok"], "the edge is well")
        yield e


def test_an_edge_that_is_well_gets_a_proof_although_its_policy_blocks_everything(pair, upstream):
    assert fetch(pair, "GET", "/edge-doctor").status == 403
    checks = report(pair)
    each = [f"{what}-{i}" for i in (0, 1) for what in ("agent", "policy", "store", "clock")]
    assert list(checks) == [*each, "health", "front-door", "proof"]
    assert [name for name, check in checks.items() if not check["ok"]] == []
    holds(checks["policy-0"]["text"], "version 5")
    holds(checks["proof"]["text"], "agent 0")
    assert upstream.seen("/edge-doctor") == []


def test_the_text_has_a_line_for_each_check_and_a_verdict(pair):
    done = doctor(pair)
    assert (done.returncode, done.stderr) == (0, "")
    *lines, verdict = done.stdout.splitlines()
    assert all(line.startswith("ok ") for line in lines) and len(lines) == 11
    assert verdict == f"healthy: requests to 127.0.0.1:{pair.port} are decided"


def test_the_addresses_alone_are_enough(pair):
    unset = dict.fromkeys(("UPSTREAM_URL", "POLICY_FILE", "CLIENT_IP_SOURCE", "EDGE_RUN_DIR", "EDGE_HAPROXY"))
    assert wrong(pair, **unset) == {}


@pytest.mark.parametrize("wildcard", ["", "0.0.0.0", "127.0.0.1:{port}, 127.0.0.1"])
def test_wildcards_are_asked_on_the_loopback_and_of_a_list_the_first(pair, wildcard):
    assert wrong(pair, EDGE_LISTEN=f"{wildcard.format(port=pair.port)}:{pair.port}", EDGE_HEALTH_LISTEN=f":{pair.health_port}") == {}


def test_proxies_of_the_environment_are_not_used(pair):
    nowhere = "http://127.0.0.1:9"
    assert wrong(pair, http_proxy=nowhere, HTTP_PROXY=nowhere, all_proxy=nowhere, ALL_PROXY=nowhere) == {}


# --- the challenge, by hand ---


def challenge(edge, agent=0):
    status, text, headers = edge.internal("/doctor", agent)
    assert (status, headers["content-type"], headers["cache-control"]) == (200, "application/json", "no-store")
    return json.loads(text)["challenge"]


def ask(edge, *names, nonce="0123456789abcdef" * 2):
    return fetch(edge, "GET", "/by-hand", headers=[("Edge-Doctor", ",".join([nonce, *names]))])


def test_a_proof_is_the_hmac_of_the_nonce_under_the_agents_key(pair):
    given = challenge(pair)
    response = ask(pair, "f" * 32, given["name"])
    wanted = hmac.new(given["key"].encode(), b"0123456789abcdef" * 2, hashlib.sha256).hexdigest()
    assert (response.status, response.json()) == (400, {"edge_doctor": wanted, "agent": 0})


def test_a_challenge_is_good_for_one_request(pair):
    given = challenge(pair)
    assert ask(pair, given["name"]).status == 400
    assert ask(pair, given["name"]).status == 403


def test_a_header_without_a_live_challenge_is_any_header(pair):
    given = challenge(pair)
    for value in ("", "x", given["name"], given["key"], f"{given['key']},{given['key']}", "," * 200, "a" * 9000):
        assert fetch(pair, "GET", "/by-hand", headers=[("Edge-Doctor", value)]).status == 403, value
    assert ask(pair, challenge(pair, agent=1)["name"]).status == 403, "agent 0 does not know agent 1's"


def test_the_page_tells_nothing_of_the_settings(pair):
    page = json.loads(pair.internal("/doctor")[1])
    assert set(page) == {
        *("agent", "state", "reason", "policy_version", "policy_trouble", "healthchecks", "notifies", "contract_mismatches"),
        *("clock_ms", "store", "challenge"),
    }
    assert page["store"] == {"kind": "embedded", "connected": True, "trouble": "", "clock_skew_ms": 0}


# --- agents ---


def test_one_agent_of_two_that_is_down_is_named_while_requests_are_decided(pair):
    killed = pair.agent_pids()[1]
    pair.signal(signal.SIGSTOP)
    try:
        os.kill(killed, signal.SIGKILL)
        poll(lambda: "agent-1" in wrong(pair), "agent 1 is gone")
        checks = report(pair)
        assert [name for name, check in checks.items() if not check["ok"]] == ["agent-1"]
        holds(checks["agent-1"]["text"], "nothing listens", f":{pair.internal_port + 1}", "agent 1 is down")
        holds(doctor(pair).stdout.splitlines()[-1], "1 of 8 checks", "requests are decided")
    finally:
        pair.signal(signal.SIGCONT)
    poll(lambda: wrong(pair) == {}, "the launcher started another agent")


@pytest.fixture(scope="module")
def single(upstream):
    with Edge(PASSES, upstream.url, settings={"EDGE_AGENT_TIMEOUT": "1s"}) as e:
        yield e


def test_without_any_agent_that_is_the_reason(single):
    with NoAgent(single):
        poll(lambda: "health" in wrong(single), "HAProxy has noticed")
        found = wrong(single)
    assert list(found) == ["agent-0", "health", "proof"]
    holds(found["agent-0"], "agent 0 is down")
    holds(found["health"], "no agent that passes its check")
    holds(found["proof"], "no agent answers")


def test_a_frozen_agent_is_called_frozen(single):
    agent = single.agent_pids()[0]
    os.kill(agent, signal.SIGSTOP)
    try:
        found = wrong(single)
        holds(found["agent-0"], "does not answer", "frozen", "SIGCONT")
        holds(found["proof"], "no verdict in time", "frozen")
    finally:
        os.kill(agent, signal.SIGCONT)
    poll(lambda: wrong(single) == {}, "the edge is well again")


def test_an_agent_that_haproxy_does_not_reach_is_told_from_one_that_is_down(single):
    servers = ("agents/agent0", "agents_rev/agent0")
    for server in servers:
        single.haproxy_command(f"set server {server} state maint")
    found = wrong(single)
    for server in servers:
        single.haproxy_command(f"set server {server} state ready")
    assert list(found) == ["health", "proof"]
    holds(found["proof"], "no connection to the agents", "EDGE_RUN_DIR", "SIGUSR2")
    poll(lambda: wrong(single) == {}, "the edge is well again")


def test_a_refused_policy_is_quoted_whether_or_not_one_is_in_force(upstream):
    with Edge(PASSES, upstream.url) as edge:
        edge.write_policy(policy(config=[config_rule("a", 'http.request.uri.pth eq "/"', block="block")]))
        edge.signal(signal.SIGHUP)
        poll(lambda: edge.metric("edge_policy_loads_total", result="refused") == 1, "the file is refused")
        found = wrong(edge)
        assert list(found) == ["policy-0"]
        holds(found["policy-0"], "version 6 is in force", "/config_rules/0/expression", "http.request.uri.pth", "edge-spoa check")
        edge.policy_file.unlink()
        os.kill(edge.agent_pids()[0], signal.SIGKILL)
        poll(lambda: "has no policy" in wrong(edge).get("policy-0", ""), "the new agent has none")
        poll(lambda: "health" in wrong(edge), "HAProxy has noticed")
        found = wrong(edge)
        assert list(found) == ["policy-0", "health", "proof"]
        holds(found["policy-0"], "the file: there is no such file", "SIGHUP")
        holds(found["proof"], "refused the request")
        assert str(edge.policy_file) not in edge.internal("/doctor")[1], "where the file is stays a secret of the settings"
        assert edge.internal("/readyz")[:2] == (503, "not ready: no policy has been loaded; see the log for the faults of POLICY_FILE\n")
        edge.write_policy(PASSES)
        edge.signal(signal.SIGHUP)
        poll(lambda: wrong(edge) == {}, "the edge is well again")


def test_the_second_agent_under_the_first_ones_address_is_noticed(pair):
    found = wrong(pair, EDGE_INTERNAL_LISTEN=f"127.0.0.1:{pair.internal_port + 1}", EDGE_AGENTS="1")
    holds(found["agent-0"], "is agent 1, not 0")


# --- the front door ---


@pytest.fixture
def nobody():
    ports = Ports(6)
    yield ports.first
    ports.close()


def test_another_front_door_than_the_edges_is_told_from_no_edge_at_all(single, nobody):
    found = wrong(single, EDGE_LISTEN=f"127.0.0.1:{nobody}")
    assert list(found) == ["front-door", "proof"]
    holds(found["front-door"], "nothing listens", f"127.0.0.1:{nobody}", "HAProxy runs", "EDGE_LISTEN")
    gone = {"EDGE_HEALTH_LISTEN": f"127.0.0.1:{nobody + 1}", "EDGE_INTERNAL_LISTEN": f"127.0.0.1:{nobody + 2}", "EDGE_AGENTS": "2"}
    found = wrong(single, EDGE_LISTEN=f"127.0.0.1:{nobody}", **gone)
    assert list(found) == ["agent-0", "agent-1", "health", "front-door", "proof"]
    holds(found["front-door"], "HAProxy is not running", "start `edge-spoa run`")
    holds(found["health"], "nothing listens", "EDGE_HEALTH_LISTEN")


def test_a_website_at_the_front_door_is_no_edge(single, upstream, nobody):
    at = upstream.url.removeprefix("http://")
    holds(wrong(single, EDGE_LISTEN=at, EDGE_HEALTH_LISTEN=f"127.0.0.1:{nobody}")["proof"], "something else listens", at)


def test_a_full_edge_is_told_from_one_without_agents(upstream):
    with Edge(PASSES, upstream.url, settings={"MAX_INFLIGHT": "1"}) as edge, Http1(edge.port) as held:
        held.send(b"GET /delay/600000 HTTP/1.1\r\nHost: edge.test\r\n\r\n")
        poll(lambda: upstream.seen("/delay/600000"), "the one request is under way")
        found = wrong(edge)
    assert list(found) == ["proof"]
    holds(found["proof"], "cap of requests", "MAX_INFLIGHT")


def test_an_edge_that_drains_says_so(single):
    single.haproxy_command("set server ready_flag/flag state maint")
    found = wrong(single)
    single.haproxy_command("set server ready_flag/flag state ready")
    assert list(found) == ["health"]
    holds(found["health"], "draining")


# --- requests that nobody decides ---


def haproxy_with(folder, edit):
    """The setting that makes the edge use a copy of haproxy/ whose lines edit() keeps, changes or, returning None, drops."""
    copy = folder / "haproxy"
    shutil.copytree(ROOT / "haproxy", copy)
    for name in ("haproxy.cfg", "edge.spoe.cfg"):
        lines = [edit(line) for line in (copy / name).read_text().splitlines(keepends=True)]
        (copy / name).write_text("".join(line for line in lines if line is not None))
    return {"EDGE_HAPROXY_DIR": str(copy)}


def without_call(line):
    return None if "send-spoe-group" in line or "edge_page(unavailable)" in line else line


def test_a_haproxy_that_asks_nobody_is_found_out(upstream, tmp_path):
    with Edge(PASSES, upstream.url, settings=haproxy_with(tmp_path, without_call)) as edge:
        assert fetch(edge, "GET", "/past-the-edge").status == 200
        found = wrong(edge)
    assert list(found) == ["proof"]
    holds(found["proof"], "forwarded without a verdict", "without the edge's filter")


def test_open_mode_without_an_agent_is_named(upstream):
    with Edge(PASSES, upstream.url, settings={"EDGE_ON_AGENT_FAILURE": "open"}) as edge:
        assert wrong(edge) == {}
        with NoAgent(edge):
            poll(lambda: fetch(edge, "GET", "/past-the-edge").status == 200, "HAProxy forwards without an agent")
            found = wrong(edge)
        holds(found["proof"], "forwarded without a verdict", "EDGE_ON_AGENT_FAILURE is open", "no policy holds")


def test_a_haproxy_of_another_build_is_told_to_be_reloaded(upstream, tmp_path):
    settings = haproxy_with(tmp_path, lambda line: line.replace("contract=int(1)", "contract=int(9999)"))
    with Edge(PASSES, upstream.url, settings=settings) as edge:
        found = wrong(edge)
    assert list(found) == ["proof"]
    holds(found["proof"], "configuration of another build", "SIGUSR2")


# --- usage ---


@pytest.mark.parametrize("args", [("--jsn",), ("--json", "--json"), ("x",)])
def test_unknown_arguments_are_refused(single, args):
    done = doctor(single, *args)
    assert (done.returncode, done.stdout) == (2, "")
    holds(done.stderr, "Usage: edge-spoa doctor")


FAULTS = {"EDGE_LISTEN": "here", "EDGE_HEALTH_LISTEN": ":0", "EDGE_INTERNAL_LISTEN": "127.0.0.1:0", "EDGE_AGENTS": "3", "EDGE_LISTN": ":80"}


@pytest.mark.parametrize("name", FAULTS)
def test_faulty_settings_are_refused_by_name(single, name):
    done = doctor(single, **{name: FAULTS[name]})
    assert (done.returncode, done.stdout) == (2, "")
    holds(done.stderr, f"edge-spoa doctor: {name}")
