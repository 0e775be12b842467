"""The time to the upstream's response headers, and what it does not bind: uploads, downloads, streams."""

import hashlib
import os
import signal
import subprocess

import pytest

from clients import client, fetch
from edge import Edge, poll
from policies import config_rule, policy, under
from uploads import BodyUpstream, trickle, upload

ALL = ["h1", "h2", "tls-h1", "tls-h2"]
BOTH = ["h1", "h2"]
EVENTS = [("Accept", "text/event-stream")]
SHORT_MS = 300
LARGE = 100 << 20


@pytest.fixture(scope="module")
def upstream():
    with BodyUpstream() as u:
        yield u


@pytest.fixture(scope="module")
def edge(upstream, cert):
    slow_page = {"status": 504, "content_type": "text/html", "body": "<p>too slow: {{request_id}}</p>"}
    document = policy(
        config=[
            config_rule("paged", under("/delay/5000/paged"), responses={"gateway_timeout": "slow"}),
            config_rule("patient", under("/delay/900"), upstream_timeout="20s"),
        ],
        responses={"slow": slow_page},
    )
    document["global"]["defaults"] |= {"upstream_timeout": f"{SHORT_MS}ms", "body_limit": 1 << 30}
    with Edge(document, upstream.url, {"EDGE_UPSTREAM_CONNECT_TIMEOUT": "200ms"}, cert=cert) as e:
        # Each answer of an agent brings one of the policy's pages along.
        poll(lambda: fetch(e, "GET", "/warm") and "json" in e.haproxy_command("get var proc.edge.ct_gateway_timeout"), "HAProxy knows the page")
        yield e


def memory_kb(edge):
    """What HAProxy's worker has in use."""
    _, workers = edge.haproxy_pids()
    return sum(int(line.split()[1]) for pid in workers for line in open(f"/proc/{pid}/status") if line.startswith("VmRSS"))


@pytest.mark.parametrize("headers", [[], EVENTS], ids=["ordinary", "stream"])
@pytest.mark.parametrize("protocol", ALL)
def test_an_upstream_that_answers_too_late_is_a_504_by_the_template(edge, upstream, protocol, headers):
    target = f"/delay/5000/{protocol}/{len(headers)}"
    response = fetch(edge, "GET", target, headers, protocol=protocol)
    assert response.status == 504
    assert response.json()["kind"] == "gateway_timeout" and response.get("cache-control") == "no-store"
    assert len(upstream.seen(target)) == 1
    assert edge.record_of(target)["edge.upstream_answered"] is False


@pytest.mark.parametrize("protocol", BOTH)
def test_the_504_is_the_requests_own_template(edge, protocol):
    response = fetch(edge, "GET", f"/delay/5000/paged/{protocol}", protocol=protocol)
    assert (response.status, response.get("content-type")) == (504, "text/html")
    assert response.body.startswith(b"<p>too slow: ") and b"{{" not in response.body


@pytest.mark.parametrize("protocol", BOTH)
def test_a_rule_gives_an_upstream_more_time(edge, protocol):
    assert fetch(edge, "GET", f"/delay/900/{protocol}", protocol=protocol).status == 200


@pytest.mark.parametrize("headers", [[], EVENTS], ids=["ordinary", "stream"])
@pytest.mark.parametrize("protocol", BOTH)
def test_a_response_that_has_begun_is_never_cut(edge, protocol, headers):
    response = fetch(edge, "GET", f"/pause/{4 * SHORT_MS}", headers, protocol=protocol)
    assert (response.status, response.body) == (200, b"begunended")


@pytest.mark.parametrize("length", [4 * 4, None], ids=["announced", "without-length"])
@pytest.mark.parametrize("protocol", BOTH)
def test_a_slow_upload_is_not_the_upstreams_time(edge, upstream, protocol, length):
    """Each pause is as long as the upstream may take; the answer's time begins when the body is whole."""
    target = f"/upload/{protocol}/{length}"
    with upload(edge, protocol, target, length=length) as request:
        end = trickle(request, SHORT_MS * 1.2 / 1000, end_after=4) if length is None else trickle_announced(request, length)
        try:
            assert request.outcome().status == 200
        finally:
            end()
    assert len(upstream.seen(target)) == 1


def trickle_announced(request, length):
    """Four pieces of a body whose length is known."""
    piece = b"x" * (length // 4)

    class Pieces:
        @staticmethod
        def send(_, end):
            return request.send(piece, end=end)

    return trickle(Pieces, SHORT_MS * 1.2 / 1000, end_after=4)


@pytest.mark.parametrize("protocol", BOTH)
def test_the_time_begins_when_the_body_is_whole(edge, upstream, protocol):
    target = f"/delay/5000/after/{protocol}"
    with upload(edge, protocol, target) as request:
        request.send(b"x")
        upstream.came(target, 1)
        request.send(b"y", end=True)
        response = request.outcome()
    assert (response.status, response.json()["kind"]) == (504, "gateway_timeout")
    assert len(upstream.seen(target)) == 1


@pytest.mark.parametrize("protocol", BOTH)
def test_a_connection_serves_on_after_a_504(edge, protocol):
    with client(edge, protocol) as c:
        assert c.request("GET", f"/delay/5000/first/{protocol}").status == 504
        assert c.request("GET", "/next").status == 200


def download(edge, protocol, size):
    """SHA-256 and length of a body as curl receives it."""
    base = f"https://127.0.0.1:{edge.tls_port}" if "tls" in protocol else f"http://127.0.0.1:{edge.port}"
    version = "--http1.1" if "h1" in protocol else "--http2" if "tls" in protocol else "--http2-prior-knowledge"
    digest, n = hashlib.sha256(), 0
    with subprocess.Popen(["curl", "-sk", version, f"{base}/large/{size}"], stdout=subprocess.PIPE) as curl:
        while data := curl.stdout.read(1 << 20):
            digest.update(data)
            n += len(data)
    assert curl.returncode == 0
    return digest.hexdigest(), n


@pytest.mark.parametrize("protocol", ALL)
def test_a_large_download_arrives_whole_and_takes_no_memory(edge, protocol):
    wanted, block, left = hashlib.sha256(), BodyUpstream.BLOCK, LARGE
    while left > 0:
        wanted.update(block[:left])
        left -= len(block)
    download(edge, protocol, 1 << 20)
    before = memory_kb(edge)
    assert download(edge, protocol, LARGE) == (wanted.hexdigest(), LARGE)
    assert memory_kb(edge) - before < 20 * 1024


@pytest.mark.parametrize("protocol", BOTH)
def test_a_request_whose_agent_dies_reaches_the_upstream_once(upstream, protocol):
    settings = {"EDGE_ON_AGENT_FAILURE": "open", "EDGE_BODY_LIMIT": "1000"}
    with Edge(policy(), upstream.url, settings) as e:
        assert fetch(e, "GET", "/warm").status == 200
        target = f"/dies/{protocol}"
        with upload(e, protocol, target) as request:
            request.send(b"x")
            upstream.came(target, 1)
            for pid in e.agent_pids().values():
                os.kill(pid, signal.SIGKILL)
            request.send(b"y", end=True)
            assert request.outcome().status == 200
        assert [r["body_len"] for r in upstream.seen(target)] == [2]
        poll(lambda: fetch(e, "POST", "/again", body=b"x").status == 200, "requests pass again")
