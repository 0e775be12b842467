"""Limits in Valkey, and what happens to requests when Valkey does not do its part: no rule that may pass ever fails."""

import http.client
import os
import signal
import threading
import time

import pytest

from edge import Edge, poll
from policies import limit_rule, policy, under
from valkey import FakeValkey, Unreachable, Valkey, Wire

RULES = ("open", "closed", "local", "shadow")
UNREACHABLE = "redis://127.0.0.1:9/"  # nobody listens on the discard port
MODES = {"open": 200, "closed": 503, "local": 200, "shadow": 200}


@pytest.fixture(scope="module")
def valkey():
    with Valkey() as v:
        yield v


def rules(limit=2, burst=2, period="60s"):
    """One rule for each fail mode, under /<mode>; /shadow only counts, and would fail closed."""
    found = []
    for name in RULES:
        rule = limit_rule(name, under(f"/{name}"), limit, period, burst, action="log" if name == "shadow" else "block")
        found.append(rule | {"fail_mode": "closed" if name == "shadow" else name})
    return policy(limits=found)


def edge_on(upstream, url, **settings):
    return Edge(rules(), upstream.url, {"VALKEY_URL": url, "VALKEY_TIMEOUT": "100ms", **settings})


def ask(edge, path, source="127.0.0.1"):
    """One request from a client with that address."""
    connection = http.client.HTTPConnection("127.0.0.1", edge.port, timeout=15, source_address=(source, 0))
    try:
        connection.request("GET", path, headers={"Host": "edge.test"})
        response = connection.getresponse()
        response.text = response.read().decode()
        return response
    finally:
        connection.close()


def statuses(edge, path, n, source="127.0.0.1"):
    return [ask(edge, path, source).status for _ in range(n)]


def calls(edge, outcome):
    return edge.metric("edge_valkey_calls_total", outcome=outcome)


def connected(edge):
    return edge.metric("edge_valkey_connected") == 2  # workers


def check_modes(edge, source):
    """Each rule's fail mode, from the first request on: the store can't be asked."""
    for name, status in MODES.items():
        response = ask(edge, f"/{name}/x", source)
        assert response.status == status, (name, response.status, response.text)
        if status == 503:
            assert response.getheader("Retry-After") == "1"
            assert '"kind":"unavailable"' in response.text
            assert response.getheader("Cache-Control") == "no-store"
    # local: a burst of 2 in this agent's memory, then its own 429.
    assert statuses(edge, "/local/x", 2, source) == [200, 429]
    assert ask(edge, "/free", source).status == 200
    assert edge.readyz()[0] == 200


# --- it counts ---


def test_a_limit_holds_over_two_edges_that_share_a_valkey(upstream, valkey):
    with edge_on(upstream, valkey.url()) as one, edge_on(upstream, valkey.unix_url()) as two:
        got = [ask(edge, "/open/shared", "127.0.0.10").status for edge in (one, two, one, two)]
        assert got == [200, 200, 429, 429]
        assert ask(two, "/open/shared", "127.0.0.11").status == 200  # another client has its own bucket
        assert one.metric("edge_ratelimit_store", kind="standalone") == 1
        assert calls(one, "answered") == 2 and calls(two, "answered") == 3


def test_a_counter_has_the_documented_key_and_goes_away_when_its_bucket_is_full(upstream, valkey):
    with valkey.client() as c:
        c.flushall()
    with edge_on(upstream, valkey.url()) as edge:
        assert ask(edge, "/open/key", "127.0.0.12").status == 200
    (key,) = valkey.keys()
    assert key.startswith("rl:tb:60000:open:{") and key.endswith("}") and len(key) == len("rl:tb:60000:open:{}") + 22
    with valkey.client(raw=True) as c:
        state = c.get(key)
        assert len(state) == 13 and int.from_bytes(state[:7], "big") == 1 * 60000  # tokens x period; then the time of the update
        assert abs(int.from_bytes(state[7:], "big") / 1000 - time.time()) < 60
        assert 0 < c.pttl(key) <= 30000  # one token at two a minute


def test_a_refusal_tells_how_long_to_wait(upstream, valkey):
    with edge_on(upstream, valkey.url()) as edge:
        assert statuses(edge, "/open/wait", 2, "127.0.0.13") == [200, 200]
        response = ask(edge, "/open/wait", "127.0.0.13")
        assert response.status == 429 and 25 <= int(response.getheader("Retry-After")) <= 30


# --- it is not there, or does not let us in ---


def test_fail_modes_hold_from_the_first_request_when_valkey_was_never_there(upstream):
    with edge_on(upstream, UNREACHABLE) as edge:
        check_modes(edge, "127.0.0.20")
        assert calls(edge, "not_connected") > 0 and calls(edge, "answered") == 0
        assert edge.metric("edge_ratelimit_failed_closed_total") == 1
        assert edge.metric("edge_ratelimit_failed_local_total") == 3


