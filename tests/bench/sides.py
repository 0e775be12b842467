"""The sides of the benchmark as running servers. Each has a port, processes known by role, and counters that must have
moved with the requests it answered, so that no side can be measured while it does less than its row says."""

import grp
import http.client
import json
import os
import pwd
import re
import shutil
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from edge import BINARY, HAPROXY, ROOT, Edge, Ports, poll
from private_valkey import Valkey
from rows import FRONT_SETTINGS, HEADERS, HOST, PAGE_GLOBAL, PAGE_RULE, REQUESTS

HERE = ROOT / "tests/bench"
POLICY = json.loads((HERE / "realistic.json").read_text())
SCRIPT = ROOT / "common/rate/limits.lua"
HAPROXIES = {"3.2": HAPROXY, "3.4": str(ROOT / ".deps/haproxy-3.4/haproxy")}
BODY = "x" * 1024
PROBE = "/account/orders/probe/recent"
LIMIT = POLICY["rate_limit_rules"][0]
PERIODS_MS = {"1h": 3600000}
OPERATIONS = [op for rule in POLICY["request_header_rules"] for op in rule["ops"]]
# Of a request whose client, the load's end, closes while the agent is asked: whoever gets an answer gets the upstream's.
ANSWERED = ("allow", "bad_request")
UNDECIDED = ("failed_open", "failed_closed", "failed_local", "untracked", "unreadable")


class Counters(NamedTuple):
    """each: one for every request. none: never moves."""

    each: dict
    none: dict

    def hold(self, after, requests, slack, who):
        for name, value in self.each.items():
            grown = after.each[name] - value
            assert requests <= grown <= requests + slack, f"{who}: {name} grew by {grown} over {requests} requests"
        for name, value in self.none.items():
            assert after.none[name] == value, f"{who}: {name} grew by {after.none[name] - value}"


