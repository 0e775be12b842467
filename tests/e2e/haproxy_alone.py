"""HAProxy with haproxy/'s configuration and its environment set by hand, without a launcher and without edge-spoa."""

import json
import shutil
import socket
import subprocess
import tempfile
import threading
from pathlib import Path

from clients import Http1
from edge import HAPROXY, ROOT, Ports, poll
from mock_agent import MockAgent

FOLDER = ROOT / "haproxy"
REQUIRED = {
    "EDGE_HAPROXY_DIR": str(FOLDER),
    "EDGE_RUN_DIR": "/tmp",
    "EDGE_LISTEN": "127.0.0.1:8080,[::1]:8080",
    "EDGE_HEALTH_LISTEN": "127.0.0.1:8081",
    "EDGE_UPSTREAM_ADDR": "[::1]:8000",
    "EDGE_AGENT_0": "unix@/tmp/agent-0.sock",
    "EDGE_RECORDS_0": "unix@/tmp/records-0.sock",
    "EDGE_AGENT_TIMEOUT_MS": "1500",
    "EDGE_BODY_LIMIT": "1000",
    "EDGE_UPSTREAM_CONNECT_TIMEOUT_MS": "1000",
    "EDGE_UPSTREAM_IDLE_PLAIN": "60",
    "EDGE_UPSTREAM_IDLE_BODY": "20",
    "EDGE_UPSTREAM_IDLE_STREAM": "20",
    "EDGE_CAP_ORDINARY": "100",
    "EDGE_CAP_STREAMS": "100",
    "EDGE_MAXCONN": "300",
    "EDGE_STRIP": "^(x[^a-z0-9]edge[^a-z0-9].*|forwarded|x[^a-z0-9]forwarded[^a-z0-9].*|x[^a-z0-9]request[^a-z0-9]id|http2[^a-z0-9]settings|keep[^a-z0-9]alive|proxy[^a-z0-9]connection|content[^a-z0-9-]length|transfer[^a-z0-9-]encoding)$",
}


class HAProxy:
    """haproxy -W, records taken by this process, standard output in a file. The agent: none, or with `mock` one that is told what
    to say, as .agent."""

    def __init__(self, settings=None, cert=None, mock=False):
        self.dir = Path(tempfile.mkdtemp(prefix="edge-cfg-"))
        self.ports, self.tls_ports, self.health_ports = Ports(), Ports(), Ports()
        self.port, self.tls_port, self.health_port = self.ports.first, self.tls_ports.first, self.health_ports.first
        self.records_socket = socket.socket(socket.AF_UNIX)
        self.records_socket.bind(str(self.dir / "records.sock"))
        self.records_socket.listen()
        self.received = b""
        self.agent = MockAgent(self.dir / "agent.sock") if mock else None
        self.environment = {
            **REQUIRED,
            "EDGE_RUN_DIR": str(self.dir),
            "EDGE_LISTEN": f"127.0.0.1:{self.port}",
            "EDGE_HEALTH_LISTEN": f"127.0.0.1:{self.health_port}",
            "EDGE_AGENT_0": f"unix@{self.dir}/agent.sock",
            "EDGE_RECORDS_0": f"unix@{self.dir}/records.sock",
            **({"EDGE_TLS_LISTEN": f"127.0.0.1:{self.tls_port}", "EDGE_TLS_CERT": str(cert)} if cert else {}),
            **(settings or {}),
        }

    def __enter__(self):
        threading.Thread(target=self.take_records, daemon=True).start()
        with open(self.dir / "stdout", "wb") as out, open(self.dir / "stderr", "wb") as err:
            # The kernel ends it when this process dies in whatever way.
            argv = ["setpriv", "--pdeathsig", "TERM", HAPROXY, "-W", "-f", FOLDER / "haproxy.cfg"]
            self.process = subprocess.Popen(argv, env=self.environment, stdout=out, stderr=err)
        try:
            poll(lambda: self.health("/livez")[0] == 200, "HAProxy starts")
            poll(lambda: self.health("/readyz")[0] == (200 if self.agent else 503), "the agent's check is done")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *unused):
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise
        self.records_socket.close()
        if self.agent:
            self.agent.close()
        for ports in (self.ports, self.tls_ports, self.health_ports):
            ports.close()
        shutil.rmtree(self.dir)

    def take_records(self):
        while True:
            try:
                peer, _ = self.records_socket.accept()
            except OSError:
                return
            with peer:
                while data := peer.recv(65536):
                    self.received += data

    def records(self):
        found, rest = [], self.received
        while b" " in rest:
            size, _, rest = rest.partition(b" ")
            if len(rest) < int(size):
                break
            found.append(rest[: int(size)].decode().rstrip("\n").split("\t"))
            rest = rest[int(size) :]
        return found

    def lines(self):
        return [json.loads(line) for line in (self.dir / "stdout").read_text().splitlines()]

    def line_of(self, path):
        found = poll(lambda: [line for line in self.lines() if line.get("url.path") == path], f"a line for {path}")
        assert len(found) == 1
        return found[0]

    def late_record_of(self, path):
        """Fields of the record that a stopping process writes at the end of its line, for path as the agent wrote it."""

        def found():
            members = [line["edge.record"].partition(" ") for line in self.lines()]
            fields = [text.split("\t") for stopping, _, text in members if stopping == "1"]
            return [record for record in fields if record[1].split(" ")[-1] == path]

        (record,) = poll(found, f"a late record for {path}")
        return record

    def health(self, path):
        with Http1(self.health_port) as c:
            response = c.request("GET", path)
            return response.status, response.body.decode().strip()

    def command(self, text):
        with socket.socket(socket.AF_UNIX) as sock:
            sock.connect(str(self.dir / "haproxy.sock"))
            sock.sendall(text.encode() + b"\n")
            return b"".join(iter(lambda: sock.recv(65536), b"")).decode()

    def workers(self):
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        return {int(pid) for pid in children}