def test_a_valkey_whose_connects_hang_delays_the_start_only_and_only_so_long(upstream):
    with Unreachable() as nowhere, edge_on(upstream, f"{nowhere.url}?dial_timeout=300ms") as edge:
        check_modes(edge, "127.0.0.21")


def test_a_valkey_that_comes_up_later_is_used_without_a_restart(upstream):
    with Valkey() as late:
        late.stop()
        with edge_on(upstream, late.url()) as edge:
            check_modes(edge, "127.0.0.22")
            late.start()
            poll(lambda: connected(edge), "the workers are connected")
            assert statuses(edge, "/closed/later", 3, "127.0.0.22") == [200, 200, 429]


def test_a_wrong_password_is_said_without_being_shown_and_heals_when_it_is_right(upstream):
    with Valkey("--requirepass", "other") as locked, edge_on(upstream, locked.url(":geheim%21@")) as edge:
        check_modes(edge, "127.0.0.23")
        poll(lambda: any("WRONGPASS" in line["text"] for line in edge.lines), "the log says why")
        with locked.client(password="other") as c:
            c.config_set("requirepass", "geheim!")
        poll(lambda: connected(edge), "the workers are connected")
        assert statuses(edge, "/closed/x", 3, "127.0.0.24") == [200, 200, 429]
        assert not [line["text"] for line in edge.lines if "geheim" in line["text"]]


def test_user_password_and_database_are_used(upstream):
    with Valkey() as v:
        with v.client() as c:
            c.acl_setuser("edge", enabled=True, passwords="+p:w", commands=["+@all"], keys=["rl:*"])
        with edge_on(upstream, v.url("edge:p%3Aw@", db=3)) as edge:
            assert statuses(edge, "/open/db", 3, "127.0.0.25") == [200, 200, 429]
        with v.client(db=3) as c:
            assert len(list(c.scan_iter("rl:*"))) == 1


# --- it stops in the middle ---


class Steady:
    """Requests of an open rule all the time; every answer's status and how long it took."""

    def __init__(self, edge, path="/open/steady", clients=2, rate=100):
        self.edge, self.path, self.pause = edge, path, clients / rate
        self.statuses, self.took, self.stopping = [], [], threading.Event()
        self.threads = [threading.Thread(target=self.run, args=(f"127.0.1.{i + 1}",), daemon=True) for i in range(clients)]

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *unused):
        self.stopping.set()
        for thread in self.threads:
            thread.join(30)

    def run(self, source):
        while not self.stopping.wait(self.pause):
            began = time.monotonic()
            try:
                status = ask(self.edge, self.path, source).status
            except OSError as e:
                status = repr(e)
            self.took.append(time.monotonic() - began)
            self.statuses.append(status)

    def more(self, n):
        goal = len(self.statuses) + n
        poll(lambda: len(self.statuses) >= goal, f"{n} more answers", 60)


def failures(steady):
    return [s for s in steady.statuses if s not in (200, 429)]


def test_a_frozen_valkey_fails_no_request_of_an_open_rule_and_opens_the_breaker(upstream):
    with Valkey() as v, edge_on(upstream, v.url()) as edge, Steady(edge) as steady:
        steady.more(50)
        v.signal(signal.SIGSTOP)
        poll(lambda: edge.metric("edge_valkey_breaker_opened_total") >= 1, "the breaker has opened")
        steady.more(100)
        assert calls(edge, "breaker_open") + calls(edge, "not_connected") > 0
        answered = calls(edge, "answered")
        v.signal(signal.SIGCONT)
        poll(lambda: calls(edge, "answered") > answered + 10, "Valkey is asked again")
        steady.more(20)
        assert failures(steady) == []
        assert edge.readyz()[0] == 200


def test_packets_that_vanish_are_noticed_and_another_connection_heals_it(upstream):
    with Valkey() as v, Wire(v) as wire, edge_on(upstream, wire.url) as edge, Steady(edge) as steady:
        steady.more(50)
        wire.cut()
        poll(lambda: edge.metric("edge_valkey_breaker_opened_total") >= 1, "the breaker has opened")
        steady.more(50)
        answered = calls(edge, "answered")
        wire.mend()  # for new connections; the old ones stay dead
        poll(lambda: calls(edge, "answered") > answered + 10, "Valkey is asked again")
        assert failures(steady) == []


def test_a_valkey_that_is_killed_and_restarted_is_used_again(upstream):
    with Valkey() as v, edge_on(upstream, v.url()) as edge, Steady(edge) as steady:
        steady.more(50)
        v.stop(signal.SIGKILL)
        steady.more(50)
        v.start()
        answered = calls(edge, "answered")
        poll(lambda: calls(edge, "answered") > answered + 10, "Valkey is asked again")
        assert failures(steady) == []


