"""Changing a running edge: policy, HAProxy's configuration, agents; and ending it."""

import os
import signal
import subprocess
import threading

import pytest

from clients import Http1, Http2, fetch
from edge import Edge, poll
from load import Load
from policies import config_rule, policy, under

OPEN = policy(version=1)
BLOCKING = policy(version=2, config=[config_rule("shut", under("/switch"), block="block")])
BROKEN = policy(version=3, config=[config_rule("typo", "http.request.uri.pth eq \"/\"", block="block")])


@pytest.fixture(scope="module")
def edge(upstream):
    with Edge(OPEN, upstream.url, settings={"EDGE_AGENTS": "2"}) as e:
        yield e


def publish(edge, document, event):
    """Writes the policy, sends SIGHUP, waits until both agents have said event."""
    n = len(edge.matching(event=event))
    edge.write_policy(document)
    edge.signal(signal.SIGHUP)
    edge.wait_lines(n + 2, event=event)


def test_a_new_policy_takes_effect_without_a_failed_request(edge):
    publish(edge, OPEN, "policy_loaded")
    with Load(edge) as load:
        for i in range(6):
            load.wait_more(20)
            publish(edge, BLOCKING if i % 2 == 0 else OPEN, "policy_loaded")
            assert fetch(edge, "GET", "/switch/load").status == (403 if i % 2 == 0 else 200)
        load.wait_more(20)
    assert load.failures == []


def test_a_faulty_policy_is_refused_by_name_and_the_one_in_force_stays(edge):
    publish(edge, BLOCKING, "policy_loaded")
    refused = edge.metric("edge_policy_loads_total", result="refused")
    publish(edge, BROKEN, "policy_refused")
    fault = edge.event("policy_error", component="agent-0")
    assert (fault["code"], fault["path"]) == ("expr_unknown_field", "/config_rules/0/expression")
    assert edge.metric("edge_policy_loads_total", result="refused") == refused + 1
    assert edge.metric("edge_policy_version") == 2
    assert fetch(edge, "GET", "/switch/refused").status == 403
    assert edge.readyz()[0] == 200
    publish(edge, OPEN, "policy_loaded")
    assert edge.metric("edge_policy_version") == 1
    assert fetch(edge, "GET", "/switch/healed").status == 200


def nested(depth):
    return b'{"schema":4,"version":1,"global":' + b'{"a":' * depth + b"1" + b"}" * depth + b"}"


BAD_FILES = {
    "absent": None,
    "empty": b"",
    "a directory": "directory",
    "not UTF-8": b'{"schema":4,"version":1,"\xff\xfe":1}',
    "deeply nested": nested(100_000),
    "a doubled key": b'{"schema":4,"schema":4,"version":1}',
    "50 MB": b'{"schema":4,"x":"' + b"x" * (50 << 20) + b'"}',
    "an array": b"[]",
}


@pytest.mark.parametrize("kind", BAD_FILES)
def test_an_edge_that_starts_without_a_usable_policy_refuses_all_and_heals(upstream, kind):
    content = BAD_FILES[kind]
    edge = Edge(content if isinstance(content, bytes) else None, upstream.url)
    if content == "directory":
        edge.policy_file.mkdir()
    edge.start(ready=False)
    try:
        assert edge.event("policy_error")["level"] == "error"
        response = fetch(edge, "GET", "/without/policy")
        assert (response.status, response.get("retry-after")) == (503, "1")
        poll(lambda: edge.readyz()[0] == 503, "HAProxy has asked the agent")
        assert edge.internal("/readyz")[0] == 503
        assert edge.metric("edge_policy_version") == 0
        assert upstream.seen("/without/policy") == []
        if content == "directory":
            edge.policy_file.rmdir()
        agent = edge.agent_pids()
        publish_first(edge)
        poll(lambda: edge.readyz()[0] == 200, "ready with a policy")
        assert fetch(edge, "GET", "/with/policy").status == 200
        assert edge.agent_pids() == agent, "the agent lived through it"
    except BaseException:
        edge.stop(check=False)
        raise
    edge.stop()
    upstream.requests.clear()


