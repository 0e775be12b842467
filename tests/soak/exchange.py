"""The promise of tests/e2e/test_exchange.py for as long as it takes to believe it: `make soak-exchange`, HAPROXY=3.4 for the other
version. One line for each fault; exit status 1 when a request failed or the edge grew."""

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "e2e"))

from agent_faults import FAULTS, both_up
from certs import make_cert
from edge import HAPROXY, Edge, Process
from load import Load
from policies import policy
from upstream import Upstream

MIX = ("h1", "h2", "h1", "tls-h2", "h1", "h2", "tls-h1", "h2")
PER_SECOND = 200
EVERY_S = 5  # from the beginning of one fault to that of the next, if the edge has healed by then
# From before the load to after it, when HAProxy keeps a connection to each agent for each thread and engine; a leak of one for each
# fault shows.
DESCRIPTORS_SLACK = 12
MEMORY_SLACK = 1.2  # from the second fault to the last; a process that stays shows


def descriptors(edge):
    """Of all processes of the edge."""
    return sum(len(list(Path(f"/proc/{process.pid}/fd").iterdir())) for process in edge.processes())


def memory_mib(edge):
    """Resident, of all processes of the edge."""
    lines = [line for p in edge.processes() for line in Path(f"/proc/{p.pid}/status").read_text().splitlines()]
    return sum(int(line.split()[1]) for line in lines if line.startswith("VmRSS:")) / 1024


def inflict(edge, load, fault, requests):
    """The fault again and again until so many requests are under way; (number of faults, MiB after the second and the last)."""
    sizes, n = [], 0
    while load.tally.sent < requests:
        begin = time.monotonic()
        FAULTS[fault](edge)
        n += 1
        load.wait_more(PER_SECOND)
        sizes.append(memory_mib(edge))
        time.sleep(max(0, EVERY_S - (time.monotonic() - begin)))
    return n, sizes[min(1, n - 1)], sizes[-1]


def settled(edge, most):
    """The descriptors once there are no more than that; after half a minute in which HAProxy closes idle ones, as many as there
    are."""
    end = time.monotonic() + 30
    while (n := descriptors(edge)) > most and time.monotonic() < end:
        time.sleep(0.5)
    return n


def run(fault, requests, cert):
    """True when the promise held."""
    with Upstream() as upstream, Edge(policy(), upstream.url, settings={"EDGE_AGENTS": "2"}, cert=cert) as edge:
        both_up(edge)
        open_before = descriptors(edge)
        with Load(edge, target=f"/soak/{fault}", protocols=MIX, per_second=PER_SECOND) as load:
            n, mib_before, mib_after = inflict(edge, load, fault, requests)
        seen = upstream.seen(load.target)
        open_after = settled(edge, open_before + DESCRIPTORS_SLACK)
    tally, undecided = load.tally, [r["target"] for r in seen if ["x-edge-client-ip", "127.0.0.1"] not in r["headers"]]
    print(
        f"{fault}: requests {tally.sent}, failed {len(tally.failures)}, faults {n}, "
        f"p50 {tally.quantile_ms(0.5):.1f} ms, p99 {tally.quantile_ms(0.99):.1f} ms, max {tally.quantile_ms(1):.1f} ms, "
        f"passed undecided {len(undecided)}, sent late {tally.late}, sent again after GOAWAY {tally.resent}, "
        f"descriptors {open_before} -> {open_after}, memory {mib_before:.0f} -> {mib_after:.0f} MiB",
        flush=True,
    )
    for line in tally.failures[:10] + undecided[:10]:
        print(f"  {line}", flush=True)
    grew = open_after > open_before + DESCRIPTORS_SLACK or mib_after > mib_before * MEMORY_SLACK
    if grew:
        print("  the edge grew", flush=True)
    return not (tally.failures or undecided or grew or tally.answered != tally.sent)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=20000, help="at least so many for each fault")
    parser.add_argument("faults", nargs="*", default=list(FAULTS), help=f"some of: {' '.join(FAULTS)}")
    arguments = parser.parse_args()
    said = subprocess.run([HAPROXY, "-v"], capture_output=True, text=True, check=True).stdout.splitlines()[0]
    print(f"{said}; {PER_SECOND} requests/s over {' '.join(MIX)}", flush=True)
    with tempfile.TemporaryDirectory(prefix="edge-soak-") as folder:
        cert = make_cert(Path(folder))
        held = [run(fault, arguments.requests, cert) for fault in arguments.faults]
    return 0 if all(held) else 1


if __name__ == "__main__":
    sys.exit(main())
