"""The guard's caps: how many requests are under way at once, whatever the agent said last; the agent is told what to say."""

import threading

import h2.events
import pytest

from clients import Http1, Http2, fetch
from edge import poll
from haproxy_alone import HAProxy
from upstream import Holding, Upstream

AT_ONCE = 40
THREADS = 2
STREAM = [("Accept", "text/event-stream")]


class HoldingUpstream(Holding, Upstream):
    pass


@pytest.fixture
def holding():
    with HoldingUpstream() as u:
        yield u
        u.released.set()


def edge(upstream, **settings):
    return HAProxy({"EDGE_UPSTREAM_ADDR": f"127.0.0.1:{upstream.port}", "EDGE_THREADS": str(THREADS), **settings}, mock=True)


class Batch:
    """AT_ONCE requests at the same time; statuses as they come. Over HTTP/2 they share two connections."""

    def __init__(self, haproxy, protocol, target, headers=()):
        self.haproxy, self.target, self.headers, self.statuses = haproxy, target, list(headers), []
        calls = [self.one] * AT_ONCE if protocol == "h1" else [self.many] * 2
        self.threads = [threading.Thread(target=call, daemon=True) for call in calls]
        for thread in self.threads:
            thread.start()

    def one(self):
        self.statuses.append(fetch(self.haproxy, "GET", self.target, self.headers).status)

    def many(self):
        with Http2(self.haproxy.port) as c:
            open_streams = {c.send_request("GET", self.target, self.headers) for _ in range(AT_ONCE // 2)}
            while open_streams:
                for event in c.handle(c.sock.recv(65536)):
                    if isinstance(event, h2.events.ResponseReceived):
                        self.statuses.append(int(dict(event.headers)[":status"]))
                    elif isinstance(event, h2.events.StreamEnded):
                        open_streams.discard(event.stream_id)

    def refused_and_held(self, upstream):
        """(answered by now, at the upstream), once every request is one of them."""
        poll(lambda: len(self.statuses) + len(upstream.seen(self.target)) == AT_ONCE, "every request is refused or forwarded")
        return list(self.statuses), len(upstream.seen(self.target))

    def end(self, upstream):
        upstream.released.set()
        for thread in self.threads:
            thread.join(60)
        upstream.released.clear()
        return self.statuses


def check_cap(haproxy, upstream, protocol, target, cap, headers=()):
    """AT_ONCE requests at once: as many pass as the cap says, within the number of threads; the others are refused at once."""
    batch = Batch(haproxy, protocol, target, headers)
    refused, held = batch.refused_and_held(upstream)
    assert set(refused) == {503}
    assert abs(held - cap) <= THREADS, f"{held} passed a cap of {cap}"
    assert sorted(batch.end(upstream)) == [200] * held + [503] * (AT_ONCE - held)
    poll(lambda: fetch(haproxy, "GET", "/after", headers).status == 200, "there is room again")


@pytest.mark.parametrize("protocol", ["h1", "h2"])
def test_no_more_requests_pass_at_once_than_the_cap_says(holding, protocol):
    with edge(holding, EDGE_CAP_ORDINARY="5") as haproxy:
        check_cap(haproxy, holding, protocol, "/held/plain", 5)


@pytest.mark.parametrize("protocol", ["h1", "h2"])
def test_no_more_streams_pass_at_once_than_their_own_cap_says(holding, protocol):
    with edge(holding, EDGE_CAP_STREAMS="5") as haproxy:
        check_cap(haproxy, holding, protocol, "/held/stream", 5, STREAM)


@pytest.mark.parametrize("protocol", ["h1", "h2"])
def test_the_agent_raises_and_lowers_the_caps_while_requests_are_served(holding, protocol):
    with edge(holding, EDGE_CAP_ORDINARY="5", EDGE_CAP_STREAMS="5") as haproxy:
        for cap in (12, 3, 9):
            haproxy.agent.always = {"proc.cap_ord": cap, "proc.cap_str": cap + 4}
            assert fetch(haproxy, "GET", f"/tell/{cap}").status == 200
            check_cap(haproxy, holding, protocol, f"/held/plain/{cap}", cap)
            check_cap(haproxy, holding, protocol, f"/held/stream/{cap}", cap + 4, STREAM)


def with_body_to_come(haproxy, n):
    """n connections whose request lacks its body."""
    connections = [Http1(haproxy.port) for _ in range(n)]
    for i, c in enumerate(connections):
        c.send(f"POST /upload/{i} HTTP/1.1\r\nHost: edge.test\r\nContent-Length: 3\r\n\r\n".encode())
    poll(lambda: all(f"/upload/{i}" in haproxy.agent.asked for i in range(n)), "they have passed the guard")
    return connections


def test_requests_with_and_without_a_body_count_together_and_streams_apart(holding):
    with edge(holding, EDGE_CAP_ORDINARY="5", EDGE_CAP_STREAMS="1") as haproxy:
        uploads = with_body_to_come(haproxy, 5)
        assert fetch(haproxy, "GET", "/sixth").status == 503
        assert haproxy.line_of("/sixth")["edge.decision"] == "overloaded"
        assert fetch(haproxy, "GET", "/of-another-kind", STREAM).status == 200
        for c in uploads:
            c.send(b"abc")
            assert c.receive().status == 200
            c.close()
        poll(lambda: fetch(haproxy, "GET", "/again").status == 200, "there is room again")


def test_an_ordinary_request_passes_while_streams_are_at_their_cap(holding):
    with edge(holding, EDGE_CAP_ORDINARY="1", EDGE_CAP_STREAMS="1") as haproxy:
        thread = threading.Thread(target=fetch, args=(haproxy, "GET", "/held/stream", STREAM), daemon=True)
        thread.start()
        poll(lambda: holding.seen("/held/stream"), "the upstream has the stream")
        assert fetch(haproxy, "GET", "/second", STREAM).status == 503
        assert fetch(haproxy, "GET", "/ordinary").status == 200
        holding.released.set()
        thread.join(60)