def publish_first(edge):
    edge.write_policy(OPEN)
    edge.signal(signal.SIGHUP)
    edge.wait_lines(event="policy_loaded")


def test_reloading_haproxy_fails_no_request_and_keeps_the_ready_flag(edge):
    _, before = edge.haproxy_pids()
    with Load(edge, protocols=("h1", "h1", "h1", "h2")) as load:
        load.wait_more(50)
        edge.signal(signal.SIGUSR2)
        poll(lambda: set(edge.haproxy_pids()[1]) - set(before), "a new worker runs")
        assert edge.readyz()[0] == 200
        load.wait_more(200)
        assert edge.readyz()[0] == 200
    assert load.failures == []
    poll(lambda: not set(edge.haproxy_pids()[1]) & set(before), "the old worker has ended")
    assert fetch(edge, "GET", "/after/reload").status == 200


def test_exchanging_the_agents_fails_no_request(edge):
    before = edge.agent_pids()
    with Load(edge, protocols=("h1", "h1", "h2")) as load:
        load.wait_more(50)
        edge.signal(signal.SIGUSR1)
        edge.wait_lines(event="exchange_done")
        load.wait_more(100)
    assert load.failures == []
    after = edge.agent_pids()
    assert set(after) == set(before) and not set(after.values()) & set(before.values())
    assert fetch(edge, "GET", "/after/exchange").status == 200


def test_an_agent_that_dies_is_started_again(edge):
    standby = edge.agent_pids()[1]
    os.kill(standby, signal.SIGKILL)
    poll(lambda: edge.agent_pids().get(1) not in (None, standby), "another standby runs")
    poll(lambda: edge.internal("/readyz", agent=1)[0] == 200, "it has a policy")


# --- start ---


@pytest.mark.parametrize("also_workers", [True, False])
def test_a_haproxy_that_is_killed_is_started_again_on_the_same_ports(edge, also_workers):
    """A worker whose master was killed ends by itself, a moment later than the launcher starts the next HAProxy."""
    master, workers = edge.haproxy_pids()
    n = len(edge.matching(event="haproxy_ended"))
    for pid in (master, *workers) if also_workers else (master,):
        os.kill(pid, signal.SIGKILL)
    edge.wait_lines(n + 1, event="haproxy_ended")
    poll(lambda: not {p.pid for p in edge.processes()} & {master, *workers}, "the old HAProxy is gone")
    poll(lambda: edge.readyz()[0] == 200, "another one serves")
    assert fetch(edge, "GET", "/after/restart").status == 200


@pytest.mark.parametrize("taken", ["EDGE_LISTEN", "EDGE_HEALTH_LISTEN"])
def test_a_second_edge_on_the_same_port_does_not_start_and_the_first_serves_on(edge, upstream, taken):
    second = Edge(OPEN, upstream.url, settings={taken: edge.environment[taken]})
    with pytest.raises(AssertionError, match="ended with status 1"):
        second.start()
    assert second.status == 1
    said = second.tail()
    assert "Address already in use" in said and edge.environment[taken] in said, said
    with Load(edge) as load:
        load.wait_more(50)
    assert load.failures == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_an_edge_told_to_end_before_it_listens_ends_in_order(upstream, number):
    """The signal is pending, and blocked, when the program begins: the earliest that one can come."""
    early = Edge(OPEN, upstream.url)

    def tell():
        signal.pthread_sigmask(signal.SIG_BLOCK, {number})
        os.kill(os.getpid(), number)

    try:
        done = subprocess.run([early.binary, "run"], env=early.environment, preexec_fn=tell, capture_output=True, text=True, timeout=30)
        assert done.returncode == 0, done
        assert "told to end during start-up" in done.stdout
    finally:
        early.clean_up()