def test_connections_that_valkey_closes_leave_no_descriptor_behind(upstream):
    with Valkey() as v, edge_on(upstream, v.url()) as edge:
        pid = edge.agent_pids()[0]
        poll(lambda: connected(edge), "the workers are connected")
        before = len(os.listdir(f"/proc/{pid}/fd"))
        with v.client() as c:
            for _ in range(30):
                connects = edge.metric("edge_valkey_connects_total")
                c.client_kill_filter(_type="normal", skipme=True)
                poll(lambda: connected(edge) and edge.metric("edge_valkey_connects_total") >= connects + 2, "connected again")
        assert len(os.listdir(f"/proc/{pid}/fd")) <= before + 1
        assert statuses(edge, "/closed/x", 3, "127.0.0.26") == [200, 200, 429]


# --- it forgets, or holds something else ---


def test_a_flushed_script_costs_no_request(upstream):
    with Valkey() as v, edge_on(upstream, v.url()) as edge:
        assert ask(edge, "/closed/flush", "127.0.0.30").status == 200
        with v.client() as c:
            c.script_flush()
        assert statuses(edge, "/closed/flush", 2, "127.0.0.30") == [200, 429]
        assert edge.metric("edge_valkey_noscript_total") >= 1
        assert calls(edge, "answered") == 3 and edge.metric("edge_ratelimit_failed_closed_total") == 0


def test_the_script_survives_a_thousand_scripts_of_others(upstream):
    with Valkey() as v, edge_on(upstream, v.url()) as edge:
        assert ask(edge, "/closed/evict", "127.0.0.31").status == 200
        with v.client() as c:
            for i in range(1000):
                c.eval(f"return {i}", 0)
        assert statuses(edge, "/closed/evict", 2, "127.0.0.31") == [200, 429]
        assert edge.metric("edge_valkey_noscript_total") == 0


def test_a_key_of_another_type_fails_its_own_rule_only(upstream):
    with Valkey() as v, edge_on(upstream, v.url()) as edge:
        for name in ("closed", "open"):
            assert ask(edge, f"/{name}/type", "127.0.0.32").status == 200
        closed, opened = sorted(v.keys())
        with v.client() as c:
            for key in (closed, opened):
                c.delete(key)
                c.hset(key, "a", "1")
        assert ask(edge, "/closed/type", "127.0.0.32").status == 503
        assert ask(edge, "/open/type", "127.0.0.32").status == 200
        assert edge.metric("edge_ratelimit_unreadable_total") == 2
        # Others are counted as ever, and nobody left Valkey alone for it.
        assert statuses(edge, "/closed/type", 3, "127.0.0.33") == [200, 200, 429]
        assert edge.metric("edge_valkey_breaker_opened_total") == 0
        with v.client() as c:
            assert c.hget(closed, "a") == "1"


def test_a_counter_that_holds_nonsense_starts_again(upstream):
    with Valkey() as v, edge_on(upstream, v.url()) as edge:
        assert ask(edge, "/closed/junk", "127.0.0.34").status == 200
        (key,) = v.keys()
        with v.client() as c:
            c.set(key, "nonsense -1 9")
        assert statuses(edge, "/closed/junk", 3, "127.0.0.34") == [200, 200, 429]


def test_a_valkey_that_answers_with_errors_is_not_said_to_be_silent(upstream):
    with FakeValkey(b"-OOM command not allowed when used memory > 'maxmemory'.\r\n") as fake, edge_on(upstream, fake.url) as edge:
        poll(lambda: connected(edge), "the workers are connected")
        statuses(edge, "/open/errors", 10)
        poll(lambda: "got an error" in edge.internal("/doctor")[1], "the doctor's page tells of errors")
        assert edge.event("valkey_error")["message"].endswith("used memory > 'maxmemory'.")


ANSWERS = {
    "a status": b"+OK\r\n",
    "a number": b":1\r\n",
    "nothing": b"$-1\r\n",
    "an empty list": b"*0\r\n",
    "lists in lists": b"*1\r\n*1\r\n*1\r\n:1\r\n",
    "too few numbers": b"$4\r\n1 1 \r\n",
    "words": b"$11\r\n1 one 1 0 0\r\n",
    "a verdict out of range": b"$9\r\n1 7 0 0 0\r\n",
    "an error": b"-ERR unknown\r\n",
    "loading": b"-LOADING Valkey is loading the dataset in memory\r\n",
    "no RESP at all": b"HTTP/1.1 200 OK\r\n\r\n",
    "half an answer": b"$100\r\n1 1",
    "an endless length": b"$99999999999999\r\n",
    "a close instead": None,
}


@pytest.mark.parametrize("name", ANSWERS)
def test_an_answer_of_another_shape_is_the_rules_fail_mode(upstream, name):
    with FakeValkey(ANSWERS[name]) as fake, edge_on(upstream, fake.url) as edge:
        poll(lambda: connected(edge), "the workers are connected")
        check_modes(edge, "127.0.0.40")
        assert fake.n_calls > 0
        assert calls(edge, "answered") == 0
