"""An edge for tests: `edge-spoa run` on ports and in a folder of its own, its lines read, its processes known by pid."""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
import urllib.request
from pathlib import Path

import exposition

ROOT = Path(__file__).resolve().parents[2]
BINARY = os.environ.get("EDGE_SPOA_BIN", str(ROOT / "build/release/edge-spoa"))
HAPROXY = os.environ.get("EDGE_HAPROXY", str(ROOT / ".deps/haproxy-3.2/haproxy"))
PASSED_ON = ("PATH", "HOME", "TMPDIR", "LANG", "ASAN_OPTIONS", "LSAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS")
DEADLINE = 20  # seconds; generous, because only failures wait this long
TAIL_LINES = 60
SANITIZER_FAULT = re.compile(r"(Address|Leak|Thread)Sanitizer|runtime error:")

seen = []  # every edge of this process, oldest first; conftest.py forgets those that ended


def poll(check, what, deadline=DEADLINE):
    """Waits until check() is true and returns its value; an OSError counts as "not yet"."""
    end = time.monotonic() + deadline
    while True:
        try:
            value, why = check(), "false"
        except OSError as e:
            value, why = None, str(e)
        if value:
            return value
        assert time.monotonic() < end, f"{what}: not within {deadline} s (last: {why})"
        time.sleep(0.02)


class Ports:
    """n consecutive ports that stay ours until close(): bound, not listening, so that whoever asks the kernel for a free
    port gets another one, while servers that set SO_REUSEADDR, as HAProxy and agents do, can still listen there."""

    def __init__(self, n=1, address="127.0.0.1"):
        while True:
            self.socks = [self.reserve(address, 0)]
            self.first = self.socks[0].getsockname()[1]
            try:
                self.socks += [self.reserve(address, self.first + i) for i in range(1, n)]
                return
            except (OSError, OverflowError):
                self.close()

    @staticmethod
    def reserve(address, port):
        sock = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        try:
            sock.bind((address, port))
        except BaseException:
            sock.close()
            raise
        return sock

    def close(self):
        for sock in self.socks:
            sock.close()


class Process:
    """A process as /proc shows it; it may have ended since."""

    def __init__(self, pid):
        self.pid = pid
        self.stat = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        self.state, self.parent, self.session = self.stat[0], int(self.stat[1]), int(self.stat[3])

    def argv(self):
        return self.read("cmdline")

    def environ(self):
        return dict(entry.partition("=")[::2] for entry in self.read("environ"))

    def read(self, name):
        """The strings of a file of that process; one empty string when it has ended."""
        try:
            return Path(f"/proc/{self.pid}/{name}").read_text(errors="replace").split("\0")
        except OSError:
            return [""]


def session_processes(session):
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                process = Process(int(name))
            except (OSError, IndexError):
                continue
            if process.session == session and process.state != "Z":
                found.append(process)
    return found


