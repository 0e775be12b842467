"""What clients see while something is broken: agents killed or frozen, requests too large, an upstream that is down or slow."""

import os
import signal
import threading

import pytest

from agent_faults import up_servers
from clients import Closed, Http1, client, fetch, render1
from edge import Edge, Ports, poll
from faults import NoAgent
from load import Load
from policies import limit_rule, policy, under
from shapes import FORGED, SHAPES, managed, shaped

POLICY = policy(limits=[limit_rule("none", under("/limited"), limit=1, period="24h", burst=1)])
# So long that a client who waited for it would give up first: an answer shows that nobody waited.
FAR_AWAY = {"EDGE_AGENT_TIMEOUT": "60s"}


@pytest.fixture(scope="module")
def closed(upstream):
    with Edge(POLICY, upstream.url, settings=FAR_AWAY) as e:
        yield e


@pytest.fixture(scope="module")
def slow_answer(closed, upstream):
    """A request whose upstream takes longer than HAProxy waits; asked first and looked at last, since it takes half a minute."""
    result = {}

    def ask():
        with Http1(closed.port) as c:
            c.sock.settimeout(60)
            result["response"] = c.request("GET", "/delay/45000")

    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    poll(lambda: upstream.seen("/delay/45000"), "the agent has let the slow request pass")
    yield thread, result
    thread.join(60)


@pytest.mark.usefixtures("slow_answer")
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("protocol", ["h1", "h2"])
def test_without_an_agent_requests_are_refused_at_once_and_served_again_later(closed, upstream, protocol, shape):
    haproxy = closed.haproxy_pids()
    target = f"/refused/{protocol}/{shape}"
    with NoAgent(closed):
        response = fetch(closed, "GET", target, protocol=protocol, **shaped(shape))
        assert (response.status, response.get("retry-after")) == (503, "1")
        assert response.get("cache-control") == "no-store"
    record = closed.record_of(target)
    assert (record["edge.decision"], record["http.response.status_code"]) == ("unavailable", 503)
    assert fetch(closed, "GET", "/served/again", protocol=protocol).status == 200
    assert upstream.seen(target) == []
    assert closed.haproxy_pids() == haproxy, "HAProxy was left alone"


def test_the_health_page_says_when_there_is_no_agent(closed):
    with NoAgent(closed):
        poll(lambda: closed.readyz()[0] == 503, "/readyz says that the edge is not ready")
        assert closed.health("/livez")[0] == 200


@pytest.fixture(scope="module")
def open_edge(upstream):
    settings = {**FAR_AWAY, "EDGE_ON_AGENT_FAILURE": "open", "EDGE_BODY_LIMIT": "10KiB"}
    with Edge(POLICY, upstream.url, settings=settings) as e:
        yield e


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("protocol", ["h1", "h2"])
def test_open_mode_forwards_without_an_agent_and_without_any_identity(open_edge, protocol, shape):
    target = f"/open/{protocol}/{shape}"
    with NoAgent(open_edge):
        response = fetch(open_edge, "POST", target, protocol=protocol, **shaped(shape, [(n, "evil") for n in FORGED]))
    assert response.status == 200
    record = open_edge.record_of(target)
    assert record["edge.decision"] == "unavailable", "the record says that nothing was decided"
    assert record["http.response.status_code"] == 200
    assert managed(response.json()) == [("x-request-id", record["request_id"])]


def test_open_mode_still_holds_the_static_body_limit(open_edge, upstream):
    with NoAgent(open_edge):
        assert fetch(open_edge, "POST", "/open/small", body=b"x" * 10240).status == 200
        assert fetch(open_edge, "POST", "/open/large", body=b"x" * 10241).status == 413
    assert upstream.seen("/open/large") == []


def test_open_mode_decides_as_usual_while_there_is_an_agent(open_edge):
    assert fetch(open_edge, "GET", "/limited/1").status == 200
    assert fetch(open_edge, "GET", "/limited/2").status == 429


def test_a_frozen_agent_costs_its_request_an_answer_in_time_and_the_edge_nothing(upstream):
    """The client's own patience of 15 s is far above EDGE_AGENT_TIMEOUT: that a 503 comes at all shows that somebody gave up."""
    with Edge(POLICY, upstream.url, settings={"EDGE_AGENT_TIMEOUT": "1s"}) as edge:
        agent = edge.agent_pids()[0]
        assert fetch(edge, "GET", "/frozen/before").status == 200
        os.kill(agent, signal.SIGSTOP)
        response = fetch(edge, "GET", "/frozen/now")
        assert (response.status, response.get("retry-after")) == (503, "1")
        assert upstream.seen("/frozen/now") == []
        os.kill(agent, signal.SIGCONT)
        poll(lambda: fetch(edge, "GET", "/frozen/after").status == 200, "served again")
        assert edge.agent_pids()[0] == agent


