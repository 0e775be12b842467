"""What an outage of Valkey costs requests whose limits fail open: `make soak-valkey`. For each fault one JSON line with the latencies (ms) before
it, while the breaker opens, for the rest of it and after it; exit status 1 when a request failed or Valkey was not used again."""

import argparse
import json
import signal
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "e2e"))

from edge import Edge, poll
from load import Load
from policies import limit_rule, policy
from upstream import Upstream
from valkey import Valkey, Wire

PER_SECOND = 200
OPENING_S = 1  # in which the breaker opens
TIMEOUT_MS = 10
RULE = limit_rule("ample", "true", 1000000, "1s", 1000000)


class Frozen:
    def __init__(self, valkey, wire):
        self.valkey = valkey

    def begin(self):
        self.valkey.signal(signal.SIGSTOP)

    def end(self):
        self.valkey.signal(signal.SIGCONT)


class Killed:
    def __init__(self, valkey, wire):
        self.valkey = valkey

    def begin(self):
        self.valkey.stop(signal.SIGKILL)

    def end(self):
        self.valkey.start()


class Cut:
    """Nothing arrives any more, and nobody is told."""

    def __init__(self, valkey, wire):
        self.wire = wire

    def begin(self):
        self.wire.cut()

    def end(self):
        self.wire.mend()


FAULTS = {"frozen": Frozen, "killed": Killed, "cut": Cut}


def slice_ms(latencies):
    ordered = sorted(1000 * value for value in latencies)
    at = {name: ordered[min(len(ordered) - 1, int(q * len(ordered)))] for name, q in (("p50", 0.5), ("p99", 0.99), ("max", 1))}
    return {"requests": len(ordered), **{name: round(value, 2) for name, value in at.items()}}


def outage(name, seconds, upstream):
    with Valkey() as valkey, Wire(valkey) as wire:
        # The wire is a program of its own that takes its time; only what cuts it goes through it.
        url = wire.url if name == "cut" else valkey.url()
        settings = {"VALKEY_URL": url, "VALKEY_TIMEOUT": f"{TIMEOUT_MS}ms", "EDGE_AGENTS": 2}
        fault, marks = FAULTS[name](valkey, wire), []
        with Edge(policy(limits=[RULE]), upstream.url, settings) as edge, Load(edge, per_second=PER_SECOND) as load:
            for begin, phase_s in ((None, seconds / 2), (fault.begin, OPENING_S), (None, seconds - OPENING_S), (fault.end, seconds / 2)):
                if begin:
                    begin()
                marks.append(len(load.tally.latencies))
                load.wait_more(int(phase_s * PER_SECOND))
            answered = edge.metric("edge_valkey_calls_total", outcome="answered")
            poll(lambda: edge.metric("edge_valkey_calls_total", outcome="answered") > answered + PER_SECOND, "Valkey is asked again")
            seen = {o: edge.metric("edge_valkey_calls_total", outcome=o) for o in ("answered", "timeout", "lost", "breaker_open", "not_connected")}
            ready = edge.readyz()[0]
        marks.append(len(load.tally.latencies))
    phases = dict(zip(("before", "opening", "outage", "after"), (load.tally.latencies[a:b] for a, b in zip(marks, marks[1:]))))
    print(json.dumps({"fault": name, "seconds": seconds, "requests": load.tally.sent, "failed": len(load.failures), "calls": seen,
                      "latency_ms": {phase: slice_ms(values) for phase, values in phases.items()}, "sent_late": load.tally.late}), flush=True)  # fmt: skip
    for failure in load.failures[:5]:
        print(failure, file=sys.stderr)
    return not load.failures and ready == 200


def main():
    parser = argparse.ArgumentParser(description=__doc__.split(":")[0])
    parser.add_argument("faults", nargs="*", metavar="FAULT", help=", ".join(FAULTS))
    parser.add_argument("--seconds", type=int, default=20, help="of each outage (20)")
    args = parser.parse_args()
    if unknown := [name for name in args.faults if name not in FAULTS]:
        parser.error(f"no fault: {', '.join(unknown)}; there are {', '.join(FAULTS)}")
    started = time.monotonic()
    with Upstream() as upstream:
        good = [outage(name, args.seconds, upstream) for name in args.faults or FAULTS]
    print(f"soak-valkey: {'held' if all(good) else 'FAILED'}; {time.monotonic() - started:.0f} s")
    sys.exit(0 if all(good) else 1)


if __name__ == "__main__":
    main()