class Edge:
    """Started by `with` or start(); stop() ends it and proves that nothing is left. policy: a dict, or bytes for a broken
    file, or None for no file at all. settings: names as in the environment; None unsets one."""

    def __init__(self, policy, upstream_url, settings=None, cert=None, binary=BINARY):
        self.dir = Path(tempfile.mkdtemp(prefix="edge-e2e-"))
        self.run_dir = self.dir / "run"
        self.run_dir.mkdir()
        self.policy_file = self.dir / "policy.json"
        if policy is not None:
            self.write_policy(policy)
        self.client_ports, self.tls_ports, self.health_ports, self.internal_ports = Ports(), Ports(), Ports(), Ports(2)
        self.port, self.tls_port = self.client_ports.first, self.tls_ports.first
        self.health_port, self.internal_port = self.health_ports.first, self.internal_ports.first
        self.binary, self.process, self.status = binary, None, None
        self.lines, self.changed = [], threading.Condition()
        self.environment = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
        self.environment |= {
            "UPSTREAM_URL": upstream_url,
            "POLICY_FILE": str(self.policy_file),
            "CLIENT_IP_SOURCE": "remote_addr",
            "EDGE_LISTEN": f"127.0.0.1:{self.port}",
            "EDGE_HEALTH_LISTEN": f"127.0.0.1:{self.health_port}",
            "EDGE_INTERNAL_LISTEN": f"127.0.0.1:{self.internal_port}",
            "EDGE_RUN_DIR": str(self.run_dir),
            "EDGE_HAPROXY": HAPROXY,
            "EDGE_AGENTS": "1",
            "EDGE_WORKERS": "2",
            "EDGE_HAPROXY_THREADS": "2",
            "DRAIN_DELAY": "0s",
            "SHUTDOWN_TIMEOUT": "5s",
        }
        if cert:
            self.environment |= {"EDGE_TLS_LISTEN": f"127.0.0.1:{self.tls_port}", "EDGE_TLS_CERT": str(cert)}
        for name, value in (settings or {}).items():
            self.environment.pop(name, None)
            if value is not None:
                self.environment[name] = str(value)
        seen.append(self)

    def listen_everywhere(self):
        """Before start: clear HTTP on one socket for all addresses of both families, as an edge listens by default."""
        self.client_ports.close()
        self.client_ports = Ports(address="::")
        self.port = self.client_ports.first
        self.environment["EDGE_LISTEN"] = f":{self.port}"
        return self

    def write_policy(self, policy):
        """Replaces the file as a whole, as a deployment would."""
        new = self.policy_file.with_suffix(".new")
        new.write_bytes(policy if isinstance(policy, bytes) else json.dumps(policy).encode())
        new.rename(self.policy_file)

    # --- life ---

    def __enter__(self):
        return self.start()

    def __exit__(self, kind, *unused):
        self.stop(check=kind is None)

    def argv(self):
        """The kernel ends the edge when this process dies in whatever way."""
        return ["setpriv", "--pdeathsig", "TERM", self.binary, "run"]

    def start(self, ready=True):
        """Waits until the launcher says that the edge is up; ready: and for /readyz."""
        self.process = subprocess.Popen(
            self.argv(), env=self.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
        )
        self.threads = [
            threading.Thread(target=self.read_lines, args=args, daemon=True)
            for args in ((self.process.stdout, "stdout"), (self.process.stderr, "stderr"))
        ]
        for thread in self.threads:
            thread.start()
        try:
            poll(lambda: self.alive() and self.matching(event="edge_up"), "the edge is up")
            if ready:
                poll(lambda: self.alive() and self.readyz()[0] == 200, "the edge is ready")
        except BaseException:
            self.stop(check=False)
            raise
        return self

    def alive(self):
        assert self.process.poll() is None, f"edge-spoa run ended with status {self.process.returncode}\n{self.tail()}"
        return True

    def signal(self, number):
        self.process.send_signal(number)

    def wait_exit(self, deadline=DEADLINE):
        self.status = self.process.wait(deadline)
        return self.status

    def stop(self, check=True):
        if self.process is None:
            self.clean_up()
            return
        try:
            if self.process.poll() is None:
                self.signal(signal.SIGTERM)
            self.wait_exit()
        except subprocess.TimeoutExpired:
            self.status = "none: it had to be killed"
        finally:
            left = self.kill_all()
            self.clean_up()
        faults = [line["text"] for line in self.lines if SANITIZER_FAULT.search(line["text"])]
        assert not faults, "\n".join(faults)
        assert not check or self.status == 0, f"exit status {self.status}\n{self.tail()}"
        assert not check or not left, f"processes left behind: {left}\n{self.tail()}"

    def kill_all(self):
        """Ends what is still there; returns what that was, but for the launcher's own last moment."""
        left = [(p.pid, " ".join(p.argv())) for p in session_processes(self.process.pid)]
        for pid, _ in left:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.process.wait(DEADLINE)
        for thread in self.threads:
            thread.join(DEADLINE)
        return left

    def clean_up(self):
        for ports in (self.client_ports, self.tls_ports, self.health_ports, self.internal_ports):
            ports.close()
        self.process = None
        shutil.rmtree(self.dir, ignore_errors=True)

    # --- what it writes ---

    def read_lines(self, stream, name):
        for raw in stream:
            text = raw.decode("utf-8", "replace").rstrip("\n")
            try:
                parsed = json.loads(text)
            except ValueError:
                parsed = None
            with self.changed:
                self.lines.append({"stream": name, "text": text, "json": parsed if isinstance(parsed, dict) else None})
                self.changed.notify_all()

    def tail(self):
        with self.changed:
            return "\n".join(f"{line['stream']}: {line['text'][:2000]}" for line in self.lines[-TAIL_LINES:])

    def matching(self, **want):
        """JSON lines with these members; '__' in a name stands for a dot."""
        want = {name.replace("__", "."): value for name, value in want.items()}
        return [
            line["json"]
            for line in self.lines
            if line["json"] is not None and all(line["json"].get(name) == value for name, value in want.items())
        ]

    def wait_lines(self, n=1, deadline=DEADLINE, **want):
        """The lines that match, once there are n."""
        with self.changed:
            enough = self.changed.wait_for(lambda: len(self.matching(**want)) >= n, deadline)
            found = self.matching(**want)
        assert enough, f"{len(found)} of {n} lines with {want} within {deadline} s"
        return found

    def record(self, **want):
        """The one access record that matches."""
        found = self.wait_lines(msg="access", **want)
        assert len(found) == 1, f"{len(found)} records with {want}: {found}"
        return found[0]

    def record_of(self, path):
        return self.record(url__path=path)

    def event(self, event, **want):
        """The newest log line of an event."""
        return self.wait_lines(event=event, **want)[-1]

    # --- what it says when asked ---

    @staticmethod
    def get(port, path):
        request = urllib.request.Request(f"http://127.0.0.1:{port}{path}")
        try:
            with urllib.request.urlopen(request, timeout=5) as response:
                return response.status, response.read().decode(), response.headers
        except urllib.error.HTTPError as e:
            with e:
                return e.code, e.read().decode(), e.headers

    def health(self, path):
        return self.get(self.health_port, path)

    def readyz(self):
        return self.health("/readyz")

    def internal(self, path, agent=0):
        return self.get(self.internal_port + agent, path)

    def metrics(self, agent=0):
        return exposition.parse(self.internal("/metrics", agent)[1])

    def metric(self, name, agent=0, **labels):
        return exposition.value(self.metrics(agent), name, **labels)

    def settled(self, agent=0, ends=("records", "records_lost")):
        """The metrics, once every request that the agent's process decided has ended and its record has come or is known to be lost.
        ends: the counters of what can become of one."""

        def all_ended():
            families = self.metrics(agent)
            asked, *seen = (exposition.value(families, f"edge_{name}_total") for name in ("spop_notifies", *ends))
            return sum(seen) >= asked

        poll(all_ended, "every decided request has its record")
        # A page is not of one moment: what came while that one was written may be in its end and not in its beginning.
        return self.metrics(agent)

    def haproxy_command(self, command):
        with socket.socket(socket.AF_UNIX) as sock:
            sock.settimeout(5)
            sock.connect(str(self.run_dir / "haproxy.sock"))
            sock.sendall(command.encode() + b"\n")
            answer = b""
            while data := sock.recv(65536):
                answer += data
        return answer.decode()

    # --- its processes ---

    def stat(self, kind, column):
        """{proxy: value of that column of `show stat`} for all of a kind, FRONTEND or BACKEND."""
        rows = [line.split(",") for line in self.haproxy_command("show stat").lstrip("# ").splitlines() if line]
        return {row[0]: row[rows[0].index(column)] for row in rows[1:] if row[1] == kind}

    def processes(self):
        return session_processes(self.process.pid)

    def agent_pids(self):
        """{index: pid}; during an exchange the newer process of an index counts."""
        found = {}
        for p in sorted(self.processes(), key=lambda p: p.pid):
            if "serve" in p.argv()[1:2]:
                found[int(p.environ().get("EDGE_AGENT_INDEX", -1))] = p.pid
        return found

    def haproxy_pids(self):
        """(master, [workers]); what only checks a configuration is neither."""

        def found():
            """None while the list has changed under its reader."""
            parents = {p.pid: p.parent for p in self.processes() if "haproxy" in p.argv()[0] and "-W" in p.argv()}
            masters = [pid for pid, parent in parents.items() if parent not in parents]
            return (masters[0], sorted(set(parents) - set(masters))) if len(masters) == 1 else None

        return poll(found, "HAProxy has one master")
