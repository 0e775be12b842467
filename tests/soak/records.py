"""Access records at a rate that is too high for comfort: `make soak-records`, HAPROXY=3.4 for the other version; SOAK="rounds" or SOAK="flood"
for one half. One line of JSON for each round; exit status 1 when a request failed, one was neither counted nor known to be lost, or memory grew.

rounds: 10,000 requests a second on an edge with two agents, while the active one is stopped for two seconds, killed, exchanged.
flood: five million records, usual and hostile ones, into the socket of an agent that runs alone, as fast as it takes them."""

import argparse
import fcntl
import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "e2e"))

import exposition
from agent_faults import FAULTS, both_up, is_other
from edge import BINARY, HAPROXY, Edge, Ports, poll
from policies import policy
from records import account, wait_accounts

PER_SECOND, CONNECTIONS = 10_000, 50
LEAD_S, STOPPED_S, TAIL_S = 2, 2, 4
MILLION = 1_000_000
BLOCK_RECORDS = 4096
GROWTH_KIB = 1024  # of the agent's resident memory, from the first million to the last
SIOCOUTQ = 0x5411

NGINX = """worker_processes 1; daemon off; pid {dir}/nginx.pid; error_log {dir}/nginx.log;
events {{ worker_connections 4096; }}
http {{
    access_log off; keepalive_requests 100000000; keepalive_timeout 600s;
    client_body_temp_path {dir}/a; proxy_temp_path {dir}/b; fastcgi_temp_path {dir}/c; uwsgi_temp_path {dir}/d; scgi_temp_path {dir}/e;
    server {{ listen 127.0.0.1:{port} backlog=4096; location / {{ return 200 "ok"; }} }}
}}
"""


@contextmanager
def running(argv, **more):
    """A program in the foreground; it ends when this one does."""
    process = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", *map(str, argv)], stdin=subprocess.DEVNULL, **more)
    try:
        yield process
    finally:
        process.terminate()
        process.wait(20)


@contextmanager
def nginx(folder):
    ports = Ports()
    conf = folder / "nginx.conf"
    conf.write_text(NGINX.format(dir=folder, port=ports.first))
    with running(["nginx", "-c", conf, "-e", folder / "nginx.log"]):
        poll(lambda: not socket.socket().connect_ex(("127.0.0.1", ports.first)), "nginx listens")
        yield f"http://127.0.0.1:{ports.first}"
    ports.close()


class QuietEdge(Edge):
    """Its lines go to a file: reading a million of them would cost the machine what it needs for the requests."""

    def start(self, ready=True):
        self.threads, self.output = [], open(self.dir.with_suffix(".out"), "wb")
        self.process = subprocess.Popen(self.argv(), env=self.environment, stdin=subprocess.DEVNULL, stdout=self.output, stderr=self.output, start_new_session=True)
        poll(lambda: self.alive() and self.readyz()[0] == 200, "the edge is ready")
        return self

    def clean_up(self):
        super().clean_up()
        self.output.close()

    def events(self, name):
        """How often its log has told of that."""
        return Path(self.output.name).read_bytes().count(b'"event":"%s"' % name.encode())


# --- rounds ---


def undisturbed(edge):
    time.sleep(STOPPED_S)


def stopped(edge):
    pid = edge.agent_pids()[0]
    os.kill(pid, signal.SIGSTOP)
    time.sleep(STOPPED_S)  # the fault itself: nothing is waited for
    os.kill(pid, signal.SIGCONT)
    both_up(edge)


def ended(edge, number):
    pid = edge.agent_pids()[0]
    os.kill(pid, number)
    poll(lambda: is_other(edge, 0, pid), "the launcher started another agent")
    both_up(edge)


def killed(edge):
    ended(edge, signal.SIGKILL)


def exchanged(edge):
    before, done = set(edge.agent_pids().values()), edge.events("exchange_done")
    edge.signal(signal.SIGUSR1)
    poll(lambda: edge.events("exchange_done") > done, "the agents have been exchanged")
    both_up(edge)
    assert not before & set(edge.agent_pids().values())


ROUNDS = {f.__name__: f for f in (undisturbed, stopped, killed, exchanged)}


def load(edge, seconds):
    return subprocess.Popen(
        ["setpriv", "--pdeathsig", "KILL", "h2load", "--h1", f"-c{CONNECTIONS}", f"--rps={PER_SECOND // CONNECTIONS}", f"-D{seconds}", "-H", ":authority: edge.test"]
        + [f"http://127.0.0.1:{edge.port}/soak/records?page=2"],
        stdout=subprocess.PIPE,
        text=True,
    )


