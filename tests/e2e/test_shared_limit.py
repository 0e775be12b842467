"""One limit over several edges and agents is exact: what passes is what one token bucket lets pass."""

from shared_limit import prove

PATIENT = {"VALKEY_TIMEOUT": "500ms"}  # a test machine may be busy, and one call that comes too late spoils the proof


def test_three_edges_share_one_token_bucket_exactly(upstream):
    seen = prove(upstream.url, n_edges=3, n_requests=3000, limit=200, period_ms=1000, burst=300, settings=PATIENT)
    assert seen["passed"] < seen["requests"]  # the limit was reached: otherwise nothing was proven


def test_two_active_agents_of_one_edge_share_it_too(upstream):
    seen = prove(upstream.url, 1, 2000, limit=200, period_ms=1000, burst=100, settings={"EDGE_AGENTS": 2, "EDGE_AGENTS_ACTIVE": 2, **PATIENT})
    assert seen["passed"] < seen["requests"]
