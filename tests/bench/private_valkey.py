"""A Valkey of the benchmark's own: a UNIX socket, nothing written to disk."""

import socket
import subprocess
from pathlib import Path

from edge import ROOT, poll

BINARY = ROOT / ".deps/valkey-8/valkey-server"


class Valkey:
    """Alive inside the block."""

    def __init__(self, folder):
        self.folder, self.path = folder, str(Path(folder) / "valkey.sock")

    def __enter__(self):
        options = {"port": "0", "unixsocket": self.path, "dir": self.folder, "save": "", "appendonly": "no", "logfile": "valkey.log"}
        argv = ["setpriv", "--pdeathsig", "KILL", str(BINARY), *(word for name, value in options.items() for word in (f"--{name}", value))]
        self.process = subprocess.Popen(argv, stdin=subprocess.DEVNULL)
        try:
            poll(lambda: self.command("PING") == "PONG", "Valkey answers")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *unused):
        self.process.terminate()
        self.process.wait(10)

    @property
    def pid(self):
        return self.process.pid

    def command(self, *words):
        """The reply of a command that answers with one string."""
        request = b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(w), w) for w in (word.encode() for word in words))
        with socket.socket(socket.AF_UNIX) as sock:
            sock.settimeout(5)
            sock.connect(self.path)
            sock.sendall(request)
            with sock.makefile("rb") as replies:
                kind, rest = (line := replies.readline().decode().rstrip())[:1], line[1:]
                assert kind in "+$", f"Valkey: {words[0]}: {line}"
                return rest if kind == "+" else replies.read(int(rest)).decode()

    def evalsha_calls(self):
        for line in self.command("INFO", "commandstats").splitlines():
            if line.startswith("cmdstat_evalsha:calls="):
                return int(line.partition("=")[2].partition(",")[0])
        return 0
