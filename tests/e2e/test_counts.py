"""The counters add up: each request is counted once, by the agent that decided it, whatever happens to the agents and to HAProxy
meanwhile; and each agent knows by number what it should have got and did not."""

import pytest

from agent_faults import FAULTS, both_up, one_worker
from edge import Edge, poll
from load import Load
from policies import policy

MIX = ("h1", "h2", "tls-h1", "tls-h2")
# What HAProxy is just writing to an agent that ends, or the agent has not looked at when it is killed, never comes; what a ring of HAProxy had not passed on when its process was told to stop
# goes with that.
LOSES = {"sigterm", "kill", "reload"}


def total(families, name):
    """Over all series of a family."""
    return sum(families[name].samples.values())


class Sums:
    """What both agents say now."""

    def __init__(self, edge):
        pages = [edge.metrics(agent) for agent in (0, 1)]
        self.by_family = {name: sum(total(page, f"edge_{name}_total") for page in pages) for name in ("responses", "requests", "decisions")}
        self.by_family["latencies"] = sum(page["edge_request_duration_seconds"].samples["edge_request_duration_seconds_count", ()] for page in pages)
        self.lost = [total(page, "edge_records_lost_total") for page in pages]
        # Every agent gets every record: what it counts, what it leaves to another one, and what never came.
        self.numbered = [total(page, "edge_responses_total") + total(page, "edge_records_other_total") for page in pages]
        self.numbered = [came + lost for came, lost in zip(self.numbered, self.lost)]


@pytest.fixture(scope="module", params=["1", "2"], ids=["one active", "two active"])
def edge(request, upstream, cert):
    with Edge(policy(), upstream.url, settings={"EDGE_AGENTS": "2", "EDGE_AGENTS_ACTIVE": request.param}, cert=cert) as e:
        both_up(e)
        yield e


@pytest.mark.parametrize("fault", FAULTS)
def test_sums_of_counters_equal_the_requests_sent(edge, fault):
    before = Sums(edge)
    with Load(edge, target=f"/sums/{fault}", protocols=MIX) as load:
        load.wait_more(100)
        FAULTS[fault](edge)
        load.wait_more(100)
    sent = load.tally.sent
    one_worker(edge)

    def settled():
        return [now - then for now, then in zip(Sums(edge).numbered, before.numbered)] == [sent, sent]

    poll(settled, "both agents account for every request")
    after = Sums(edge)  # pages of one moment, now that nothing moves
    counted = {value - before.by_family[name] for name, value in after.by_family.items()}
    lost = [n - b for n, b in zip(after.lost, before.lost)]
    if fault in LOSES:
        assert len(counted) == 1 and sent - sum(lost) <= counted.pop() <= sent
    else:
        assert (counted, lost) == ({sent}, [0, 0])
