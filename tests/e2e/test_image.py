"""The image: compose/edge.Dockerfile says what a container platform needs, and an edge started by its lines runs so."""

import re
import signal
from pathlib import Path

import pytest

from clients import fetch
from container import ContainerEdge, Image, why_no_namespaces
from edge import ROOT, poll
from policies import config_rule, policy, under

POLICY = policy(config=[config_rule("shut", under("/shut"), block="block")])


@pytest.fixture(scope="module")
def edge(upstream):
    with ContainerEdge(POLICY, upstream.url, settings={"EDGE_AGENTS": None}) as e:
        yield e


@pytest.fixture
def isolated(edge):
    if not edge.is_isolated:
        pytest.skip(why_no_namespaces())
    return edge


def test_the_edge_is_the_container_s_first_process_and_takes_no_shell(edge):
    image = Image()
    assert image.entrypoint == ["/usr/local/bin/edge-spoa", "run"]
    assert image.cmd == []
    assert image.stop_signal == "SIGTERM"


def test_the_user_is_a_number_and_not_root():
    assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", Image().user)


def test_no_build_tool_reaches_the_runtime_stage():
    image = Image()
    copies = [argument for word, argument in image.last if word in ("COPY", "ADD")]
    assert copies == ["--from=build /out/ /"]
    installs = [part for word, argument in image.last if word == "RUN" for part in argument.split(";") if "install -y" in part]
    assert [part.split("--no-install-recommends")[1].split() for part in installs] == [
        ["ca-certificates", "</usr/local/share/edge-proxy/debian-packages"]
    ]


def test_both_stages_are_of_one_release():
    image = Image()
    assert [lines[0][1].split()[0] for lines in (image.build, image.last)] == ["debian:${DEBIAN}-slim", "haproxy:${HAPROXY}-${DEBIAN}"]


def test_what_the_build_copies_is_in_its_context_and_nothing_else_is():
    copied = {word for kind, argument in Image().build if kind == "COPY" for word in argument.split()[:-1]}
    lines = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if line and not line.startswith("#")]
    assert lines[0] == "*"
    assert {line.removeprefix("!") for line in lines[1:]} == copied
    assert all(line.startswith("!") for line in lines[1:])
    assert [path for path in copied if not (ROOT / path).exists()] == []


def test_a_container_s_edge_decides_and_forwards(edge):
    assert fetch(edge, "GET", "/open").status == 200
    assert fetch(edge, "GET", "/shut/this").status == 403


def test_every_process_runs_as_the_image_s_user_without_capabilities(isolated):
    wanted = isolated.user()[0]
    pids = [isolated.launcher(), *isolated.agent_pids().values(), *isolated.haproxy_pids()[1]]
    assert len(pids) >= 4
    for pid in pids:
        status = dict(line.split(":\t", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines() if ":\t" in line)
        assert set(status["Uid"].split()) == {wanted}
        assert {status[name] for name in ("CapPrm", "CapEff", "CapBnd", "CapAmb")} == {"0" * 16}
    status = Path(f"/proc/{isolated.launcher()}/status").read_text()
    assert re.search(r"^NSpid:.*\t1$", status, re.M), "the launcher is PID 1 of its namespace"


def test_nothing_is_writable_but_the_folder_of_the_sockets(isolated):
    for folder in ("/", "/tmp", "/var/tmp", "/usr/local/share/edge-proxy", "/run", "/dev/shm"):
        done = isolated.inside("touch", f"{folder}/x", user=False)
        assert "Read-only file system" in done.stderr, folder
    files = isolated.inside("find", "/run/edge", "-type", "f").stdout.split()
    names = {re.sub(r"^counts-\d\..*", "counts", file.removeprefix("/run/edge/sockets/")) for file in files}
    assert names == {"servers.state", "counts"}, "beside sockets there is what HAProxy knew of its server, and what the agents have counted"


def test_a_reload_of_haproxy_and_an_exchange_of_agents_work_on_a_read_only_root(edge):
    agents, (_, workers) = edge.agent_pids(), edge.haproxy_pids()
    edge.signal(signal.SIGUSR2)
    poll(lambda: set(edge.haproxy_pids()[1]).isdisjoint(workers), "another worker runs alone")
    edge.signal(signal.SIGUSR1)
    edge.wait_lines(event="exchange_done")
    assert set(edge.agent_pids().values()).isdisjoint(agents.values())
    assert fetch(edge, "GET", "/shut/again").status == 403


def test_the_health_check_passes_while_the_edge_is_ready(edge):
    assert edge.healthcheck() == (0, "ready\n")


def test_the_health_check_fails_with_the_reason_while_there_is_no_policy(upstream):
    edge = ContainerEdge(None, upstream.url)
    try:
        edge.start(ready=False)
        poll(lambda: "no agent" in edge.health("/readyz")[1], "HAProxy has noticed")
        status, said = edge.healthcheck()
        assert status == 1 and said.startswith("not ready: status 503, no agent has passed its check")
    finally:
        edge.stop()


def test_the_stop_signal_drains_and_the_container_ends_with_0(upstream):
    with ContainerEdge(POLICY, upstream.url, settings={"DRAIN_DELAY": "60s"}) as edge:
        stop = signal.Signals[edge.image.stop_signal]
        edge.signal(stop)
        poll(lambda: "status 503, draining" in edge.healthcheck()[1], "it drains")
        edge.signal(stop)  # once more: without the rest of the delay; that it ends with 0 is checked on the way out