class Server:
    """A program in the foreground, alive inside the block. It ends when this program does."""

    def __init__(self, argv, port, **environment):
        self.argv, self.port, self.environment = argv, port, environment

    def __enter__(self):
        env = {"PATH": os.environ["PATH"], **self.environment}
        argv = ["setpriv", "--pdeathsig", "TERM", *self.argv]
        self.process = subprocess.Popen(argv, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        try:
            poll(self.answers, f"{self.argv[0]} answers")
        except BaseException:
            self.__exit__()
            raise
        return self

    def answers(self):
        assert self.process.poll() is None, f"{self.argv} ended"
        return ask(self.port, "/")[0] == 200

    def __exit__(self, *unused):
        self.process.terminate()
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def pids(self):
        return {"proxy": self.process.pid}

    def counters(self):
        return Counters({}, {})


class Peer(Server):
    """nginx that asks Valkey itself; on two ports, see nginx-lua.conf."""

    def __init__(self, argv, port, store):
        super().__init__(argv, port)
        self.store = store

    def pids(self):
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        assert len(children) == 1, f"nginx has {len(children)} workers"
        return {"proxy": int(children[0]), "store": self.store.pid}

    def counters(self):
        return Counters({"Valkey's EVALSHA calls": self.store.evalsha_calls()}, {})


class Door(NamedTuple):
    """A further port of a server."""

    server: Server
    port: int

    def pids(self):
        return self.server.pids()

    def counters(self):
        return self.server.counters()


class QuietEdge(Edge):
    """An edge whose lines nobody reads, so that reading them costs no CPU here; limits are counted in store, if any."""

    def __init__(self, policy, upstream_url, haproxy, store, more=None):
        settings = (more or {}) | {"EDGE_AGENTS": 1, "EDGE_WORKERS": 1, "EDGE_HAPROXY_THREADS": 1, "EDGE_HAPROXY": haproxy}
        if store is not None:
            settings |= {"VALKEY_URL": f"unix://{store.path}", "VALKEY_TIMEOUT": "200ms"}
        super().__init__(policy, upstream_url, settings)
        self.store = store

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
        pids = {"proxy": self.haproxy_pids()[1][0], "agent": self.agent_pids()[0], "launcher": self.process.pid}
        return pids if self.store is None else pids | {"store": self.store.pid}

    def counters(self):
        metrics = self.settled(ends=("records", "records_without_verdict", "records_lost"))
        each, none = {}, {}
        for (name, labels), value in metrics["edge_decisions_total"].samples.items():
            if dict(labels)["decision"] in ANSWERED:
                each[name] = each.get(name, 0) + value
            else:
                none[f"{name}{labels}"] = value
        for what in UNDECIDED:
            name = f"edge_ratelimit_{what}_total"
            none[name] = metrics[name].samples[(name, ())]
        if self.store is not None:
            assert "edge_valkey_calls_total" in metrics, "this agent counts no limits in Valkey"
            for (name, labels), value in metrics["edge_valkey_calls_total"].samples.items():
                (each if dict(labels)["outcome"] == "answered" else none)[f"{name}{labels}"] = value
            each["Valkey's EVALSHA calls"] = self.store.evalsha_calls()
        return Counters(each, none)


class Pair(QuietEdge):
    """With a second agent, which stands by; its CPU is not told."""

    def __init__(self, policy, upstream_url, haproxy, more=None):
        super().__init__(policy, upstream_url, haproxy, None, more)
        self.environment["EDGE_AGENTS"] = "2"

    def start(self, ready=True):
        super().start(ready)
        poll(lambda: len(self.agent_pids()) == 2, "both agents run")
        return self


class Unrecorded(Pair):
    """Without rings in HAProxy's configuration: nothing is counted that could be held against the requests."""

    RINGS = re.compile(r'    log "ring@records0".*?\n    \.endif\n', re.S)

    def __init__(self, policy, upstream_url, haproxy, folder):
        shutil.copytree(ROOT / "haproxy", folder)
        config = folder / "haproxy.cfg"
        text, n = self.RINGS.subn("", config.read_text())
        assert n == 1, "haproxy.cfg logs to its rings in one place"
        config.write_text(text)
        super().__init__(policy, upstream_url, haproxy, {"EDGE_HAPROXY_DIR": str(folder)})

    def counters(self):
        return Counters({}, {})


class Side:
    """One row's server and what was measured of it."""

    def __init__(self, row, server):
        self.row, self.server, self.pids = row, server, server.pids()
        self.url = f"http://127.0.0.1:{server.port}{REQUESTS[row.request].target}"
        self.headers = row.headers()
        self.rounds, self.turns_us = [], []


def ask(port, target, headers=HEADERS):
    """(status, body) of the benchmark's request."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", target, headers={"Host": HOST, **headers})
        response = connection.getresponse()
        return response.status, response.read().decode()
    finally:
        connection.close()


def is_counted(side):
    """Whether a request moves every counter that requests must move."""
    before = side.server.counters()
    ask(side.server.port, REQUESTS[side.row.request].target, side.headers)
    after = side.server.counters()
    return all(after.each[name] > value for name, value in before.each.items())


def filled(template, path, **values):
    text = (HERE / template).read_text()
    for name, value in values.items():
        text = text.replace(f"@{name}@", str(value))
    path.write_text(text)
    return ["nginx", "-c", str(path), "-e", str(path.with_suffix(".log"))]


class Stage:
    """Starts servers when a row first needs them; all end with the block. edge: the class of edges; proxy_under: what a plain
    HAProxy is run under."""

    def __init__(self, folder, edge=QuietEdge, proxy_under=()):
        self.folder, self.stack, self.servers = Path(folder), ExitStack(), {}
        self.edge, self.proxy_under = edge, proxy_under

    def __enter__(self):
        self.upstream = self.port()
        owner = {"USER": pwd.getpwuid(os.geteuid()).pw_name, "GROUP": grp.getgrgid(os.getegid()).gr_name}
        self.common = {"DIR": self.folder, "HERE": HERE, "BODY": BODY, "PROBE": PROBE, **owner}
        echo = "|".join(f"$http_{op['name'].lower().replace('-', '_')}" for op in OPERATIONS)
        argv = filled("nginx.conf", self.folder / "upstream.conf", PORT=self.upstream, ECHO=echo, **self.common)
        self.stack.enter_context(Server(argv, self.upstream))
        return self

    def __exit__(self, *unused):
        self.stack.close()

    def port(self):
        ports = Ports()
        self.stack.callback(ports.close)
        return ports.first

    def side(self, row):
        """The row's side, proved to answer as the row says."""
        check_rules(REQUESTS[row.request])
        key = (row.server, row.haproxy)
        if key not in self.servers:
            start = getattr(self, "start_" + row.server.replace("-", "_"))
            self.servers[key] = start(row.haproxy)
        side = Side(row, self.servers[key])
        assert ask(side.server.port, REQUESTS[row.request].target, side.headers) == (200, BODY), f"{row.id} does not pass the upstream's answer on"
        if row.needs_store:
            # An agent connects to it on its own; until then its rules' fail_mode decides.
            poll(lambda: is_counted(side), f"{row.id} counts in Valkey")
        if REQUESTS[row.request].header_rules and row.server == "realistic":
            want = "|".join(op["value"] for op in OPERATIONS)
            assert ask(side.server.port, PROBE) == (200, want), f"{row.id} does not apply the header operations"
        return side

    def store(self):
        if "store" not in self.servers:
            self.servers["store"] = self.stack.enter_context(Valkey(str(self.folder)))
        return self.servers["store"]

    def start_plain(self, version):
        port = self.port()
        environment = {"BENCH_DIR": str(self.folder), "BENCH_PORT": str(port), "BENCH_UPSTREAM_PORT": str(self.upstream)}
        argv = [*self.proxy_under, HAPROXIES[version], "-db", "-f", str(HERE / "plain.cfg")]
        return self.stack.enter_context(Server(argv, port, **environment))

    def start_peer(self, version):
        port, port_log = self.port(), self.port()
        values = {
            "PORT": port,
            "PORT_LOG": port_log,
            "UPSTREAM_PORT": self.upstream,
            "SOCKET": self.store().path,
            "SHA1": self.store().command("SCRIPT", "LOAD", SCRIPT.read_text()),
            "RULE": LIMIT["id"],
            "NUMBERS": f"{LIMIT['limit']}, {LIMIT['burst']}, {PERIODS_MS[LIMIT['period']]}",
        }
        argv = filled("nginx-lua.conf", self.folder / "peer.conf", **values, **self.common)
        peer = self.stack.enter_context(Peer(argv, port, self.store()))
        self.servers["peer", version], self.servers["peer-log", version] = peer, Door(peer, port_log)
        return peer

    def start_peer_log(self, version):
        self.start_peer(version)
        return self.servers["peer-log", version]

    def start_edge(self, version, policy, store=None, more=None):
        return self.stack.enter_context(self.edge(policy, f"http://127.0.0.1:{self.upstream}", HAPROXIES[version], store, more))

    def start_bare(self, version):
        return self.start_edge(version, POLICY | {"config_rules": [], "rate_limit_rules": [], "request_header_rules": []})

    def start_unruled(self, version):
        return self.start_edge(version, POLICY | {"request_header_rules": []})

    def start_page(self, version):
        more = {"global": POLICY["global"] | PAGE_GLOBAL, "config_rules": [*POLICY["config_rules"][:-1], PAGE_RULE]}
        return self.start_edge(version, POLICY | more)

    def start_realistic(self, version):
        return self.start_edge(version, POLICY)

    def start_recorded(self, version):
        return self.stack.enter_context(Pair(POLICY, f"http://127.0.0.1:{self.upstream}", HAPROXIES[version]))

    def start_unrecorded(self, version):
        folder = self.folder / f"unrecorded-{version}"
        return self.stack.enter_context(Unrecorded(POLICY, f"http://127.0.0.1:{self.upstream}", HAPROXIES[version], folder))

    def start_front(self, version):
        return self.start_edge(version, POLICY, more=FRONT_SETTINGS)

    def start_limit(self, version):
        return self.start_edge(version, POLICY | {"config_rules": [], "request_header_rules": []}, self.store())

    def start_realistic_limit(self, version):
        return self.start_edge(version, POLICY, self.store())


def check_rules(request):
    """That the realistic policy does with the request what its row promises."""
    asked = {"method": "GET", "host": HOST, "path": request.target, "ip": "127.0.0.1", "headers": HEADERS}
    argv, env = [BINARY, "simulate", str(HERE / "realistic.json")], {"CLIENT_IP_SOURCE": "remote_addr"}
    done = subprocess.run(argv, input=json.dumps(asked), capture_output=True, text=True, check=True, env=env)
    matched = json.loads(done.stdout)
    found = tuple(len(matched[phase]) for phase in ("config_rules", "rate_limit_rules", "request_header_rules"))
    assert matched["rejected"] is None and found == request[1:], f"{request.target} matches {found} rules, not {request[1:]}"
