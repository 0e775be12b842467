"""The ways in which a request gets an answer that the edge makes itself: one for each that there is, with what tells it from the others."""

import contextlib
import itertools
import os
import re
import signal
import threading
from dataclasses import dataclass

from clients import fetch
from edge import ROOT, poll
from faults import NoAgent
from faulty_upstream import FaultyUpstream
from test_upstream_faults import kept
from upstream import Holding

KINDS = {name: int(status) for name, status in re.findall(r'^KIND_ROW\(\w+, "(\w+)", (\d+)', (ROOT / "schemas/kinds.def").read_text(), re.M)}
CAP = 3  # requests at once
NUMBERS = itertools.count(1)
# Of the request nothing but its id is ever in an answer, whatever it says.
HOSTILE_HEADERS = [("User-Agent", '", "user": "oops!</script><script>'), ("Referer", "%[src]{{status}}"), ("Cookie", "a=</pre>\\")]


class AnswersUpstream(Holding, FaultyUpstream):
    """/switch switches protocols although nobody asked."""

    no_fault = staticmethod(contextlib.nullcontext)

    def respond(self, sock, request):
        if request["target"].startswith("/switch"):
            sock.sendall(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: irc\r\n\r\n")
            return False
        return super().respond(sock, request)


class Case:
    """One request whose path, client and id are its own; an id is as long as it may be. choose: whether a rule gives it a template of the kind."""

    def __init__(self, edge, upstream, protocol, name, choose, method=None):
        n = next(NUMBERS)
        self.edge, self.upstream, self.protocol, self.name, self.method = edge, upstream, protocol, name, method
        self.id = f"{n}._-".ljust(128, "Z")
        self.client = ("X-Client", f"192.0.{n // 250}.{n % 250}")
        self.own = [("X-Own", WAYS[name].kind)] if choose else []
        self.path = f"/{WAYS[name].verb or name}/{name}/{n}"

    def ask(self, path="", body=None):
        self.path += path
        method = self.method or ("GET" if body is None else "POST")
        headers = [self.client, ("X-Request-Id", self.id), *self.own, *HOSTILE_HEADERS]
        return fetch(self.edge, method, self.path, headers, body, protocol=self.protocol)


@contextlib.contextmanager
def frozen(case):
    pid = case.edge.agent_pids()[0]
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)
        poll(lambda: fetch(case.edge, "GET", f"/thawed{case.path}", [case.client]).status == 200, "the agent decides again")


@contextlib.contextmanager
def full(case):
    """As many requests at the upstream as may be under way. One that HAProxy has just answered still counts for a moment."""
    case.upstream.released.clear()
    target = f"/held{case.path}"

    def hold(i):
        while fetch(case.edge, "GET", f"{target}/{i}", [case.client]).status == 503 and not case.upstream.released.is_set():
            pass

    held = [threading.Thread(target=hold, args=(i,)) for i in range(CAP)]
    for thread in held:
        thread.start()
    try:
        poll(lambda: len(case.upstream.seen(target)) == CAP, "the edge is full")
        yield
    finally:
        case.upstream.released.set()
        for thread in held:
            thread.join()


@contextlib.contextmanager
def afresh(case, fault):
    """Without kept connections to an upstream that has a fault."""
    with fault():
        case.upstream.end_kept()
        poll(lambda: kept(case.edge) == 0, "HAProxy has noticed")
        yield


def over_limit(case):
    assert fetch(case.edge, "GET", f"{case.path}/before", [case.client]).status == 200
    return case.ask()


def within(context, *names):
    def ask(case):
        with context(case, *(getattr(case.upstream, name) for name in names)):
            return case.ask()

    return ask


@dataclass
class Way:
    """own: the request's own template answers, if it has one; else the request was not judged by a rule. verb: of the upstream."""

    kind: str
    own: bool
    ask: object
    verb: str = ""
    protocols: tuple = ("h1", "h2")


WAYS = {
    # The agent's.
    "path": Way("bad_request", False, lambda case: case.ask("/a%5Cb")),
    "blocked": Way("forbidden", True, lambda case: case.ask()),
    "announced": Way("payload_too_large", True, lambda case: case.ask(body=b"x" * 11)),
    "limited": Way("rate_limited", True, over_limit),
    "uncountable": Way("unavailable", True, lambda case: case.ask()),
    # HAProxy's.
    "no-agent": Way("unavailable", False, within(lambda case: NoAgent(case.edge, [case.client]))),
    "frozen-agent": Way("unavailable", False, within(frozen)),
    "full": Way("overloaded", False, within(full)),
    "refused": Way("bad_gateway", True, within(afresh, "refusing")),
    "reset": Way("bad_gateway", True, within(afresh, "no_fault"), "reset"),
    "garbage": Way("bad_gateway", True, lambda case: case.ask(), "garbage"),
    "switched": Way("bad_gateway", True, lambda case: case.ask(), "switch"),
    "late": Way("gateway_timeout", True, lambda case: case.ask(), "delay/5000"),
    # To an HTTP/2 client HAProxy says instead that it may ask again (haproxy/README.md).
    "unconnected": Way("gateway_timeout", True, within(afresh, "blackholed"), protocols=("h1",)),
}
