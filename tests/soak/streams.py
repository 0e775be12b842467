"""Ten thousand event streams and a thousand WebSockets, held through one edge for five minutes: `make soak-streams`, HAPROXY=3.4 for the
other version. Prints what they took as JSON; exit status 1 when a stream was lost or wrong, memory grew, or the end was not in order."""

import argparse
import json
import signal
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "e2e"))

from edge import HAPROXY, Edge
from many_streams import Clients, Shape, Upstream, raise_fds
from policies import policy
from streams import at_once

KINDS = ("events_h1", "events_h2", "websockets")
SAMPLE_S = 5
SHUTDOWN_TIMEOUT_S = 10
SLACK_S = 5  # of a machine that does other things, beside SHUTDOWN_TIMEOUT
GROWTH = 1.02  # from a third of the time held, when buffers that the ramp took have been given back, to its end
MIB = 1 << 20


def resident(pid):
    """Bytes; 0 when it has ended."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmRSS:"))


def memory(edge):
    """Resident bytes of (HAProxy's workers, agents)."""
    return sum(map(resident, edge.haproxy_pids()[1])), sum(map(resident, edge.agent_pids().values()))


def ramp(edge, clients, shape, report):
    """Opens all streams, one kind after the other, and tells what each took."""
    before = memory(edge)
    report["mib_before"] = [round(size / MIB, 1) for size in before]
    for kind in KINDS:
        begin, n = time.monotonic(), getattr(shape, kind)
        clients.open(kind)
        after = memory(edge)
        if n:
            report[kind] = {"streams": n, "ramp_s": round(time.monotonic() - begin, 1)}
            report[kind] |= {"haproxy_bytes": (after[0] - before[0]) // n, "agent_bytes": (after[1] - before[1]) // n}
        before = after


def hold(edge, clients, shape, seconds, report):
    """Samples memory; the faults that it shows."""
    begin, samples = time.monotonic(), [memory(edge)]
    while time.monotonic() - begin < seconds:
        time.sleep(SAMPLE_S)
        samples.append(memory(edge))
    report["held_s"], report["in_haproxy"] = round(time.monotonic() - begin), at_once(edge)
    report["open"], (report["fewest_events"], report["fewest_echoes"]) = clients.tally.count["open"], clients.tally.fewest()
    faults, third = [], len(samples) // 3
    for i, name in enumerate(("haproxy", "agents")):
        sizes = [sample[i] / MIB for sample in samples]
        report[f"mib_{name}"] = {"begin": round(sizes[0], 1), "third": round(sizes[third], 1), "end": round(sizes[-1], 1), "most": round(max(sizes), 1)}
        if max(sizes[third:]) > sizes[third] * GROWTH:
            faults.append(f"{name} grew: {report[f'mib_{name}']}")
    least = int(seconds / shape.period_s) - 1
    if min(report["fewest_events"], report["fewest_echoes"]) < least:
        faults.append(f"on some stream passed less than {least} in {seconds} s")
    if not report["open"] == report["in_haproxy"] == shape.total:
        faults.append(f"{report['open']} streams at the clients and {report['in_haproxy']} in HAProxy instead of {shape.total}")
    return faults


def end(edge, clients, report):
    """SIGTERM; the faults of the drain."""
    clients.tally.is_ending = True
    begin = time.monotonic()
    edge.signal(signal.SIGTERM)
    report["exit_status"] = edge.wait_exit(SHUTDOWN_TIMEOUT_S + 60)
    report["drain_s"] = round(time.monotonic() - begin, 1)
    clients.wait_closed(60)
    report["open_after"] = clients.tally.count["open"]
    in_order = report["exit_status"] == 0 and report["open_after"] == 0 and report["drain_s"] <= SHUTDOWN_TIMEOUT_S + SLACK_S
    return [] if in_order else ["the end was not in order"]


def run(shape, seconds, folder):
    """(report, faults)."""
    settings = {"MAX_STREAMS": shape.total, "MAX_INFLIGHT": 200, "SHUTDOWN_TIMEOUT": f"{SHUTDOWN_TIMEOUT_S}s", "EDGE_AGENTS": "2"}
    if folder:
        settings["EDGE_HAPROXY_DIR"] = folder
    report = {"haproxy": subprocess.run([HAPROXY, "-v"], capture_output=True, text=True, check=True).stdout.split()[2]}
    with Upstream(shape) as upstream:
        edge = Edge(policy(), upstream.url, settings=settings).start()
        try:
            with Clients(edge.port, shape) as clients:
                ramp(edge, clients, shape, report)
                faults = hold(edge, clients, shape, seconds, report)
                faults += end(edge, clients, report)
                report |= {name: clients.tally.count[name] for name in ("events", "echoes", "wrong")}
                faults += clients.tally.wrong
        except BaseException:
            edge.stop(check=False)
            raise
        edge.stop()
    return report, faults


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=10_000, help="event streams, half of them over HTTP/2")
    parser.add_argument("--websockets", type=int, default=1_000)
    parser.add_argument("--seconds", type=int, default=300, help="how long they are held")
    parser.add_argument("--period", type=float, default=30, help="seconds between two events or echoes on a stream")
    parser.add_argument("--haproxy-dir", help="another folder than haproxy/ of this tree")
    a = parser.parse_args()
    shape = Shape(a.events - a.events // 2, a.events // 2, a.websockets, a.period)
    limit = raise_fds()
    if limit < shape.files_of_edge():
        print(f"open files are limited to {limit}, HAProxy needs {shape.files_of_edge()}: raise the hard limit (ulimit -Hn) or hold fewer streams")
        return 1
    report, faults = run(shape, a.seconds, a.haproxy_dir)
    print(json.dumps(report))
    for fault in faults:
        print(fault)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
