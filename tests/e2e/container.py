"""The image of compose/edge.Dockerfile without an engine: what its lines say, and an edge that is started as they say."""

import json
import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

from edge import HAPROXY, ROOT, Edge

DOCKERFILE = ROOT / "compose/edge.Dockerfile"


class Image:
    """The last stage, and all lines as (instruction, argument)."""

    def __init__(self):
        text = re.sub(r"^#.*\n", "", DOCKERFILE.read_text(), flags=re.M).replace("\\\n", " ")
        self.lines = [tuple(line.strip().split(None, 1)) for line in text.splitlines() if line.strip()]
        stages = [i for i, (word, _) in enumerate(self.lines) if word == "FROM"]
        self.build, self.last = self.lines[stages[0] : stages[-1]], self.lines[stages[-1] :]
        self.env = {}
        for _, argument in (line for line in self.last if line[0] == "ENV"):
            self.env |= dict(word.split("=", 1) for word in shlex.split(argument))
        self.user = self.value("USER")
        self.entrypoint, self.cmd = json.loads(self.value("ENTRYPOINT")), json.loads(self.value("CMD"))
        self.stop_signal = self.value("STOPSIGNAL")
        self.health = json.loads(re.search(r"CMD (\[.*\])", self.value("HEALTHCHECK"))[1])

    def value(self, instruction):
        """The one that holds: the last."""
        return [argument for word, argument in self.last if word == instruction][-1]


def why_no_namespaces():
    """The reason why container.sh can't work here, "" when it can."""
    if os.geteuid() != 0:
        return "namespaces with mounts of their own need root"
    probe = "mount -t tmpfs tmpfs /run && mount -t proc proc /proc"
    done = subprocess.run(["unshare", "--mount", "--pid", "--fork", "sh", "-c", probe], capture_output=True, text=True)
    if done.returncode != 0:
        return f"namespaces are refused: {done.stderr.strip()}"
    user = Image().user.split(":")[0]
    done = subprocess.run(["setpriv", "--reuid", user, "--clear-groups", HAPROXY, "-v"], capture_output=True, text=True)
    return f"user {user} can't run {HAPROXY}" if done.returncode != 0 else ""


class ContainerEdge(Edge):
    """An edge started by ENTRYPOINT with ENV and settings. In namespaces where that is possible; else as a process of
    this user, with the image's files in a folder of the test."""

    def __init__(self, policy, upstream_url, settings=None):
        self.image, self.is_isolated = Image(), not why_no_namespaces()
        super().__init__(policy, upstream_url, {"EDGE_RUN_DIR": None, "EDGE_HAPROXY": None, **(settings or {})})
        # A platform mounts the policy so that the container's user can read it.
        self.dir.chmod(0o755)
        self.files = self.dir / "image"
        local = self.files / "usr/local"
        for folder in ("bin", "sbin", "share/edge-proxy"):
            (local / folder).mkdir(parents=True)
        shutil.copy(self.binary, local / "bin/edge-spoa")
        shutil.copy(HAPROXY, local / "sbin/haproxy")
        shutil.copy(ROOT / "compose/healthcheck.pl", local / "bin/edge-healthcheck")
        shutil.copytree(ROOT / "haproxy", local / "share/edge-proxy/haproxy")
        self.environment |= {name: self.placed(value) for name, value in self.image.env.items()}
        if not self.is_isolated:
            (self.files / "run/edge").mkdir(parents=True)
        self.run_dir = Path(self.environment["EDGE_RUN_DIR"])

    def placed(self, path):
        """Where a path of the image is for a process of the edge."""
        return path if self.is_isolated else f"{self.files}{path}"

    def user(self):
        return self.image.user.split(":")

    def argv(self):
        command = [self.placed(self.image.entrypoint[0]), *self.image.entrypoint[1:], *self.image.cmd]
        if not self.is_isolated:
            return ["setpriv", "--pdeathsig", "TERM", *command]
        # unshare hears no SIGTERM; with it dies the first process of the namespace, and with that all of it.
        namespaces = ["setpriv", "--pdeathsig", "KILL", "unshare", "--mount", "--pid", "--fork", "--kill-child"]
        return [*namespaces, ROOT / "tests/e2e/container.sh", self.dir, *self.user(), *command]

    def launcher(self):
        """The pid of `edge-spoa run`."""
        if not self.is_isolated:
            return self.process.pid
        return int(Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text())

    def signal(self, number):
        os.kill(self.launcher(), number)

    def inside(self, *command, user=True):
        """Runs a command beside the edge, as a platform does with HEALTHCHECK; user False: as root."""
        if self.is_isolated:
            enter = ["nsenter", "--target", str(self.launcher()), "--mount", "--pid", "--root", "--wd=/"]
            uid, gid = self.user()
            command = [*enter, *(["setpriv", "--reuid", uid, "--regid", gid, "--clear-groups"] if user else []), *command]
        return subprocess.run(command, env=self.environment, capture_output=True, text=True, timeout=20)

    def healthcheck(self):
        done = self.inside(self.placed(self.image.health[0]), *self.image.health[1:])
        return done.returncode, done.stdout
