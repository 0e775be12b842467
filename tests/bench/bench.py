#!/usr/bin/python3
"""Benchmarks of an edge against plain HAProxy of the same version, as ratios within one run (`make bench`).

Throughput: wrk with one thread and 32 connections against each side in turn, A B C A B C ..., for a number of rounds. CPU per
request is user + system time of HAProxy's worker, of the agent and of the launcher from /proc over the requests answered;
reported are medians over the rounds, ratios within each round, and their range. HAProxy has one thread, the agent one worker.
Latency: h2load on one connection at 300 requests a second, the sides in turn, medians of its per-request log.

One JSON line a row on standard output; --table prints a table as well, --short measures less long.
"""

import argparse
import datetime
import json
import os
import re
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "e2e"))

from edge import BINARY, HAPROXY, ROOT, Edge, Ports, poll  # noqa: E402

HERE = ROOT / "tests/bench"
POLICY = ROOT / "compose/demo/policy.json"
BODY = "x" * 1024
RATE = 300
TICKS = os.sysconf("SC_CLK_TCK")


class QuietEdge(Edge):
    """An edge whose lines nobody reads, so that reading them costs no CPU here."""

    def start(self, ready=True):
        argv = ["setpriv", "--pdeathsig", "TERM", self.binary, "run"]
        self.threads = []
        self.process = subprocess.Popen(
            argv, env=self.environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=sys.stderr, start_new_session=True
        )
        try:
            poll(lambda: self.alive() and self.readyz()[0] == 200, "the edge is ready")
        except BaseException:
            self.stop(check=False)
            raise
        return self

    def pids(self):
        return {"haproxy": self.haproxy_pids()[1][0], "agent": self.agent_pids()[0], "launcher": self.process.pid}


class Server:
    """nginx or plain HAProxy, alive inside the block."""

    def __init__(self, argv, port, **environment):
        self.argv, self.port, self.environment = argv, port, environment

    def __enter__(self):
        env = {"PATH": os.environ["PATH"], **self.environment}
        self.process = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", *self.argv], env=env, stdin=subprocess.DEVNULL)
        poll(self.answers, f"{self.argv[0]} answers")
        return self

    def answers(self):
        assert self.process.poll() is None, f"{self.argv} ended"
        return Edge.get(self.port, "/")[0] == 200

    def __exit__(self, *unused):
        self.process.terminate()
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def pids(self):
        return {"haproxy": self.process.pid}


class Side:
    def __init__(self, name, url, server):
        self.name, self.url, self.pids = name, url, server.pids()
        self.rounds, self.latencies_us = [], []