def answered(text):
    """(requests answered, those of them with another status than 2xx, requests without an answer)."""
    done = re.search(r"requests: \d+ total, (\d+) started, (\d+) done, \d+ succeeded, \d+ failed, (\d+) errored, (\d+) timeout", text)
    codes = re.search(r"status codes: (\d+) 2xx, (\d+) 3xx, (\d+) 4xx, (\d+) 5xx", text)
    return int(done[2]), sum(int(codes[i]) for i in (2, 3, 4)), int(done[3]) + int(done[4]), int(done[1])


def run_round(edge, name):
    """True when the promise held."""
    before = [account(edge, agent) for agent in (0, 1)]
    generator = load(edge, LEAD_S + STOPPED_S + TAIL_S)
    time.sleep(LEAD_S)
    ROUNDS[name](edge)
    done, refused, unanswered, started = answered(generator.communicate(timeout=120)[0])
    # What the generator cuts off at its end may have a record or not: at most one request a connection.
    poll(lambda: all(sum(account(edge, i)) - sum(before[i]) >= done for i in (0, 1)), "every request is counted or lost", 30)
    time.sleep(3)  # a gap is taken for a loss when it has lasted for two seconds
    after = [account(edge, agent) for agent in (0, 1)]
    grown = [[int(x - y) for x, y in zip(a, b)] for a, b in zip(after, before)]
    logged = sum(grown[0])
    report = {"round": name, "requests": done, "not_2xx": refused, "unanswered": unanswered, "logged": logged}
    report |= {"counted": sum(g[0] for g in grown), "lost": [g[2] for g in grown], "cut_off": started - done}
    print(json.dumps(report), flush=True)
    whole = done <= logged <= started and sum(grown[1]) == logged
    known = report["counted"] + max(report["lost"]) >= logged >= report["counted"]
    return whole and known and not refused and not unanswered and (name == "killed" or report["lost"] == [0, 0])


def rounds(names):
    with tempfile.TemporaryDirectory(prefix="edge-soak-") as folder, nginx(Path(folder)) as url:
        with QuietEdge(policy(), url, settings={"EDGE_AGENTS": "2"}) as edge:
            both_up(edge)
            held = [run_round(edge, name) for name in names]
            dropped = sum(edge.metric("edge_log_dropped_total", agent) for agent in (0, 1))
            print(json.dumps({"log_dropped": int(dropped)}), flush=True)
        Path(edge.output.name).unlink()
    return all(held)


# --- flood ---

AGENTS_PART = "3 {agent} a {version} {decision} - 198.51.100.7 DE 64500 - 400 searches:c {rules} site - {subjects} - {id} GET shop.example page,sort 0 {ua} {path}"
BROWSER = "Mozilla/5.0\\u0020(X11;\\u0020Linux\\u0020x86_64)\\u0020AppleWebKit/537.36\\u0020(KHTML,\\u0020like\\u0020Gecko)\\u0020Chrome/131.0.0.0\\u0020Safari/537.36"
RECORD = "4\t{rec}\t{status}\t12\t0\t{ended}\t{answered}\t-\tplain\tupstream\t812\t5120\t{n}\t{pid}\t-"


def usual(rng, agent=0):
    rec = AGENTS_PART.format(
        agent=agent, version=1, decision="allow", rules="pages,search", subjects="-", id=f"{rng.getrandbits(128):032x}", ua=BROWSER, path="/v1/orders/4711/items"
    )
    return RECORD.format(rec=rec, status=200, ended="--", answered="true", n=5, pid=9).encode()


def hostile(rng):
    """(a record, whether the agent keeps it, whether it can't be read)."""
    kind = rng.randrange(8)
    if kind == 0:  # a path of escapes and a user agent of quotes, each as long as may be
        rec = AGENTS_PART.format(
            agent=0, version=rng.getrandbits(40), decision="block", rules="!" + "r" * 64, subjects="-", id="x" * 128, ua='\\"' * 256, path="\\ud83d\\ude00" * 250
        )
        return RECORD.format(rec=rec, status=403, ended="LR", answered="false", n=rng.getrandbits(32), pid=rng.getrandbits(22) + 1).encode(), True, False
    if kind == 1:  # a subject that nobody has seen
        subject = f"limit:{rng.getrandbits(128):032x}:{rng.getrandbits(64):x}"
        rec = AGENTS_PART.format(
            agent=0, version=1, decision="rate_limited", rules="-", subjects=subject, id=f"{rng.getrandbits(128):032x}", ua="-", path=f"/{rng.getrandbits(200):x}"
        )
        return RECORD.format(rec=rec, status=429, ended="LR", answered="false", n=5, pid=9).encode(), True, False
    if kind == 2:
        return usual(rng, agent=1), False, False
    if kind == 3:  # cut anywhere
        record = usual(rng)
        return record[: rng.randrange(1, len(record) - 8)], False, True
    if kind == 4:
        return rng.randbytes(rng.randrange(1, 2000)).replace(b"\t", b"x"), False, True
    if kind == 5:
        return b"4\t" + b"x" * (16384 - 2), False, True
    if kind == 6:
        return b"", False, True
    return b"4" + b"\t" * 14, False, False  # no agent decided


