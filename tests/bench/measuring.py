"""Loads one side and reads what it cost: CPU time and context switches from /proc, requests from wrk, times from h2load."""

import os
import re
import resource
import subprocess
import time
from pathlib import Path
from typing import NamedTuple

from rows import HOST

CONNECTIONS = 32
RATE = 300
TICKS = os.sysconf("SC_CLK_TCK")
SWITCHES = re.compile(r"^(?:non)?voluntary_ctxt_switches:\s*(\d+)$", re.M)


class Used(NamedTuple):
    user_s: float
    system_s: float
    switches: int

    def since(self, before):
        return Used(*(a - b for a, b in zip(self, before)))


def cpu_s(pid):
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) / TICKS, int(fields[12]) / TICKS


def used(pid):
    statuses = (task.read_text() for task in Path(f"/proc/{pid}/task").glob("*/status"))
    return Used(*cpu_s(pid), sum(int(n) for status in statuses for n in SWITCHES.findall(status)))


def machine_cpu_s():
    user, nice, system, idle, iowait, irq, softirq, steal = map(int, Path("/proc/stat").read_text().split("\n")[0].split()[1:9])
    return (user + nice + system + irq + softirq + steal) / TICKS


def tree_cpu_s(pid):
    """Of a process and its living descendants."""
    children = (child for task in Path(f"/proc/{pid}/task").glob("*/children") for child in task.read_text().split())
    return sum(cpu_s(pid)) + sum(tree_cpu_s(child) for child in children)


def own_cpu_s():
    """Of this program and all that it started; children that have ended are in the second part."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return tree_cpu_s(os.getpid()) + ended.ru_utime + ended.ru_stime


def tool(argv, seconds):
    """What a load generator printed. It ends with this program, whatever ends that."""
    argv = ["setpriv", "--pdeathsig", "KILL", *argv]
    return subprocess.run(argv, capture_output=True, text=True, check=True, timeout=seconds + 60).stdout


def run_wrk(side, seconds, connections=CONNECTIONS):
    """Requests answered; any error ends the benchmark, since a side that fails is not comparable."""
    headers = [word for name, value in {"Host": HOST, **side.headers}.items() for word in ("-H", f"{name}: {value}")]
    before = side.server.counters()
    shown = tool(["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", *headers, side.url], seconds)
    errors = re.search(r"Socket errors:.*|Non-2xx.*", shown)
    assert errors is None, f"{side.row.id}: {errors[0]}"
    requests = int(re.search(r"(\d+) requests in", shown)[1])
    # wrk cuts off what is open at its end: a request on each connection, now and at the end of the run before.
    before.hold(side.server.counters(), requests, 2 * CONNECTIONS, side.row.id)
    return requests


def measure(side, seconds):
    """One round of one side."""
    before, machine, own = {role: used(pid) for role, pid in side.pids.items()}, machine_cpu_s(), own_cpu_s()
    began = time.monotonic()
    requests = run_wrk(side, seconds)
    took = time.monotonic() - began
    spent = {role: used(pid).since(before[role]) for role, pid in side.pids.items()}
    side.rounds.append(
        {
            "requests_per_s": requests / took,
            "user_us": {role: s.user_s * 1e6 / requests for role, s in spent.items()},
            "system_us": {role: s.system_s * 1e6 / requests for role, s in spent.items()},
            "switches": {role: s.switches / requests for role, s in spent.items()},
            "others_cpu": max(0.0, (machine_cpu_s() - machine - (own_cpu_s() - own)) / took),
        }
    )


def measure_latency(side, seconds, folder):
    """One turn of one side; h2load writes a line a request: when it began, its status, how long it took."""
    log = Path(folder) / "h2load.tsv"
    log.unlink(missing_ok=True)
    requests = RATE * seconds
    headers = [word for name, value in {":authority": HOST, **side.headers}.items() for word in ("-H", f"{name}: {value}")]
    before = side.server.counters()
    tool(["h2load", "--h1", "-c1", "-m1", f"-n{requests}", f"--rps={RATE}", f"--log-file={log}", *headers, side.url], seconds)
    before.hold(side.server.counters(), requests, 2 * CONNECTIONS, side.row.id)
    turn = []
    for line in log.read_text().splitlines():
        _, status, took_us = line.split("\t")[:3]
        assert status == "200", f"{side.row.id}: {line}"
        turn.append(int(took_us))
    assert len(turn) == requests, f"{side.row.id}: {len(turn)} of {requests} requests were answered"
    side.turns_us.append(turn)
