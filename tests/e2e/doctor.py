"""Runs edge-spoa doctor against an edge of the tests."""

import json
import subprocess

from edge import BINARY


def doctor(edge, *args, **settings):
    """settings: changes to the environment of the edge; None unsets one."""
    environment = {name: value for name, value in (edge.environment | settings).items() if value is not None}
    return subprocess.run([BINARY, "doctor", *args], env=environment, capture_output=True, text=True, timeout=60)


def report(edge, **settings):
    """{name: check}, once the exit status, `ok` and the checks agree."""
    done = doctor(edge, "--json", **settings)
    assert done.stderr == ""
    said = json.loads(done.stdout)
    assert set(said) == {"ok", "checks"}
    assert said["ok"] == all(check["ok"] for check in said["checks"])
    assert done.returncode == (0 if said["ok"] else 1)
    return {check["name"]: check for check in said["checks"]}


def wrong(edge, **settings):
    """{name: text} of the checks that are not ok."""
    return {name: check["text"] for name, check in report(edge, **settings).items() if not check["ok"]}


def holds(text, *parts):
    for part in parts:
        assert part in text, text