def test_headers_reach_the_upstream_whole_or_are_refused(closed, upstream):
    """Around the size of HAProxy's buffer, of a SPOP frame and of what the agent takes: never cut, never past the agent."""
    for size in [*range(50_000, 70_000, 1000), 131_072]:
        target = f"/large/{size}"
        with client(closed) as c:
            try:
                c.send(render1("GET", target, [("X-Large", "v" * size)]))
                response = c.receive()
            except (Closed, OSError):
                continue  # refused while it was still being sent
            assert response.status in (200, 400, 431), (size, response.status)
            if response.status != 200:
                assert response.get("cache-control") == "no-store", size
                assert upstream.seen(target) == []
                continue
            received = dict(response.json()["headers"])
            assert len(received["x-large"]) == size
            assert received["x-edge-client-ip"] == "127.0.0.1", size


def test_a_large_target_reaches_the_upstream_whole_or_is_refused(closed, upstream):
    for size in [*range(25_000, 36_000, 1000), 62_000, 131_072]:
        target = "/large-target/" + "t" * size
        with client(closed) as c:
            try:
                c.send(render1("GET", target, [("X-Large", "v" * 30_000)]))
                response = c.receive()
            except (Closed, OSError):
                continue
            assert response.status in (200, 400, 414, 431), (size, response.status)
            seen = [r["target"] for r in upstream.seen("/large-target/" + "t" * size) if len(r["target"]) == len(target)]
            assert seen == ([target] if response.status == 200 else []), size


def test_an_upstream_that_is_down_is_a_502(upstream):
    nobody = Ports()
    try:
        with Edge(POLICY, f"http://127.0.0.1:{nobody.first}") as edge:
            for protocol in ("h1", "h2"):
                response = fetch(edge, "GET", f"/down/{protocol}", protocol=protocol)
                assert response.status == 502
                assert response.get("cache-control") == "no-store"
                record = edge.record_of(f"/down/{protocol}")
                assert record["http.response.status_code"] == 502
                assert record["edge.upstream_answered"] is False
    finally:
        nobody.close()


@pytest.mark.parametrize("target", ["/close", "/garbage"])
def test_an_upstream_that_gives_no_answer_is_a_502(closed, target):
    response = fetch(closed, "GET", target)
    assert response.status == 502
    assert closed.record_of(target)["edge.upstream_answered"] is False
    assert fetch(closed, "GET", "/alive").status == 200


@pytest.mark.parametrize("status", [404, 500, 502, 503, 504])
def test_an_error_of_the_upstream_passes_untouched(closed, status):
    response = fetch(closed, "GET", f"/status/{status}")
    assert (response.status, response.json()["target"]) == (status, f"/status/{status}")
    assert response.get("cache-control") is None
    assert closed.record_of(f"/status/{status}")["edge.upstream_answered"] is True


def test_an_answer_that_breaks_off_is_not_completed(closed):
    with client(closed) as c, pytest.raises(Closed):
        c.request("GET", "/cut")


@pytest.fixture(scope="module")
def pair(upstream):
    with Edge(POLICY, upstream.url, settings={"EDGE_AGENTS": "2"}) as e:
        poll(lambda: "agent1" in up_servers(e), "the standby agent is up")
        yield e


@pytest.mark.parametrize("protocols", [("h1", "h1"), ("h2",)])
def test_killing_the_active_agent_fails_no_request_and_the_standby_decides(pair, protocols):
    before = pair.metric("edge_decisions_total", agent=1, decision="allow")
    with Load(pair, protocols=protocols) as load:
        load.wait_more(100)
        pair.signal(signal.SIGSTOP)  # so that the launcher starts no other agent meanwhile
        os.kill(pair.agent_pids()[0], signal.SIGKILL)
        load.wait_more(200)
        pair.signal(signal.SIGCONT)
        load.wait_more(100)
        poll(lambda: pair.internal("/readyz")[0] == 200, "the launcher started another agent")
        poll(lambda: "agent0" in up_servers(pair), "HAProxy uses it")
        load.wait_more(100)
    assert load.failures == []
    poll(lambda: pair.metric("edge_decisions_total", agent=1, decision="allow") >= before + 190, "the standby decided what came meanwhile")


def test_agents_that_are_killed_and_restarted_again_and_again_fail_no_request(pair):
    with Load(pair) as load:
        for index in (0, 1, 0):
            poll(lambda: up_servers(pair) == {"agent0", "agent1"}, "both agents are up")
            load.wait_more(50)
            os.kill(pair.agent_pids()[index], signal.SIGKILL)
            load.wait_more(50)
            poll(lambda: pair.internal("/readyz", agent=index)[0] == 200, "it runs again")
    assert load.failures == []


def test_a_frozen_active_agent_is_replaced_by_the_standby(upstream):
    with Edge(POLICY, upstream.url, settings={"EDGE_AGENTS": "2", **FAR_AWAY}) as edge:
        poll(lambda: "agent1" in up_servers(edge), "the standby agent is up")
        agent = edge.agent_pids()[0]
        os.kill(agent, signal.SIGSTOP)
        try:
            response = fetch(edge, "GET", "/frozen/active")
            assert response.status == 200
            assert managed(response.json()) != []
        finally:
            os.kill(agent, signal.SIGCONT)


def test_an_upstream_that_takes_too_long_is_a_504(closed, slow_answer):
    thread, result = slow_answer
    thread.join(60)
    response = result["response"]
    assert (response.status, response.get("cache-control")) == (504, "no-store")
    record = closed.record_of("/delay/45000")
    assert (record["http.response.status_code"], record["edge.upstream_answered"]) == (504, False)
