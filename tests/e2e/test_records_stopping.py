"""A process of HAProxy that is stopping has no ring any more: what happened in it is written all the same, once."""

import signal
from collections import Counter

import pytest

from clients import client, render1
from edge import Edge, poll
from load import Load
from policies import policy
from streams import Events, PlayedUpstream

RELOADS = 3


@pytest.fixture(scope="module")
def edge(upstream):
    with Edge(policy(), upstream.url) as e:
        yield e


def reload(edge):
    """Until the new process runs; the old one ends with its last request."""
    before = set(edge.haproxy_pids()[1])
    edge.signal(signal.SIGUSR2)
    poll(lambda: set(edge.haproxy_pids()[1]) - before, "a new worker runs")


def paths(edge, marker):
    """How often each path has an access line."""
    with edge.changed:
        lines = [line["json"] for line in edge.lines if line["json"] and line["json"].get("msg") == "access"]
    return Counter(line["url.path"] for line in lines if line.get("url.path", "").startswith(marker + "/"))


def test_each_request_of_a_load_across_reloads_has_one_line_or_is_known_to_be_lost(edge):
    """What a ring had not passed on when its process was told to stop ends with that."""
    lost = edge.metric("edge_records_lost_total")
    with Load(edge, target="/across", per_second=400) as load:
        for _ in range(RELOADS):
            load.wait_more(150)
            reload(edge)
        load.wait_more(150)
    assert load.failures == []
    wanted = {f"/across/{n}" for n in range(load.tally.sent)}
    poll(lambda: len(wanted - set(paths(edge, "/across"))) == edge.metric("edge_records_lost_total") - lost, "what has no line is lost")
    assert set(paths(edge, "/across")) <= wanted and set(paths(edge, "/across").values()) == {1}


@pytest.mark.parametrize("protocol", ["h1", "h2"])
def test_a_request_that_is_answered_by_a_stopping_process_has_the_agent_s_line(edge, upstream, protocol):
    path = f"/delay/700/{protocol}"
    with client(edge, protocol) as c:
        if protocol == "h1":
            c.send(render1("GET", path))
        else:
            stream = c.send_request("GET", path)
        poll(lambda: upstream.seen(path), "it is under way")
        reload(edge)
        response = c.receive() if protocol == "h1" else c.receive(stream)
    assert response.status == 200
    line = edge.record_of(path)
    found = [line[name] for name in ("edge.decision", "http.response.status_code", "edge.upstream_answered", "edge.config_version")]
    assert found == ["allow", 200, True, 1]
    assert len(edge.matching(msg="access", url__path=path)) == 1


def test_a_stream_that_outlives_its_process_has_one_line_with_its_life():
    with PlayedUpstream() as played, Edge(policy(), played.url) as edge:
        streams = {}
        for protocol in ("h1", "h2"):
            target = f"/play/late/{protocol}"
            stream = Events(edge, protocol, target)
            upstream_end = played.play(target)
            upstream_end.begin_events()
            assert stream.open().status == 200
            streams[target] = stream, upstream_end
        reload(edge)
        reload(edge)
        for target, (stream, upstream_end) in streams.items():
            upstream_end.event("late")
            assert stream.event() == "late"
            upstream_end.end()
            line = edge.record_of(target)
            assert (line["edge.decision"], line["http.response.status_code"]) == ("allow", 200)
            assert len(edge.matching(msg="access", url__path=target)) == 1
            stream.close()


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_download_that_ends_in_a_stopping_process_has_one_line_and_is_counted(method):
    """A POST whose body comes behind its headers goes through another backend."""
    target = f"/play/download/{method}"
    with PlayedUpstream() as played, Edge(policy(), played.url) as edge, client(edge, "h1") as c, client(edge, "h1") as idle:
        assert idle.request("GET", "/before").status == 200
        if method == "GET":
            c.send(render1("GET", target))
        else:
            c.send(b"POST %s HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\n" % target.encode())
            c.send(b"body")
        upstream_end = played.play(target)
        half = b"x" * 150_000
        upstream_end.send(b"HTTP/1.1 200 OK\r\nContent-Length: 300000\r\n\r\n" + half)
        c.take_line()
        c.take_headers()
        assert c.take(len(half)) == half
        reload(edge)
        poll(lambda: idle.request("GET", "/after").get("connection") == "close", "the old process is stopping")
        upstream_end.send(half)
        assert c.take(len(half)) == half
        upstream_end.end()
        line = edge.record_of(target)
        assert (line["edge.decision"], line["http.response.status_code"]) == ("allow", 200)
        assert len(edge.matching(msg="access", url__path=target)) == 1
        poll(lambda: edge.metric("edge_decisions_total", decision="allow") == len(edge.matching(msg="access")), "it is counted")


def test_no_line_shows_the_record_that_came_with_it(edge):
    """The launcher cuts it off where no agent decided: here, a request that is none."""
    with client(edge, "h1") as c:
        c.send(b"NONSENSE\r\n\r\n")
        assert c.receive().status == 400
    line = edge.wait_lines(msg="access", edge__decision="bad_request")[-1]
    with edge.changed:
        texts = [found["text"] for found in edge.lines]
    assert line and not [text for text in texts if "edge.record" in text]
