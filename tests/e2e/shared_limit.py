"""The proof that a limit is one limit over many edges: every verdict that Valkey gave is recorded on the wire and held against an exact
token bucket that is fed with the script's own times."""

import re
import shutil
import subprocess
from collections import Counter

from edge import Edge, poll
from policies import limit_rule, policy
from valkey import Valkey, Wire

VERDICT = re.compile(rb"\$\d+\r\n(\d+) ([01]) (\d+) (\d+) (\d+)\r\n")


class RecordingWire(Wire):
    """Keeps what Valkey answers on each connection."""

    def __init__(self, valkey):
        self.answers = []
        super().__init__(valkey)

    def pump(self, source, sink):
        if sink not in self.socks:  # towards Valkey
            return super().pump(source, sink)
        kept = bytearray()
        self.answers.append(kept)
        while data := source.recv(65536):
            kept += data
            sink.sendall(data)
        return None

    def verdicts(self):
        """(ms of Valkey's clock, passed) of every answer."""
        return [(int(ms), passed == b"1") for kept in self.answers for ms, passed, *_ in VERDICT.findall(kept)]


class Bucket:
    """limit tokens flow in per period_ms, up to burst; counted in 1/period_ms tokens, whole milliseconds."""

    def __init__(self, limit, period_ms, burst):
        self.limit, self.period_ms, self.full = limit, period_ms, burst * period_ms
        self.content, self.at = self.full, None

    def take(self, now_ms):
        if self.at is not None and now_ms > self.at:
            self.content = min(self.full, self.content + (now_ms - self.at) * self.limit)
        self.at = now_ms if self.at is None else max(self.at, now_ms)
        if self.content < self.period_ms:
            return False
        self.content -= self.period_ms
        return True


def expected(verdicts, limit, period_ms, burst):
    """How many pass in each millisecond: within one their order does not matter."""
    bucket, passed = Bucket(limit, period_ms, burst), Counter()
    for ms in sorted(ms for ms, _ in verdicts):
        passed[ms] += bucket.take(ms)
    return +passed


def storm(edges, n_each, connections=8):
    """n_each requests to each edge at once, HTTP/1 and HTTP/2 in turn; the status classes of all answers together."""
    assert shutil.which("h2load"), "h2load is missing: apt-get install nghttp2-client"
    running = []
    for i, edge in enumerate(edges):
        protocol = ["--h1"] if i % 2 == 0 else ["-p", "h2c"]
        argv = ["h2load", *protocol, f"-n{n_each}", f"-c{connections}", "-m1", f"http://127.0.0.1:{edge.port}/limited"]
        running.append(subprocess.Popen(argv, stdout=subprocess.PIPE, text=True))
    seen = Counter()
    for process in running:
        text = process.communicate(timeout=600)[0]
        assert process.returncode == 0, text
        done = re.search(r"(\d+) done, (\d+) succeeded, (\d+) failed, (\d+) errored, (\d+) timeout", text)
        assert done and int(done[1]) == n_each and done[4] == done[5] == "0", text
        for count, kind in re.findall(r"(\d+) ([2345]xx)", text):
            seen[kind] += int(count)
    return seen


def prove(upstream_url, n_edges, n_requests, limit, period_ms, burst, settings=None):
    """Runs the storm and checks everything; returns what was seen."""
    rule = limit_rule("shared", "true", limit, f"{period_ms}ms", burst)
    settings = {"VALKEY_TIMEOUT": "200ms", "EDGE_WORKERS": "1", "EDGE_HAPROXY_THREADS": "1", **(settings or {})}
    with Valkey() as valkey, RecordingWire(valkey) as wire:
        edges = [Edge(policy(limits=[rule]), upstream_url, {"VALKEY_URL": wire.url, **settings}) for _ in range(n_edges)]
        try:
            for edge in edges:
                edge.start()
            seen = storm(edges, n_requests // n_edges)
            agents = int(settings.get("EDGE_AGENTS", 1))
            counted = Counter()
            for edge in edges:
                for agent in range(agents):
                    families = [edge.metric("edge_valkey_calls_total", agent, outcome=o) for o in ("answered", "timeout", "lost", "breaker_open")]
                    counted.update(dict(zip(("answered", "timeout", "lost", "breaker_open"), families)))
                    for mode in ("open", "closed", "local"):
                        counted["fail " + mode] += edge.metric(f"edge_ratelimit_failed_{mode}_total", agent)
        finally:
            for edge in edges:
                if edge.process:
                    edge.stop(check=False)
        poll(lambda: len(wire.verdicts()) >= counted["answered"], "all answers are recorded")
        verdicts = wire.verdicts()
    passed = Counter(ms for ms, ok in verdicts if ok)
    elapsed_ms = max(ms for ms, _ in verdicts) - min(ms for ms, _ in verdicts)
    bound = burst + limit * elapsed_ms // period_ms
    total = sum(seen.values())
    assert total == n_requests // n_edges * n_edges == len(verdicts) == counted["answered"], (seen, len(verdicts), counted)
    assert counted["timeout"] == counted["lost"] == counted["breaker_open"] == 0, counted
    assert counted["fail open"] == counted["fail closed"] == counted["fail local"] == 0, counted
    assert seen["2xx"] == sum(passed.values()) and seen["4xx"] == total - seen["2xx"], (seen, sum(passed.values()))
    assert passed == expected(verdicts, limit, period_ms, burst), "the script and the reference disagree"
    assert seen["2xx"] <= bound, f"{seen['2xx']} passed, at most {bound} may"
    return {"requests": total, "passed": seen["2xx"], "bound": bound, "elapsed_ms": elapsed_ms, "excess": max(0, seen["2xx"] - bound)}
