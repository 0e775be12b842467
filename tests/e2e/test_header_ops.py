"""What HAProxy makes of the lists that header rules come to: headers filtered, added, removed, copied and renamed."""

import pytest

from clients import fetch
from edge import Edge
from policies import policy, under


def rule(rule_id, *ops):
    return {"id": rule_id, "expression": under(f"/{rule_id}/"), "ops": list(ops)}


POLICY = policy(
    headers=[
        rule("add", {"op": "add", "name": "X-A", "value": "2"}),
        rule("remove", {"op": "remove", "name": "X-A"}),
        rule("copy", {"op": "copy", "from": "X-A", "to": "X-B"}),
        rule("rename", {"op": "rename", "from": "X-A", "to": "X-B"}),
        rule("filter", {"op": "forward", "mode": "allowlist", "names": ["X-B", "Authorization", "Cookie", "Content-Type"]}),
        rule("values", {"op": "set", "name": "X-A", "value": "{{method}} {{host}}{{path}} from {{client_ip}}"}),
    ],
    **{"global": policy()["global"] | {"request_headers": {"forward": {"mode": "denylist", "names": ["X-Debug"]}}}},
)


@pytest.fixture(scope="module")
def edge(upstream):
    with Edge(POLICY, upstream.url) as e:
        yield e


def received(edge, target, sent, protocol):
    response = fetch(edge, "GET", target, sent, protocol=protocol)
    assert response.status == 200
    return [(n, v) for n, v in response.json()["headers"] if n in ("x-a", "x-b", "x-c", "x-debug")]


PROTOCOLS = pytest.mark.parametrize("protocol", ["h1", "h2"])


@PROTOCOLS
def test_an_added_header_stands_behind_those_the_client_sent(edge, protocol):
    assert received(edge, "/add/1", [("X-A", "1")], protocol) == [("x-a", "1"), ("x-a", "2")]


@PROTOCOLS
def test_a_removed_header_is_gone_with_all_its_values(edge, protocol):
    assert received(edge, "/remove/1", [("x-a", "1"), ("x-c", "c"), ("X-A", "2")], protocol) == [("x-c", "c")]


@PROTOCOLS
def test_a_copy_has_all_values_and_none_that_the_client_sent_under_its_name(edge, protocol):
    sent = [("x-a", "1"), ("x-b", "evil"), ("x-a", "2")]
    assert received(edge, "/copy/1", sent, protocol) == [("x-a", "1"), ("x-a", "2"), ("x-b", "1"), ("x-b", "2")]


@PROTOCOLS
@pytest.mark.parametrize("op", ["copy", "rename"])
def test_without_its_source_a_copied_header_is_nothing_that_the_client_sent(edge, op, protocol):
    assert received(edge, f"/{op}/1", [("x-b", "evil"), ("X-B", "worse")], protocol) == []


@PROTOCOLS
def test_a_renamed_header_is_there_under_its_new_name_only(edge, protocol):
    assert received(edge, "/rename/1", [("x-a", "1"), ("x-a", "2")], protocol) == [("x-b", "1"), ("x-b", "2")]


@PROTOCOLS
def test_what_passes_has_passed_the_policys_filter_and_the_rules(edge, protocol):
    sent = [("x-a", "1"), ("x-b", "2"), ("x-debug", "3")]
    assert received(edge, "/none", sent, protocol) == [("x-a", "1"), ("x-b", "2")]
    assert received(edge, "/filter/1", sent, protocol) == [("x-b", "2")]


def test_a_filter_keeps_the_edges_headers(edge):
    response = fetch(edge, "GET", "/filter/2", [("x-a", "1")])
    names = {n for n, _ in response.json()["headers"]}
    assert {"host", "x-request-id", "x-forwarded-for", "x-edge-client-ip"} <= names and "x-a" not in names


@PROTOCOLS
def test_placeholders_are_what_the_edge_found(edge, protocol):
    assert received(edge, "/values/%0d%0aX-C:%201", [("x-a", "evil")], protocol) == [("x-a", "GET edge.test/values/X-C: 1 from 127.0.0.1")]
