"""A real browser for tests: Debian's Chromium without a window, which opens one page and is ended with all its processes."""

import os
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path

from certs import spki_hash
from edge import poll, session_processes

CHROMIUM = shutil.which("chromium")
MISSING = "there is no command `chromium`: apt-get install chromium"
# It talks to nobody but this machine, and asks nobody who that is.
QUIET = [
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-sync",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
    "--no-default-browser-check",
    "--no-first-run",
]


class Browser:
    """`with Browser(url):` runs while the page does what it does. cert: a certificate that is as good as any other; nothing that
    came with a faulty one would be cached."""

    def __init__(self, url, cert):
        self.url, self.trust = url, [f"--ignore-certificate-errors-spki-list={spki_hash(cert)}"]
        self.dir = tempfile.TemporaryDirectory(prefix="edge-browser-", ignore_cleanup_errors=True)

    def __enter__(self):
        command = [CHROMIUM, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", *self.trust, *QUIET]
        environment = {"PATH": os.environ["PATH"], "HOME": self.dir.name}
        with open(Path(self.dir.name) / "log", "wb") as log:
            self.process = subprocess.Popen(
                [*command, f"--user-data-dir={self.dir.name}/profile", self.url],
                env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip
        return self

    def alive(self):
        assert self.process.poll() is None, f"chromium ended: {self.log()}"
        return True

    def log(self):
        return (Path(self.dir.name) / "log").read_text(errors="replace")[-2000:]

    def __exit__(self, *unused):
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait(20)
        poll(lambda: not session_processes(self.process.pid), "every process of the browser has ended")
        self.dir.cleanup()
