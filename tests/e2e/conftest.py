"""Fixtures of the end-to-end tests, and the edges' lines of a test that failed: kept in build/e2e-logs/, their end shown."""

import re

import pytest

import edge as edges
from authority import Authority
from certs import make_cert
from policies import policy
from upstream import Upstream

LOGS = edges.ROOT / "build/e2e-logs"
NAME_MAX = 200  # bytes; file systems take 255


@pytest.fixture(scope="session")
def cert(tmp_path_factory):
    """A PEM file with a self-signed certificate for edge.test and its key."""
    return make_cert(tmp_path_factory.mktemp("cert"))


@pytest.fixture(scope="module")
def upstream():
    with Upstream() as u:
        yield u


@pytest.fixture(scope="module")
def edge(upstream, cert):
    """With a policy that has no rules; most files have one of their own."""
    with edges.Edge(policy(), upstream.url, cert=cert) as e:
        yield e


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item):
    outcome = yield
    report = outcome.get_result()
    if report.failed:
        folder = LOGS / re.sub(r"[^A-Za-z0-9._-]+", "_", item.nodeid)[:NAME_MAX]
        folder.mkdir(parents=True, exist_ok=True)
        for i, edge in enumerate(edges.seen):
            path = folder / f"{report.when}-edge-{i}.log"
            with edge.changed:
                path.write_text("".join(f"{line['stream']}: {line['text']}\n" for line in edge.lines))
            report.sections.append((f"edge {i}, end of {path}", edge.tail()))
    if report.when == "teardown":
        edges.seen[:] = [edge for edge in edges.seen if edge.process is not None]
