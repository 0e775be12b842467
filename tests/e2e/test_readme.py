"""The demo of README.md, run line by line against an edge of its own: what it promises is what happens."""

import json
import re
import subprocess

import pytest

from edge import ROOT, Edge, poll

README_ADDRESS = "127.0.0.1:8080"


def demo_lines():
    """[(command, expected output)] of the first code block below "## The demo"."""
    section = re.search(r"^## The demo\n(.*?)(?=^## |\Z)", (ROOT / "README.md").read_text(), re.M | re.S)[1]
    block = re.search(r"^```console\n(.*?)^```", section, re.M | re.S)[1]
    parts = re.split(r"^\$ (.*)\n", block, flags=re.M)
    assert parts[0] == ""
    return list(zip(parts[1::2], parts[2::2]))


def normalised(text):
    """Without what README.md says may differ: request ids, and how many seconds are left to wait."""
    text = re.sub(r"\b[0-9a-f]{32}\b", "<request id>", text)
    text = re.sub(r'(retry-after: |"retry_after":)\d\d\b', r"\1<seconds>", text)
    return text.replace("\r\n", "\n").strip()


@pytest.fixture(scope="module")
def edge():
    demo = subprocess.Popen(
        ["setpriv", "--pdeathsig", "TERM", ROOT / "compose/demo/upstream.py"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    try:
        policy = json.loads((ROOT / "compose/demo/policy.json").read_text())
        with Edge(policy, demo.stdout.readline().strip(), settings={"EDGE_AGENTS": None}) as e:
            yield e
    finally:
        demo.kill()
        demo.wait()


def test_the_demo_shows_every_kind_of_answer():
    outputs = "".join(expected for _, expected in demo_lines())
    for status in ("403 Forbidden", "400 Bad Request", "429 Too Many Requests"):
        assert f"HTTP/1.1 {status}" in outputs
    for shown in ("x-edge-client-ip", "application/json", "text/html", "retry-after"):
        assert shown in outputs


def test_every_line_of_the_demo_answers_what_the_readme_says(edge):
    ran = 0
    for command, expected in demo_lines():
        address = f"127.0.0.1:{edge.port}"
        assert command.startswith("curl ") and README_ADDRESS in command, command
        done = subprocess.run(["bash", "-c", command.replace(README_ADDRESS, address)], capture_output=True, text=True, timeout=30)
        assert done.returncode == 0, (command, done.stderr)
        assert normalised(done.stdout) == normalised(expected.replace(README_ADDRESS, address)), command
        ran += 1
    assert ran >= 5
    poll(lambda: len(edge.matching(msg="access")) == ran, "each line is one access record")
