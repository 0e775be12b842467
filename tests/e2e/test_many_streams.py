"""The promise of `make soak-streams` in its short form: some hundred streams at once, every event and echo right, none lost, an end in
order."""

import signal

from edge import Edge, poll
from many_streams import Clients, Shape, Upstream, raise_fds
from policies import policy
from streams import at_once

SHAPE = Shape(events_h1=250, events_h2=250, websockets=50, period_s=0.5)
KINDS = ("events_h1", "events_h2", "websockets")


def test_hundreds_of_streams_are_held_at_once_and_end_in_order():
    raise_fds()
    settings = {"MAX_STREAMS": SHAPE.total, "SHUTDOWN_TIMEOUT": "1s"}
    with Upstream(SHAPE) as upstream:
        edge = Edge(policy(), upstream.url, settings=settings).start()
        try:
            with Clients(edge.port, SHAPE) as clients:
                for kind in KINDS:
                    clients.open(kind)
                assert (clients.tally.count["open"], at_once(edge)) == (SHAPE.total, SHAPE.total)
                poll(lambda: min(clients.tally.fewest()) >= 4, "four events or echoes have passed on each stream")
                assert clients.tally.wrong == []
                clients.tally.is_ending = True
                edge.signal(signal.SIGTERM)
                assert edge.wait_exit() == 0
                poll(lambda: clients.tally.count["open"] == 0, "every stream has ended")
        except BaseException:
            edge.stop(check=False)
            raise
        edge.stop()
