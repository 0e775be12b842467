"""More requests at once than an agent has connections: each is decided, and no agent is given up for it."""

import contextlib
import threading

import h2.events
import pytest

from clients import Http2
from edge import Edge
from policies import limit_rule, policy, under
from valkey import Valkey

CONNECTIONS, STREAMS = 20, 100  # more than what both agents would take if each question came on a connection of its own
POLICY = policy(limits=[limit_rule("one", under("/limited"), 1, "60s", 1)])


def answers(edge, path):
    """The statuses of as many requests as one client may have open, all sent before the first answer is read."""
    found = []
    with Http2(edge.port) as c:
        for i in range(STREAMS):
            fields = [(":method", "GET"), (":scheme", "http"), (":path", path), (":authority", "edge.test")]
            c.h2.send_headers(2 * i + 1, fields, end_stream=True)
        c.flush()
        n_ended = 0
        while n_ended < STREAMS:
            for event in c.handle(c.sock.recv(65536)):
                if isinstance(event, h2.events.ResponseReceived):
                    found.append(dict(event.headers)[":status"])
                n_ended += isinstance(event, (h2.events.StreamEnded, h2.events.StreamReset))
    return found


@pytest.mark.parametrize("failure", ["closed", "open"])
def test_a_burst_over_new_connections_is_decided_whole(upstream, failure):
    settings = {"VALKEY_TIMEOUT": "500ms", "EDGE_AGENTS": "2", "EDGE_WORKERS": "1", "EDGE_ON_AGENT_FAILURE": failure}
    with Valkey() as valkey, Edge(POLICY, upstream.url, {"VALKEY_URL": valkey.url(), **settings}) as edge:
        with contextlib.closing(valkey.client()) as c:
            c.execute_command("CLIENT", "PAUSE", "300", "ALL")
        found, threads = [], []
        for _ in range(CONNECTIONS):
            threads.append(threading.Thread(target=lambda: found.extend(answers(edge, "/limited/burst"))))
            threads[-1].start()
        for thread in threads:
            thread.join()
        assert sorted(found) == ["200"] + ["429"] * (CONNECTIONS * STREAMS - 1)
        assert edge.metric("edge_spop_refused_total") == 0
        assert edge.matching(msg="access", edge__decision="unavailable") == []
