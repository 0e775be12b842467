#!/usr/bin/python3
"""Benchmarks of an edge against plain HAProxy of the same version and against nginx + Lua + Valkey (`make bench`).

CPU: wrk with one thread and 32 connections against each side in turn, A B C A B C ..., for a number of rounds. CPU per request is
user + system time of the proxy's worker, of the agent and of Valkey from /proc over the requests answered; reported are medians
over the rounds, ratios within each round, and their range. HAProxy has one thread, nginx and the agent one worker.
Latency: h2load on one connection at 300 requests a second, the sides in turn, from its log of every request.

One JSON line a row on standard output; --table prints tables as well, --short measures less long, --rows some rows.
rows.py lists the rows, sides.py starts and checks their servers, measuring.py loads them, report.py writes the rows.
"""

import argparse
import datetime
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "e2e"))

import private_valkey  # noqa: E402
from edge import BINARY  # noqa: E402
from measuring import measure, measure_latency, run_wrk  # noqa: E402
from report import report  # noqa: E402
from rows import LATENCY_BASE, selected  # noqa: E402
from sides import HAPROXIES, SCRIPT, Stage  # noqa: E402

LUA_MODULE = "/usr/lib/nginx/modules/ngx_http_lua_module.so"
TURNS = 4
TOOLS = ("nginx", "wrk", "h2load", "setpriv")


def say(text):
    print(f"bench: {text}", file=sys.stderr, flush=True)


def lacking(row):
    """What is not here and the row needs; None when it can be measured."""
    needs = [HAPROXIES[row.haproxy]] if row.haproxy else [LUA_MODULE]
    if row.needs_store:
        needs += [str(private_valkey.BINARY), str(SCRIPT)]
    return next((path for path in needs if not Path(path).exists()), None)


def version_of(argv):
    """The first number that a program prints when asked for its version; one built outside of git has none."""
    done = subprocess.run(argv, capture_output=True, text=True, check=True)
    found = re.search(r"(?<![A-Za-z])\d\S*", done.stdout + done.stderr)
    return found[0] if found else "unknown"


def circumstances(rows, args):
    versions = {"edge": version_of([BINARY, "--version"]), "nginx": version_of(["nginx", "-v"])}
    versions |= {f"HAProxy {v}": version_of([path, "-v"]) for v, path in HAPROXIES.items() if v in {row.haproxy for row in rows}}
    if any(row.needs_store for row in rows):
        versions["Valkey"] = re.search(r"v=(\S+)", subprocess.check_output([private_valkey.BINARY, "--version"], text=True))[1]
    return {
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        "cores": os.cpu_count(),
        "versions": versions,
        "rounds": args.rounds,
        "seconds": args.seconds,
        "load_average_before": round(os.getloadavg()[0], 2),
    }


def run(sides, args, folder):
    """sides: ({row id: side} for CPU, {row id: side} for latency)."""
    cpu, latency = sides
    for side in cpu.values():
        run_wrk(side, 1)
    for i in range(args.rounds):
        for name, side in cpu.items():
            say(f"round {i + 1} of {args.rounds}: {name}")
            measure(side, args.seconds)
    for i in range(TURNS):
        for name, side in latency.items():
            say(f"latency, turn {i + 1} of {TURNS}: {name}")
            measure_latency(side, max(1, args.latency // TURNS), folder)


def bench(cpu_rows, latency_rows, args):
    rows = cpu_rows + [row for row in latency_rows if row not in cpu_rows]
    about = circumstances(rows, args)
    with tempfile.TemporaryDirectory(prefix="edge-bench-") as folder, Stage(folder) as stage:
        sides = {row.id: stage.side(row) for row in rows}
        cpu = {row.id: sides[row.id] for row in cpu_rows}
        latency = {row.id: sides[row.id] for row in latency_rows}
        run((cpu, latency), args, folder)
    report(cpu, latency, LATENCY_BASE, about, args.table)


def available(rows, asked):
    """The rows that can be measured here. A row that was asked for by name and can't be is an error."""
    missing = {row.id: what for row in rows if (what := lacking(row)) is not None}
    for name, what in missing.items():
        say(f"skipped: {name}: {what} is not there")
    if missing and asked:
        sys.exit("bench: the rows asked for can't be measured here")
    kept = [row for row in rows if row.id not in missing]
    return [row._replace(over=tuple(other for other in row.over if other not in missing)) for row in kept]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", default="", help="comma list of rows, * allowed, as in 'realistic-*,latency-*'; default: all")
    parser.add_argument("--short", action="store_true", help="3 rounds of 3 s, latency over 12 s")
    parser.add_argument("--table", action="store_true", help="tables for README.md after the JSON lines")
    parser.add_argument("--rounds", type=int, help="rounds of the CPU rows (5)")
    parser.add_argument("--seconds", type=int, help="seconds of a side in a round (10)")
    parser.add_argument("--latency", type=int, help="seconds of a side's latency, in four turns (60)")
    args = parser.parse_args()
    usual = {"rounds": 3, "seconds": 3, "latency": 12} if args.short else {"rounds": 5, "seconds": 10, "latency": 60}
    for name, value in usual.items():
        if getattr(args, name) is None:
            setattr(args, name, value)
    missing = [tool for tool in TOOLS if shutil.which(tool) is None]
    if missing:
        sys.exit(f"bench: missing: {', '.join(missing)}; compose/local/deps.sh bench installs them")
    patterns = [pattern for pattern in args.rows.split(",") if pattern]
    try:
        cpu_rows, latency_rows = selected(patterns)
    except ValueError as e:
        sys.exit(f"bench: {e}")
    # As an exception, so that every server is ended.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *unused: sys.exit("bench: ended by a signal"))
    cpu_rows, latency_rows = available(cpu_rows, patterns), available(latency_rows, patterns)
    bench(cpu_rows, latency_rows, args)


if __name__ == "__main__":
    main()