def block(rng, n_hostile):
    """(octet-counted records, how many of them the agent keeps, how many can't be read)."""
    made = [hostile(rng) if i < n_hostile else (usual(rng), True, False) for i in range(BLOCK_RECORDS)]
    rng.shuffle(made)
    wire = b"".join(b"%d %s" % (len(record), record) for record, _, _ in made)
    return wire, sum(kept for _, kept, _ in made), sum(bad for _, _, bad in made)


def cpu_s(pid):
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident_kib(pid):
    return next(int(line.split()[1]) for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmRSS:"))


def wait_read(sock):
    """Until the agent has read everything, and the rest of a few milliseconds that it then takes is over."""
    poll(lambda: fcntl.ioctl(sock, SIOCOUTQ, b"\0\0\0\0") == b"\0\0\0\0", "the agent reads", 120)
    time.sleep(0.05)


def send(sock, blocks, n_records):
    """Sends blocks in turn until there were so many records; (records, kept, bad)."""
    sent = kept = bad = 0
    while sent < n_records:
        wire, n_kept, n_bad = blocks[sent // BLOCK_RECORDS % len(blocks)]
        sock.sendall(wire)
        sent, kept, bad = sent + BLOCK_RECORDS, kept + n_kept, bad + n_bad
    wait_read(sock)
    return sent, kept, bad


@contextmanager
def lone_agent(folder):
    ports = Ports()
    (folder / "policy.json").write_text(json.dumps(policy()))
    environment = {"EDGE_RUN_DIR": str(folder), "CLIENT_IP_SOURCE": "remote_addr", "POLICY_FILE": str(folder / "policy.json"), "EDGE_WORKERS": "1"}
    environment["EDGE_INTERNAL_LISTEN"] = f"127.0.0.1:{ports.first}"
    with running([BINARY, "serve"], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        poll(lambda: Edge.get(ports.first, "/readyz")[0] == 200, "the agent is ready")
        yield process.pid, lambda name: int(exposition.value(exposition.parse(Edge.get(ports.first, "/metrics")[1]), name))
    ports.close()


def flood(millions):
    rng = random.Random(1)
    easy, hard = [block(rng, 0)], [block(rng, n) for n in (0, BLOCK_RECORDS // 4, BLOCK_RECORDS // 2, BLOCK_RECORDS)]
    with tempfile.TemporaryDirectory(prefix="edge-soak-") as folder, lone_agent(Path(folder)) as (pid, metric), socket.socket(socket.AF_UNIX) as sock:
        sock.connect(str(Path(folder) / "records-0.sock"))
        total, sizes = [0, 0, 0], []
        for i in range(millions + 1):
            begin, before = time.monotonic(), cpu_s(pid)
            sent = send(sock, easy if i == 0 else hard, MILLION)
            total = [a + b for a, b in zip(total, sent)]
            sizes.append(resident_kib(pid))
            row = {"records": "usual" if i == 0 else "usual and hostile", "sent": total[0], "cpu_us_a_record": round((cpu_s(pid) - before) / sent[0] * 1e6, 2)}
            row |= {"records_per_s": round(sent[0] / (time.monotonic() - begin)), "resident_kib": sizes[-1]}
            print(json.dumps(row), flush=True)
        counts = {name: metric(f"edge_{name}_total") for name in ("records", "records_malformed", "log_lines", "log_dropped")}
    print(json.dumps({"kept": total[1], "unreadable": total[2], **counts}), flush=True)
    grew = max(sizes[1:]) - sizes[1] > GROWTH_KIB
    if grew:
        print("the agent grew", flush=True)
    return not grew and counts["records"] == total[1] == counts["log_lines"] + counts["log_dropped"] and counts["records_malformed"] == total[2]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--millions", type=int, default=5, help="of records in the flood")
    parser.add_argument("parts", nargs="*", default=["rounds", "flood"], help=f"rounds, flood, or some rounds: {' '.join(ROUNDS)}")
    arguments = parser.parse_args()
    said = subprocess.run([HAPROXY, "-v"], capture_output=True, text=True, check=True).stdout.splitlines()[0]
    print(f"{said}; {PER_SECOND} requests/s over {CONNECTIONS} connections", flush=True)
    names = list(ROUNDS) if "rounds" in arguments.parts else [name for name in arguments.parts if name in ROUNDS]
    held = rounds(names) if names else True
    return 0 if (flood(arguments.millions) if "flood" in arguments.parts else True) and held else 1


if __name__ == "__main__":
    sys.exit(main())
