#!/usr/bin/python3
"""User instructions per request of HAProxy and of the agent, counted by callgrind (`make bench-instructions`). What the kernel does
is not in them; in turn they are the same on a busy machine, so that a step of a few per cent shows.

The rows are rows.py's, one process at a time is counted while the others run as usual. One JSON line a row on standard output."""

import argparse
import json
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "e2e"))

from bench import available, circumstances, say  # noqa: E402
from edge import Process  # noqa: E402
from measuring import run_wrk  # noqa: E402
from rows import selected  # noqa: E402
from sides import QuietEdge, Server, Stage  # noqa: E402

ROWS = ("plain-3.2", "bare-3.2", "realistic-3.2", "operations-3.2", "limit-3.2")
TOOLS = ("nginx", "wrk", "setpriv", "valgrind", "callgrind_control")
# Longer than the agent tells HAProxy's process what a policy sets (spoa/request/process_vars.h), which later requests do without.
WARM_S = 7
# So few that a slowed HAProxy still sees its agents' checks in time.
CONNECTIONS = 16


class Agent(Server):
    """`edge-spoa serve` without a launcher; port: of its internal pages."""

    def answers(self):
        assert self.process.poll() is None, f"{self.argv} ended"
        return QuietEdge.get(self.port, "/metrics")[0] == 200


class BareEdge(QuietEdge):
    """An edge whose launcher has ended: HAProxy and the agent are started once more as it had started them. under: what each role is
    run under."""

    def __init__(self, *args, under):
        super().__init__(*args)
        self.under, self.stack = under, ExitStack()

    def start(self, ready=True):
        super().start(ready)
        try:
            agent, proxy = Process(self.agent_pids()[0]).environ(), Process(self.haproxy_pids()[0])
            argv, environment = proxy.argv(), proxy.environ()
            agent.pop("EDGE_READY_FD")
            self.signal(signal.SIGTERM)
            assert self.wait_exit() == 0
            argv = [*self.under.get("proxy", ()), argv[0], "-db", "-f", argv[argv.index("-f") + 1]]
            servers = {
                "agent": Agent([*self.under.get("agent", ()), self.binary, "serve"], self.internal_port, **agent),
                "proxy": Server(argv, self.port, **environment),
            }
            self.servers = {role: self.stack.enter_context(server) for role, server in servers.items()}
        except BaseException:
            self.stop(check=False)
            raise
        return self

    def stop(self, check=True):
        self.stack.close()
        super().stop(check)

    def pids(self):
        return {role: server.process.pid for role, server in self.servers.items()}


def counting(pid, on):
    argv = ["callgrind_control", "--instr=" + ("on" if on else "off"), str(pid)]
    subprocess.run(argv, check=True, capture_output=True, timeout=30)


def instructions(row, role, seconds):
    """(per request, over how many requests) of the process that has this role in the row."""
    with tempfile.TemporaryDirectory(prefix="edge-bench-") as folder:
        counts = Path(folder) / "callgrind.out"
        under = {role: ("valgrind", "--quiet", "--tool=callgrind", "--instr-atstart=no", f"--callgrind-out-file={counts}")}
        with Stage(folder, partial(BareEdge, under=under), under.get("proxy", ())) as stage:
            side = stage.side(row)
            run_wrk(side, WARM_S, CONNECTIONS)
            counting(side.pids[role], True)
            requests = run_wrk(side, seconds, CONNECTIONS)
            counting(side.pids[role], False)
        total = re.search(r"^totals: (\d+)$", counts.read_text(), re.M)
        return round(int(total[1]) / requests), requests


def report(row, seconds, about):
    found = {}
    for role in ("proxy",) if row.server == "plain" else ("proxy", "agent"):
        say(f"{row.id}: {role}")
        found[role] = instructions(row, role, seconds)
    line = {
        "row": row.id,
        "title": row.title,
        "instructions": {role: n for role, (n, _) in found.items()},
        "requests": {role: n for role, (_, n) in found.items()},
    }
    print(json.dumps({**line, **about}), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", default="", help=f"comma list of rows, * allowed; default: {','.join(ROWS)}")
    parser.add_argument("--seconds", type=int, default=3, help="seconds of counted load (3)")
    args = parser.parse_args()
    missing = [tool for tool in TOOLS if shutil.which(tool) is None]
    if missing:
        sys.exit(f"bench: missing: {', '.join(missing)}; compose/local/deps.sh bench installs them")
    # As an exception, so that every server is ended.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *unused: sys.exit("bench: ended by a signal"))
    patterns = [pattern for pattern in args.rows.split(",") if pattern]
    try:
        # Comparisons with nginx come along: it is not counted.
        rows = available([row for row in selected(patterns or list(ROWS))[0] if row.haproxy], patterns)
    except ValueError as e:
        sys.exit(f"bench: {e}")
    about = circumstances(rows, argparse.Namespace(rounds=1, seconds=args.seconds))
    for row in rows:
        report(row, args.seconds, about)


if __name__ == "__main__":
    main()
