"""UPSTREAM_MAX_IDLE bounds what is kept open to the upstream between requests, whatever they are, for whatever hosts, from however many
clients."""

import threading

import pytest

from clients import client
from edge import DEADLINE, Edge, poll
from faulty_upstream import FaultyUpstream
from h2_upstream import H2NamedUpstream
from policies import policy
from test_upstream_faults import kept
from tls_upstream import NamedUpstream
from upstream import Holding

AT_ONCE = 24  # requests of each kind
KINDS = {"plain": ("GET", [], None), "body": ("POST", [], b"x" * 70000), "stream": ("GET", [("Accept", "text/event-stream")], None)}


class Clear(Holding, FaultyUpstream):
    pass


class Secure(Holding, NamedUpstream):
    pass


def upstreams(authority):
    """Kinds of upstreams with what the edge must be told."""
    return {
        "http": lambda: (Clear(), {}),
        "https": lambda: (Secure({None: authority.issue("*.many.test")}), {"SSL_CERT_FILE": authority.pem}),
    }


def ask_at_once(edge, upstream, protocol):
    """AT_ONCE requests of each kind, each from a client of its own and for a host of its own; all are open before the first is answered."""
    statuses = []

    def ask(i, kind):
        method, headers, body = KINDS[kind]
        with client(edge, protocol) as c:
            statuses.append(c.request(method, f"/held/{kind}/{i}", headers, body, host=f"h{i}.many.test").status)

    threads = [threading.Thread(target=ask, args=(i, kind)) for i in range(AT_ONCE) for kind in KINDS]
    for thread in threads:
        thread.start()
    poll(lambda: len(upstream.seen("/held")) == len(threads), "all are at the upstream")
    upstream.released.set()
    for thread in threads:
        thread.join(DEADLINE)
    assert statuses == [200] * len(threads)


@pytest.mark.parametrize("protocol", ["h1", "h2"])
@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize("most", [0, 1, 8, 41])
def test_no_more_connections_are_kept_than_the_setting_says(authority, most, scheme, protocol):
    upstream, settings = upstreams(authority)[scheme]()
    with upstream, Edge(policy(), upstream.url, settings={"UPSTREAM_MAX_IDLE": most, **settings}) as edge:
        ask_at_once(edge, upstream, protocol)
        poll(lambda: len(upstream.socks) <= most, "the rest is closed")
        assert kept(edge) <= most
        assert most == 0 or 0 < len(upstream.socks), "some are kept"


@pytest.mark.parametrize("protocol", ["h1", "h2"])
def test_with_a_maximum_of_0_each_request_has_a_connection_of_its_own_that_closes_behind_it(protocol):
    with Clear() as upstream, Edge(policy(), upstream.url, settings={"UPSTREAM_MAX_IDLE": "0"}) as edge:
        for i in range(5):
            with client(edge, protocol) as c:
                assert c.request("GET", f"/alone/{i}").status == 200
            poll(lambda: not upstream.socks, "it is closed")


@pytest.mark.parametrize("protocol", ["h1", "h2"])
def test_the_maximum_holds_for_http2_towards_the_upstream_too(authority, protocol):
    """Whose connections carry one request at a time."""
    with H2NamedUpstream({None: authority.issue("*.many.test")}) as upstream:
        with Edge(policy(), upstream.url, settings={"UPSTREAM_MAX_IDLE": "4", "SSL_CERT_FILE": authority.pem}) as edge:
            clients = [client(edge, protocol) for _ in range(AT_ONCE)]
            for i, c in enumerate(clients * 2):
                assert c.request("GET", "/h2", host=f"h{i % AT_ONCE}.many.test").json()["version"] == "HTTP/2.0"
            poll(lambda: len(upstream.socks) <= 4, "the rest is closed")
            for c in clients:
                c.close()
