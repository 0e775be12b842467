"""The upstream's name is resolved while the edge runs: it may come late, change its address and stop to resolve."""

import signal
import socket
import threading

import pytest

from clients import client, fetch
from edge import poll
from faulty_upstream import FaultyUpstream
from names import CAN_MOUNT, NO_SUCH_NAME, REFUSED, SERVER_FAILURE, EdgeAsking, Names
from policies import policy

NAME = "lb.test"
PROTOCOLS = pytest.mark.parametrize("protocol", ["h1", "h2"])
NOWHERE = {"no such name": NO_SUCH_NAME, "server failure": SERVER_FAILURE, "refused": REFUSED, "no address": [], "silence": None}
# HAProxy asks every second for both kinds of addresses; of a silent server it takes three times as long.
ASKED, DEADLINE = 5, 60

pytestmark = pytest.mark.skipif(not CAN_MOUNT, reason="an /etc/resolv.conf of its own needs root and a mount namespace")


class At(FaultyUpstream):
    """On an address, and on a port that another one may have on another address."""

    def __init__(self, host, port=None):
        self.host, self.wanted = host, port
        super().__init__()

    def listen(self):
        self.port = self.wanted or self.port
        self.listener = socket.create_server((self.host, self.port), backlog=256, reuse_port=True)
        threading.Thread(target=self.accept, daemon=True).start()


@pytest.fixture(scope="module")
def names():
    with Names() as n:
        yield n


@pytest.fixture(scope="module")
def first():
    with At("127.0.0.1") as u:
        yield u


@pytest.fixture(scope="module")
def second(first):
    with At("127.0.0.2", first.port) as u:
        yield u


@pytest.fixture(scope="module")
def edge(names, first):
    names.table[NAME] = [first.host]
    with EdgeAsking(names, policy(), f"http://{NAME}:{first.port}") as e:
        yield e


def goes_to(edge, upstream, path):
    """Waits until requests reach that upstream."""
    poll(lambda: fetch(edge, "GET", path).status == 200 and upstream.seen(path), f"requests reach {upstream.host}", DEADLINE)


@pytest.mark.parametrize("answer", ["no such name", "server failure", "silence"])
def test_an_edge_starts_before_its_upstreams_name_resolves_and_serves_once_it_does(names, first, answer):
    late = f"late-{answer.replace(' ', '-')}.test"
    names.table[late] = NOWHERE[answer]
    with EdgeAsking(names, policy(), f"http://{late}:{first.port}") as e:
        for protocol in ("h1", "h2"):
            response = fetch(e, "GET", f"/early/{late}", protocol=protocol)
            assert (response.status, response.get("cache-control"), response.get("x-content-type-options")) == (502, "no-store", "nosniff")
        assert first.seen(f"/early/{late}") == []
        names.table[late] = [first.host]
        goes_to(e, first, f"/late/{late}")
        assert fetch(e, "GET", f"/late/{late}", protocol="h2").status == 200


@PROTOCOLS
def test_a_name_that_changes_its_address_is_followed_and_no_connection_to_the_old_one_is_used_again(edge, names, first, second, protocol):
    names.table[NAME] = [first.host]
    goes_to(edge, first, f"/before/{protocol}")
    with client(edge, protocol) as c:
        for _ in range(3):
            assert c.request("GET", "/kept").status == 200
        names.table[NAME] = [second.host]
        poll(lambda: c.request("GET", f"/changed/{protocol}").status == 200 and second.seen(f"/changed/{protocol}"), "it is followed", DEADLINE)
        for _ in range(10):
            assert c.request("GET", f"/after/{protocol}").status == 200
            assert fetch(edge, "GET", f"/after/{protocol}", protocol=protocol).status == 200
    assert (len(first.seen(f"/after/{protocol}")), len(second.seen(f"/after/{protocol}"))) == (0, 20)


@pytest.mark.parametrize("answer", NOWHERE)
def test_a_name_that_no_longer_resolves_keeps_its_last_address(edge, names, first, answer):
    names.table[NAME] = [first.host]
    path = f"/last/{answer.replace(' ', '-')}"
    goes_to(edge, first, path)
    names.table[NAME], before = NOWHERE[answer], names.asked[NAME]
    try:
        poll(lambda: names.asked[NAME] >= before + ASKED, "it was asked for again and again", DEADLINE)
        for protocol in ("h1", "h2"):
            assert fetch(edge, "GET", path, protocol=protocol).status == 200
    finally:
        names.table[NAME] = [first.host]


@pytest.mark.parametrize("answer", ["no such name", "silence"])
def test_a_reload_while_the_name_does_not_resolve_keeps_its_last_address_and_then_follows(edge, names, first, second, answer):
    names.table[NAME] = [second.host]
    goes_to(edge, second, f"/reload/before/{answer.replace(' ', '-')}")
    old = edge.haproxy_pids()[1]
    names.table[NAME] = NOWHERE[answer]
    edge.signal(signal.SIGUSR2)
    poll(lambda: edge.haproxy_pids()[1] and not set(edge.haproxy_pids()[1]) & set(old), "a new process has taken over", DEADLINE)
    for protocol in ("h1", "h2"):
        assert fetch(edge, "GET", "/reload/after", protocol=protocol).status == 200
    names.table[NAME] = [first.host]
    goes_to(edge, first, f"/reload/later/{answer.replace(' ', '-')}")


def test_of_several_addresses_the_one_in_use_stays_while_it_is_among_them(edge, names, first, second):
    """Another would cost the connections that are kept."""
    names.table[NAME] = [second.host]
    goes_to(edge, second, "/one-of-two/alone")
    names.table[NAME], before = [first.host, second.host], names.asked[NAME]
    poll(lambda: names.asked[NAME] >= before + ASKED, "both were told", DEADLINE)
    for _ in range(5):
        assert fetch(edge, "GET", "/one-of-two/both").status == 200
    assert (len(first.seen("/one-of-two/both")), len(second.seen("/one-of-two/both"))) == (0, 5)
