"""edge-spoa doctor in front of what is no edge: strangers at the front door, and agents' pages that a test makes up."""

import json
import socket
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from doctor import doctor, holds, report, wrong
from edge import Edge
from policies import policy


@pytest.fixture(scope="module")
def single(upstream):
    with Edge(policy(), upstream.url) as e:
        yield e


class Stranger:
    """Something that is no edge: takes connections, reads once, sends `answer` if there is one, and closes; with silent it keeps them."""

    def __init__(self, answer=b"", silent=False):
        self.sock = socket.create_server(("127.0.0.1", 0))
        self.port = self.sock.getsockname()[1]
        self.answer, self.silent, self.kept = answer, silent, []
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                peer = self.sock.accept()[0]
                peer.recv(65536)
                if self.silent:
                    self.kept.append(peer)
                    continue
                peer.sendall(self.answer)
                peer.close()
            except OSError:
                if self.sock.fileno() < 0:
                    return

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.sock.close()
        for peer in self.kept:
            peer.close()


OK = b"HTTP/1.1 200 OK\r\nContent-Length: "
FOREIGN = [
    (b"SSH-2.0-OpenSSH_9.2\r\n", "not HTTP"),
    (b"", "closed the connection without an answer"),
    (b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 100_000, "not HTTP"),
]


@pytest.mark.parametrize("answer, part", FOREIGN, ids=["other protocol", "nothing", "endless headers"])
def test_a_stranger_at_the_front_door_is_called_one(single, answer, part):
    with Stranger(answer) as stranger:
        found = wrong(single, EDGE_LISTEN=f"127.0.0.1:{stranger.port}")
    holds(found["front-door"], part, f"127.0.0.1:{stranger.port}")
    holds(found["proof"], "front-door")


def test_a_front_door_that_never_answers_is_given_up(single):
    with Stranger(silent=True) as stranger:
        found = wrong(single, EDGE_LISTEN=f"127.0.0.1:{stranger.port}", EDGE_AGENT_TIMEOUT="300ms")
    holds(found["front-door"], "did not answer in time")


@pytest.mark.parametrize("body", [b"x" * 10_000_000, b"[" * 10_000, b'{"edge_doctor":1,"agent":0}', b'{"edge_doctor":"' + b"0" * 64 + b'","agent":-1}'])
def test_a_proof_can_not_be_made_up(single, body):
    with Stranger(OK + b"%d\r\n\r\n" % len(body) + body) as stranger:
        assert not report(single, EDGE_LISTEN=f"127.0.0.1:{stranger.port}")["proof"]["ok"]


def test_a_page_that_looks_like_a_proof_is_called_a_pretence(single):
    body = b'{"edge_doctor":"%s","agent":0}' % (b"0" * 64)
    with Stranger(OK + b"%d\r\n\r\n" % len(body) + body) as stranger:
        holds(wrong(single, EDGE_LISTEN=f"127.0.0.1:{stranger.port}")["proof"], "pretends")


# --- what agents say: an internal listener of the test's own ---


class FakeAgent:
    """Answers /doctor with the page of a real agent, changed, or with other bytes."""

    def __init__(self, page=None, raw=None, status=200):
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                body = outer.raw if outer.raw is not None else json.dumps(outer.page() if callable(outer.page) else outer.page).encode()
                self.send_response(outer.status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *unused):
                pass

        self.page, self.raw, self.status = page, raw, status
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.at = f"127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.server.shutdown()
        self.server.server_close()


def page_of(edge, **changes):
    page = json.loads(edge.internal("/doctor")[1])
    return page | changes


STANDALONE = {"kind": "standalone", "connected": True, "trouble": "", "clock_skew_ms": 3}
STORES = [
    ({}, None, ()),
    ({"connected": False, "trouble": "127.0.0.1:6379: Connection refused"}, "store-0", ("Connection refused", "start Valkey", "fail_mode")),
    ({"connected": False, "trouble": "AUTH: WRONGPASS invalid username-password pair"}, "store-0", ("WRONGPASS", "user and password")),
    ({"clock_skew_ms": -1500}, "store-0", ("1500 ms behind", "NTP")),
]


@pytest.mark.parametrize("store, name, parts", STORES, ids=["well", "unreachable", "login refused", "clock"])
def test_the_store_of_an_agent_is_judged(single, store, name, parts):
    with FakeAgent(lambda: page_of(single, store=STANDALONE | store)) as agent:
        found = wrong(single, EDGE_INTERNAL_LISTEN=agent.at)
    assert list(found) == ([name] if name else [])
    holds(found.get(name, ""), *parts)


def test_a_clock_that_differs_is_named_with_its_distance(single):
    with FakeAgent(lambda: page_of(single, clock_ms=int(time.time() * 1000) + 3_600_000)) as agent:
        found = wrong(single, EDGE_INTERNAL_LISTEN=agent.at)
    assert list(found) == ["clock-0"]
    holds(found["clock-0"], "ahead of the doctor's")


def test_an_agent_that_stops_is_named_with_its_reason(single):
    with FakeAgent(lambda: page_of(single, state="stopping", reason="the agent is stopping")) as agent:
        found = wrong(single, EDGE_INTERNAL_LISTEN=agent.at)
    assert list(found) == ["agent-0"]
    holds(found["agent-0"], "takes no requests: the agent is stopping")


def test_what_an_agent_says_can_not_reach_the_terminal(single):
    with FakeAgent(lambda: page_of(single, policy_trouble="\x1b]0;owned\x07\x9b2J\r\nok     proof\u202e")) as agent:
        done = doctor(single, EDGE_INTERNAL_LISTEN=agent.at)
    assert done.returncode == 1
    assert len(done.stdout.splitlines()) == 8
    assert all(" " <= c <= "~" for c in done.stdout.replace("\n", "")), done.stdout


RAW = [b"", b"{}", b"[" * 100_000, b"x" * 10_000_000, b'{"agent":0}', b"\xff\xfe", b'{"agent":18446744073709551616}']


@pytest.mark.parametrize("raw", RAW, ids=range(len(RAW)))
def test_what_is_no_agents_page_is_called_so(single, raw):
    with FakeAgent(raw=raw) as agent:
        found = wrong(single, EDGE_INTERNAL_LISTEN=agent.at)
    holds(found["agent-0"], "no agent that this doctor understands", agent.at)
    assert "proof" in found, "nobody has given a challenge"


def test_an_older_agent_without_the_page_is_called_one(single):
    with FakeAgent(raw=b"there is no such page here\n", status=404) as agent:
        holds(wrong(single, EDGE_INTERNAL_LISTEN=agent.at)["agent-0"], "it answers 404 to /doctor", "SIGUSR1")
