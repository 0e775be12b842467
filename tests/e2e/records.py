"""What became of access records: those with a line, and the numbers by which each agent accounts for all that HAProxy has written."""

from collections import Counter

from edge import poll


def agents(edge):
    return range(int(edge.environment["EDGE_AGENTS"]))


def paths(edge, marker):
    """How often each path that begins so has a line."""
    found = (line["json"] for line in list(edge.lines) if line["json"] and line["json"].get("msg") == "access")
    return Counter(path for path in (line.get("url.path", "") for line in found) if path.startswith(marker))


def wait_paths(edge, marker, n):
    poll(lambda: len(paths(edge, marker)) >= n, f"a line for each of {n} requests")


def account(edge, agent):
    """(requests that this agent counts, records that another one counts, records that never came to it). Together they are what HAProxy logged."""
    metrics = edge.metrics(agent)
    return sum(metrics["edge_responses_total"].samples.values()), *(
        int(metrics[name].samples[(name, ())]) for name in ("edge_records_other_total", "edge_records_lost_total")
    )


def wait_accounts(edge, n):
    """The accounts of all agents, once each accounts for n records."""
    poll(lambda: all(sum(account(edge, agent)) >= n for agent in agents(edge)), f"each agent accounts for {n} records")
    accounts = [account(edge, agent) for agent in agents(edge)]
    assert [sum(a) for a in accounts] == [n] * len(accounts), accounts
    return accounts


def wait_all_counted(edge, n):
    """Each of n requests is counted by one agent, and no record was lost."""
    accounts = wait_accounts(edge, n)
    assert (sum(a[0] for a in accounts), sum(a[2] for a in accounts)) == (n, 0), accounts
