"""`make demo` as a person runs it: what it shows, and that it ends without leaving anything behind."""

import os
import re
import shutil
import signal
import socket
import subprocess
import threading

import pytest

from edge import BINARY, DEADLINE, HAPROXY, PASSED_ON, ROOT, poll, session_processes

VALKEY = os.environ.get("EDGE_VALKEY", str(ROOT / ".deps/valkey-8/valkey-server"))
OFFSETS = (0, 1, 2, 3, 1010, 1011)  # from DEMO_PORT, as demo.sh says
DEMO_DEADLINE = 60
BURST = 2  # of the rule two-logins


def free_base():
    """A DEMO_PORT whose ports are all free now."""
    while True:
        socks = []
        try:
            for offset in OFFSETS:
                sock = socket.socket()
                socks.append(sock)
                sock.bind(("127.0.0.1", offset and socks[0].getsockname()[1] + offset))
            if (base := socks[0].getsockname()[1]) < 64000:
                return base
        except OSError:
            pass
        finally:
            for sock in socks:
                sock.close()


class Demo:
    """demo.sh with a folder of its own; `with` waits until it serves."""

    def __init__(self, command, folder):
        self.argv = [ROOT / "compose/local/demo.sh", command]
        self.environment = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
        self.environment |= {"EDGE_SPOA_BIN": BINARY, "EDGE_HAPROXY": HAPROXY, "EDGE_VALKEY": VALKEY, "DEMO_DIR": str(folder)}
        self.text = ""

    def __enter__(self):
        # Another program may take one of the ports before the demo does: then it says so, and other ports are tried.
        while True:
            self.start(free_base())
            poll(lambda: "serving on" in self.text or self.process.poll() is not None, "the demo serves or ends", DEMO_DEADLINE)
            if self.process.poll() is None:
                return self
            self.reader.join(DEADLINE)
            assert "is in use" in self.text, self.text

    def start(self, port):
        self.text = ""
        self.environment["DEMO_PORT"] = str(port)
        # Tests that run in the background of a shell have inherited that Ctrl-C is ignored, which bash can't undo.
        self.process = subprocess.Popen(
            ["env", "--default-signal=INT", "setpriv", "--pdeathsig", "TERM", *self.argv],
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        for line in self.process.stdout:
            self.text += line

    def children(self):
        """What it started, each in a session of its own."""
        children = subprocess.run(["pgrep", "-P", str(self.process.pid)], capture_output=True, text=True).stdout.split()
        return [p for pid in children for p in session_processes(int(pid))]

    def stop(self, number):
        self.process.send_signal(number)
        status = self.process.wait(DEADLINE)
        self.reader.join(DEADLINE)
        return status

    def __exit__(self, *unused):
        if self.process.poll() is None:
            self.stop(signal.SIGTERM)


def tables(text):
    """[[(agent, status)]] of the tables of logins in what it printed."""
    found, table = [], None
    for line in text.splitlines():
        if re.match(r" +login +decided by", line):
            found.append(table := [])
        elif row := re.match(r" +\d+ +agent (\d) +(\d{3})$", line):
            table.append((int(row[1]), int(row[2])))
    return found


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["make demo-down", "Ctrl-C"])
def test_the_plain_demo_shows_the_readme_and_leaves_no_process_behind(number, tmp_path):
    with Demo("up", tmp_path / "demo") as demo:
        assert demo.text.count("\n$ curl ") >= 5 and "429 Too Many Requests" in demo.text
        started = demo.children()
        assert {"upstream.py", "edge-spoa"} <= {os.path.basename(word) for p in started for word in p.argv()}
        assert demo.stop(number) == 0, demo.text
    assert [p.pid for p in started if os.path.exists(f"/proc/{p.pid}")] == []


# In place of python3: the upstream begins a second after the edge is ready, which answers one port below it.
LATE_UPSTREAM = f"""#!/bin/bash
case $1 in *upstream.py)
    until curl -sf -o /dev/null "http://127.0.0.1:$(($2 - 1))/readyz"; do sleep 0.05; done
    sleep 1 ;;
esac
exec {shutil.which("python3")} "$@"
"""


def test_the_demo_asks_nothing_before_its_upstream_answers(tmp_path):
    late = tmp_path / "bin" / "python3"
    late.parent.mkdir()
    late.write_text(LATE_UPSTREAM)
    late.chmod(0o755)
    demo = Demo("up", tmp_path / "demo")
    demo.environment["PATH"] = f"{late.parent}:{os.environ['PATH']}"
    with demo:
        assert demo.text.count("x-edge-client-ip: ") == 2, demo.text


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    with Demo("shared", tmp_path_factory.mktemp("demo") / "demo") as demo:
        yield demo.text
        started = demo.children()
        assert "valkey-server" in {os.path.basename(p.argv()[0].split(" ")[0]) for p in started}
        assert demo.stop(signal.SIGTERM) == 0, demo.text
    assert [p.pid for p in started if os.path.exists(f"/proc/{p.pid}")] == []


def test_two_agents_that_share_a_valkey_let_the_burst_of_one_through(shared):
    logins = tables(shared)[0]
    assert {agent for agent, _ in logins} == {0, 1}, shared
    assert len(logins) > BURST + 1
    assert sorted(status for _, status in logins) == [200] * BURST + [429] * (len(logins) - BURST), shared


def test_while_valkey_is_frozen_requests_pass_by_fail_mode_open(shared):
    logins = tables(shared)[1]
    assert {agent for agent, _ in logins} == {0, 1}, shared
    assert {status for _, status in logins} == {200}, shared
    assert int(re.search(r"edge_ratelimit_failed_open_total went up by (\d+)", shared)[1]) == len(logins)


def test_when_valkey_runs_again_what_it_had_counted_still_holds(shared):
    assert "Valkey runs again" in shared
