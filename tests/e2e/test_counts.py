"""The counters add up: each request is counted once, by the agent that decided it, whatever happens to the agents and to HAProxy
meanwhile; what could not be counted is known by number."""

import pytest

from agent_faults import FAULTS, both_up
from edge import Edge, poll
from load import Load
from policies import policy

MIX = ("h1", "h2", "tls-h1", "tls-h2")
TIMES = 2
LOSES = {"kill"}  # what an agent had taken from its socket and not looked at dies with it


def sums(edge):
    """Over both agents: requests by each family that counts all of them, and the records that never came."""
    found = {"responses": 0, "classes": 0, "decisions": 0, "latencies": 0, "lost": 0}
    for agent in (0, 1):
        families = edge.metrics(agent)
        found["responses"] += sum(families["edge_responses_total"].samples.values())
        found["classes"] += sum(families["edge_requests_total"].samples.values())
        found["decisions"] += sum(families["edge_decisions_total"].samples.values())
        found["latencies"] += families["edge_request_duration_seconds"].samples["edge_request_duration_seconds_count", ()]
        found["lost"] += families["edge_records_lost_total"].samples["edge_records_lost_total", ()]
    return found


def grown(edge, before):
    return {name: value - before[name] for name, value in sums(edge).items()}


@pytest.fixture(scope="module", params=["one active", "two active"])
def edge(request, upstream, cert):
    settings = {"EDGE_AGENTS": "2", "EDGE_AGENTS_ACTIVE": "1" if request.param == "one active" else "2"}
    with Edge(policy(), upstream.url, settings=settings, cert=cert) as e:
        both_up(e)
        yield e


@pytest.mark.parametrize("fault", FAULTS)
def test_sums_of_counters_equal_the_requests_sent(edge, fault):
    before = sums(edge)
    with Load(edge, target=f"/sums/{fault}", protocols=MIX) as load:
        load.wait_more(100)
        for _ in range(TIMES):
            FAULTS[fault](edge)
            load.wait_more(100)
    assert load.failures == []
    sent = load.tally.sent
    poll(lambda: (now := grown(edge, before))["responses"] + now["lost"] == sent, "every request is counted, or known to be lost")
    now = grown(edge, before)
    if fault in LOSES:
        assert now["responses"] <= sent
    else:
        assert now == {"responses": sent, "classes": sent, "decisions": sent, "latencies": sent, "lost": 0}