# --- the end ---


class Slow:
    """A request that the upstream answers only after a while, asked in the background; true once it has been answered."""

    def __init__(self, connect, upstream, target):
        self.response, self.target, self.upstream = None, target, upstream
        self.thread = threading.Thread(target=self.ask, args=(connect,), daemon=True)
        self.thread.start()
        poll(lambda: upstream.seen(target), "the slow request is under way")

    def ask(self, connect):
        with connect() as c:
            self.response = c.request("GET", self.target)

    def result(self):
        self.thread.join(30)
        return self.response


@pytest.mark.parametrize("kind", ["h1", "h2"])
def test_sigterm_says_so_on_readyz_finishes_what_is_open_and_leaves_nothing(upstream, kind):
    edge = Edge(OPEN, upstream.url, settings={"EDGE_AGENTS": "2", "DRAIN_DELAY": "1s", "SHUTDOWN_TIMEOUT": "20s"}).start()
    try:
        connect = {"h1": Http1, "h2": Http2}[kind]
        slow = Slow(lambda: connect(edge.port), upstream, f"/delay/2500/{kind}")
        edge.signal(signal.SIGTERM)
        poll(lambda: edge.readyz()[0] == 503, "/readyz says that the edge drains")
        assert edge.health("/livez")[0] == 200
        assert fetch(edge, "GET", "/while/draining").status == 200, "requests are still taken during the delay"
        assert slow.result().status == 200
        assert edge.wait_exit() == 0
        assert edge.record_of(f"/delay/2500/{kind}")["http.response.status_code"] == 200
    except BaseException:
        edge.stop(check=False)
        raise
    edge.stop()


def test_a_reload_of_haproxy_while_draining_does_not_make_the_edge_ready_again(upstream):
    edge = Edge(OPEN, upstream.url, settings={"DRAIN_DELAY": "60s"}).start()
    try:
        master, before = edge.haproxy_pids()
        edge.signal(signal.SIGTERM)
        poll(lambda: edge.readyz()[0] == 503, "/readyz says that the edge drains")
        edge.signal(signal.SIGUSR2)
        edge.event("haproxy_reload_ignored")
        assert edge.readyz()[0] == 503
        os.kill(master, signal.SIGUSR2)
        poll(lambda: not set(edge.haproxy_pids()[1]) & set(before), "only a new worker runs")
        poll(lambda: edge.readyz()[0] == 503, "/readyz of the new worker says that the edge drains")
        edge.signal(signal.SIGTERM)
        assert edge.wait_exit() == 0, "the second SIGTERM ended the delay"
    except BaseException:
        edge.stop(check=False)
        raise
    edge.stop()


def test_an_edge_removes_the_folder_that_it_made_for_its_sockets(upstream):
    temp = Edge(OPEN, upstream.url, settings={"EDGE_RUN_DIR": None})
    temp.environment["TMPDIR"] = str(temp.run_dir)
    temp.start()
    try:
        assert len(list(temp.run_dir.iterdir())) == 1
        temp.signal(signal.SIGTERM)
        assert temp.wait_exit() == 0
        assert list(temp.run_dir.iterdir()) == []
    except BaseException:
        temp.stop(check=False)
        raise
    temp.stop()


def test_requests_that_never_end_are_cut_after_the_shutdown_timeout(upstream):
    edge = Edge(OPEN, upstream.url, settings={"SHUTDOWN_TIMEOUT": "1s"}).start()
    try:
        with Http1(edge.port) as c:
            c.send(b"GET /delay/60000/cut HTTP/1.1\r\nHost: edge.test\r\n\r\n")
            poll(lambda: upstream.seen("/delay/60000/cut"), "the request is under way")
            edge.signal(signal.SIGTERM)
            assert edge.wait_exit() == 0
    except BaseException:
        edge.stop(check=False)
        raise
    edge.stop()