def cpu_s(pid):
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def tree_cpu_s(pid):
    """Of a process and its living children."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return cpu_s(pid) + sum(tree_cpu_s(int(child)) for child in children)


def busy_s():
    """CPU time of the whole machine."""
    user, nice, system, idle, iowait, irq, softirq, steal = map(int, Path("/proc/stat").read_text().split("\n")[0].split()[1:9])
    return (user + nice + system + irq + softirq + steal) / TICKS


def spent_by_tools_s():
    own, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime


def run_wrk(url, seconds):
    """Requests answered; any error ends the benchmark, since a side that fails is not comparable."""
    done = subprocess.run(
        ["wrk", "-t1", "-c32", f"-d{seconds}s", url], capture_output=True, text=True, check=True, timeout=seconds + 30
    )
    errors = re.search(r"Socket errors:.*|Non-2xx.*", done.stdout)
    assert errors is None, f"{url}: {errors[0]}"
    return int(re.search(r"(\d+) requests in", done.stdout)[1])


def measure(side, seconds, upstream):
    """One round of one side."""
    cpu, all_cpu, tools, nginx = ({n: cpu_s(p) for n, p in side.pids.items()}, busy_s(), spent_by_tools_s(), tree_cpu_s(upstream))
    began = time.monotonic()
    requests = run_wrk(side.url, seconds)
    took = time.monotonic() - began
    used = {name: cpu_s(pid) - cpu[name] for name, pid in side.pids.items()}
    ours = sum(used.values()) + spent_by_tools_s() - tools + tree_cpu_s(upstream) - nginx
    side.rounds.append(
        {
            "requests_per_s": requests / took,
            "cpu_us": {name: value * 1e6 / requests for name, value in used.items()},
            "others_cpu": max(0.0, (busy_s() - all_cpu - ours) / took),
        }
    )


def measure_latency(side, seconds, folder):
    log = Path(folder) / "h2load.tsv"
    log.unlink(missing_ok=True)
    subprocess.run(
        ["h2load", "--h1", "-c1", "-m1", f"-n{RATE * seconds}", f"--rps={RATE}", f"--log-file={log}", side.url],
        check=True, stdout=subprocess.DEVNULL, timeout=seconds + 60,
    )  # fmt: skip
    for line in log.read_text().splitlines():
        _, status, took_us = line.split("\t")[:3]
        assert status == "200", f"{side.name}: {line}"
        side.latencies_us.append(int(took_us))


def ranged(values, digits=2):
    return {"median": round(statistics.median(values), digits), "min": round(min(values), digits), "max": round(max(values), digits)}


def decided_us(one_round):
    """What the request cost where it was decided and forwarded; the launcher only passes lines on."""
    return one_round["cpu_us"]["haproxy"] + one_round["cpu_us"].get("agent", 0)


def throughput_row(side, plain):
    row = {
        "row": side.name,
        "requests_per_s": ranged([r["requests_per_s"] for r in side.rounds], 0),
        "cpu_us_per_request": {name: ranged([r["cpu_us"][name] for r in side.rounds], 1) for name in side.pids},
        "cpu_of_others": ranged([r["others_cpu"] for r in side.rounds]),
    }
    if side is not plain:
        pairs = list(zip(side.rounds, plain.rounds))
        row["cpu_ratio_to_plain"] = ranged([decided_us(a) / decided_us(b) for a, b in pairs])
        row["agent_us_where_plain_costs_20"] = ranged([20 * a["cpu_us"]["agent"] / decided_us(b) for a, b in pairs])
        row["requests_per_s_and_core"] = ranged([1e6 / decided_us(r) for r in side.rounds], 0)
    return row


def latency_row(side, plain):
    medians = {s.name: statistics.median(s.latencies_us) for s in (plain, side)}
    return {
        "row": f"latency, {side.name}",
        "requests": len(side.latencies_us),
        "median_us": medians[side.name],
        "p99_us": statistics.quantiles(side.latencies_us, n=100)[98],
        "plain_median_us": medians[plain.name],
        "added_median_us": medians[side.name] - medians[plain.name],
    }


def circumstances(args):
    version = subprocess.run([HAPROXY, "-v"], capture_output=True, text=True, check=True).stdout
    edge = subprocess.run([BINARY, "--version"], capture_output=True, text=True, check=True).stdout
    return {
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        "cores": os.cpu_count(),
        "haproxy": re.search(r"version (\S+)", version)[1],
        "edge": edge.split()[1],
        "rounds": args.rounds,
        "seconds": args.seconds,
    }


def print_table(rows, about):
    print(f"\n{about['date']}, {about['cores']} cores, HAProxy {about['haproxy']}, {about['rounds']} rounds of {about['seconds']} s\n")
    print("| | requests/s | CPU us/request: HAProxy | agent | HAProxy + agent over plain (range) | added median |")
    print("|---|---|---|---|---|---|")
    added = {r["row"].removeprefix("latency, "): f"{r['added_median_us'] / 1000:.2f} ms" for r in rows if "added_median_us" in r}
    for row in (r for r in rows if "requests_per_s" in r):
        cpu, ratio = row["cpu_us_per_request"], row.get("cpu_ratio_to_plain")
        agent = cpu["agent"]["median"] if "agent" in cpu else ""
        shown = f"{ratio['median']} ({ratio['min']}-{ratio['max']})" if ratio else ""
        print(f"| {row['row']} | {row['requests_per_s']['median']:.0f} | {cpu['haproxy']['median']} | {agent} | {shown} | {added.get(row['row'], '')} |")


def run(sides, upstream, args, folder):
    for side in sides:
        run_wrk(side.url, 1)
    for i in range(args.rounds):
        for side in sides:
            print(f"bench: round {i + 1} of {args.rounds}: {side.name}", file=sys.stderr)
            measure(side, args.seconds, upstream)
    for _ in range(2):
        for side in sides[:2]:
            print(f"bench: latency: {side.name}", file=sys.stderr)
            measure_latency(side, args.latency // 2, folder)


def bench(args, folder):
    ports = Ports(2)
    upstream_port, plain_port = ports.first, ports.first + 1
    conf = Path(folder) / "nginx.conf"
    text = (HERE / "nginx.conf").read_text()
    for name, value in {"@DIR@": folder, "@PORT@": str(upstream_port), "@BODY@": BODY}.items():
        text = text.replace(name, value)
    conf.write_text(text)
    plain_environment = {"BENCH_DIR": folder, "BENCH_PORT": str(plain_port), "BENCH_UPSTREAM_PORT": str(upstream_port)}
    settings = {"EDGE_AGENTS": 1, "EDGE_WORKERS": 1, "EDGE_HAPROXY_THREADS": 1}
    nginx = Server(["nginx", "-c", str(conf), "-e", f"{folder}/nginx-error.log"], upstream_port)
    haproxy = Server([HAPROXY, "-db", "-f", str(HERE / "plain.cfg")], plain_port, **plain_environment)
    policy = json.loads(POLICY.read_text())
    load_before = os.getloadavg()
    with nginx, haproxy, QuietEdge(policy, f"http://127.0.0.1:{upstream_port}", settings) as edge:
        sides = [
            Side("plain HAProxy", f"http://127.0.0.1:{plain_port}/api/hello", haproxy),
            Side("edge, a config and a header rule match", f"http://127.0.0.1:{edge.port}/api/hello", edge),
            Side("edge, no rule matches", f"http://127.0.0.1:{edge.port}/hello", edge),
        ]
        run(sides, nginx.process.pid, args, folder)
    ports.close()
    rows = [throughput_row(side, sides[0]) for side in sides] + [latency_row(sides[1], sides[0])]
    about = {**circumstances(args), "load_average_before": round(load_before[0], 2)}
    for row in rows:
        print(json.dumps({**row, **about}))
    if args.table:
        print_table(rows, about)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--short", action="store_true", help="3 rounds of 3 s, latency over 10 s")
    parser.add_argument("--table", action="store_true", help="a table for README.md after the JSON lines")
    args = parser.parse_args()
    args.rounds, args.seconds, args.latency = (3, 3, 10) if args.short else (5, 10, 60)
    missing = [tool for tool in ("nginx", "wrk", "h2load", "setpriv") if shutil.which(tool) is None]
    if missing:
        sys.exit(f"bench: missing: {', '.join(missing)}; compose/local/deps.sh bench installs them")
    with tempfile.TemporaryDirectory(prefix="edge-bench-") as folder:
        bench(args, folder)


if __name__ == "__main__":
    main()
