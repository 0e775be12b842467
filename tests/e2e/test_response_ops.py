"""The agent's operations on response headers, whoever made the response; the agent is told what to say."""

import pytest

from clients import fetch
from edge import Ports
from haproxy_alone import HAProxy
from mock_agent import FORWARD, additions, deletions
from upstream import Upstream, answer

PROTOCOLS = ["h1", "h2"]
OWN = {"cache-control": "no-store", "x-content-type-options": "nosniff"}
ADD = additions(("x-added", "one"), ("x-added", "two, three"), ("x-other", 'a "b" %[src] \\'))
ADDED = [("x-added", "one"), ("x-added", "two, three"), ("x-other", 'a "b" %[src] \\')]
OPERATIONS = {"txn.res_del": deletions("server", "x-secret"), "txn.res_add": ADD}
# Everything that the edge says about its own answers.
OVERRIDING = {
    "txn.res_del": deletions("cache-control", "x-content-type-options", "content-type", "retry-after"),
    "txn.res_add": additions(
        ("Cache-Control", "public"), ("X-Content-Type-Options", "none"), ("Content-Type", "image/png"), ("Retry-After", "99")
    ),
}
BROKEN = {
    "empty": b"",
    "cut in a length": b"\xf0",
    "cut in a name": b"\x20x-added",
    "not terminated": deletions("x-secret")[:-1],
}


class Talkative(Upstream):
    """An upstream whose answers carry headers that nobody outside should see."""

    def respond(self, sock, request):
        if request["target"].startswith("/talk"):
            sock.sendall(answer(200, b"{}", b"Server: s/1\r\nX-Secret: 1\r\nx-kept: k\r\nX-SECRET: 2\r\n"))
            return True
        return super().respond(sock, request)


@pytest.fixture(scope="module")
def talkative():
    with Talkative() as u:
        yield u


@pytest.fixture(scope="module")
def edge(talkative):
    with HAProxy({"EDGE_UPSTREAM_ADDR": f"127.0.0.1:{talkative.port}"}, mock=True) as h:
        yield h


def added(response):
    return [(n, v) for n, v in response.headers if n in ("x-added", "x-other")]


@pytest.mark.parametrize("accept", [[], [("Accept", "text/event-stream")]], ids=["plain", "stream"])
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_they_delete_and_add_on_the_upstreams_answer(edge, protocol, accept):
    edge.agent.answers["/talk"] = {**FORWARD, **OPERATIONS}
    response = fetch(edge, "GET", "/talk", accept, protocol=protocol)
    assert (response.status, response.body) == (200, b"{}")
    assert (response.all("server"), response.all("x-secret"), response.get("x-kept")) == ([], [], "k")
    assert added(response) == ADDED


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_without_operations_the_upstreams_headers_pass(edge, protocol):
    response = fetch(edge, "GET", "/talk/as-it-is", protocol=protocol)
    assert (response.get("server"), response.all("x-secret")) == ("s/1", ["1", "2"])


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_the_upstream_may_be_overruled_in_what_the_edge_says_about_its_own(edge, protocol):
    edge.agent.answers["/talk/cached"] = {**FORWARD, **OVERRIDING}
    response = fetch(edge, "GET", "/talk/cached", protocol=protocol)
    assert (response.get("cache-control"), response.get("content-type")) == ("public", "image/png")


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_they_add_to_the_agents_answer_but_never_override_the_edges_headers(edge, protocol):
    page = {"txn.status": 429, "txn.body": "slow", "txn.ctype": "text/html", "txn.retry_after": 7}
    edge.agent.answers["/answered"] = {**page, **OPERATIONS}
    edge.agent.answers["/answered/overriding"] = {**page, **OVERRIDING}
    assert added(fetch(edge, "GET", "/answered", protocol=protocol)) == ADDED
    response = fetch(edge, "GET", "/answered/overriding", protocol=protocol)
    assert (response.status, response.body) == (429, b"slow")
    assert (response.get("content-type"), response.get("retry-after")) == ("text/html", "7")
    assert {name: response.get(name) for name in OWN} == OWN


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_they_add_to_haproxys_502_but_never_override_the_edges_headers(edge, protocol):
    edge.agent.answers |= {"/garbage/a": {**FORWARD, **OPERATIONS}, "/garbage/b": {**FORWARD, **OVERRIDING}}
    response = fetch(edge, "GET", "/garbage/a", protocol=protocol)
    assert (response.status, added(response)) == (502, ADDED)
    response = fetch(edge, "GET", "/garbage/b", protocol=protocol)
    assert (response.status, response.get("content-type")) == (502, "text/plain; charset=utf-8")
    assert {name: response.get(name) for name in OWN} == OWN


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_they_add_to_the_502_of_an_unreachable_upstream(protocol):
    nobody = Ports()
    try:
        with HAProxy({"EDGE_UPSTREAM_ADDR": f"127.0.0.1:{nobody.first}"}, mock=True) as edge:
            edge.agent.answers["/down"] = {**FORWARD, **OPERATIONS}
            response = fetch(edge, "GET", "/down", protocol=protocol)
            assert (response.status, added(response)) == (502, ADDED)
            assert {name: response.get(name) for name in OWN} == OWN
    finally:
        nobody.close()


# Around the sizes at which a length takes one byte more, and bytes that a length could begin with.
VALUES = ["", "v" * 239, "v" * 240, "v" * 2287, "v" * 2288, "v" * 14000, "".join(map(chr, range(0xA0, 0x100))), "\U0001f600" * 30]


@pytest.mark.parametrize("which", ["req", "res"])
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_value_of_any_length_and_of_any_bytes_arrives_whole(edge, protocol, which):
    for i, value in enumerate(VALUES):
        target = f"/whole/{which}/{i}"
        operations = {f"txn.{which}_del": deletions("x-value", "n" * 240), f"txn.{which}_add": additions(("x-value", value), ("x-last", "l"))}
        edge.agent.answers[target] = {**FORWARD, **operations}
        response = fetch(edge, "GET", target, [("X-Value", "client")], protocol=protocol)
        headers = response.json()["headers"] if which == "req" else response.headers
        found = [v for n, v in headers if n == "x-value"]
        assert found == [value.encode().decode("latin-1")], i
        assert [v for n, v in headers if n == "x-last"] == ["l"]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_deleted_name_that_is_added_in_any_spelling_has_the_added_values_in_order(edge, protocol):
    add = additions(("X-Secret", "a"), ("x-other", "b"), ("x-secret", "c"))
    edge.agent.answers["/talk/spelled"] = {**FORWARD, "txn.res_del": deletions("x-SECRET", "server"), "txn.res_add": add}
    response = fetch(edge, "GET", "/talk/spelled", protocol=protocol)
    found = [(n.lower(), v) for n, v in response.headers if n.lower() in ("x-secret", "x-other", "server")]
    assert found == [("x-secret", "a"), ("x-other", "b"), ("x-secret", "c")]


def test_more_lists_than_are_remembered_are_still_told_apart(edge):
    for i in [*range(600), *range(0, 600, 50)]:
        edge.agent.answers["/talk/many"] = {
            **FORWARD,
            "txn.res_del": deletions("server") if i % 2 else deletions("x-kept"),
            "txn.res_add": additions(("x-added", str(i))),
        }
        response = fetch(edge, "GET", "/talk/many")
        assert (response.get("x-added"), response.get("server")) == (str(i), None if i % 2 else "s/1")


@pytest.mark.parametrize("which", ["res_del", "res_add"])
@pytest.mark.parametrize("how", BROKEN)
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_broken_list_lets_nothing_out_that_another_list_deletes(edge, protocol, how, which):
    target = f"/talk/broken/{which}/{how.replace(' ', '-')}"
    edge.agent.answers[target] = {**FORWARD, **OPERATIONS, f"txn.{which}": BROKEN[how]}
    response = fetch(edge, "GET", target, protocol=protocol)
    assert (response.status, response.body) == (500, b"The request could not be processed.\n")
    assert (response.all("server"), response.all("x-secret"), added(response)) == ([], [], [])
    assert {name: response.get(name) for name in OWN} == OWN


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_broken_list_withholds_the_agents_answer_as_well(edge, protocol):
    page = {"txn.status": 403, "txn.body": "no", "txn.ctype": "text/html", "txn.retry_after": 7}
    for target, broken in [("/answered/a", {"txn.res_del": b"\x09x"}), ("/answered/b", {"txn.req_del": b"\x09x"})]:
        edge.agent.answers[target] = {**page, **broken}
        response = fetch(edge, "GET", target, protocol=protocol)
        assert (response.status, response.get("content-type"), response.get("retry-after")) == (500, "text/plain; charset=utf-8", None)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_operations_of_a_verdict_that_broke_off_are_not_used(talkative, protocol):
    """Also guards that open mode forwards no identity which such a verdict has already named."""
    with HAProxy({"EDGE_UPSTREAM_ADDR": f"127.0.0.1:{talkative.port}", "EDGE_FAIL_OPEN": "1"}, mock=True) as edge:
        cut = {**FORWARD, **OPERATIONS, "txn.req_del": deletions("x-b"), "txn.uri": "/else"}
        cut |= {"txn.vary": "Origin", "txn.allow_origin": "*", "txn.allow_creds": "true", "txn.expose_headers": "x-secret"}
        cut["txn.req_add"] = additions(("x-a", "1"), ("x-edge-client-ip", "192.0.2.7"))
        edge.agent.answers |= {"/talk/cut": {**cut, "txn.ok": None}, "/cut-off": {**cut, "txn.ok": 2}}
        response = fetch(edge, "GET", "/talk/cut", protocol=protocol)
        assert (response.status, response.all("x-secret"), added(response)) == (200, ["1", "2"], [])
        assert [n for n, _ in response.headers if n == "vary" or n.startswith("access-control-")] == []
        received = fetch(edge, "GET", "/cut-off", [("X-B", "kept")], protocol=protocol).json()
        assert received["target"] == "/cut-off"
        names = [n for n, _ in received["headers"]]
        assert "x-b" in names and "x-a" not in names
        assert [n for n in names if n.startswith(("x-edge", "x-forwarded", "forwarded"))] == []
        assert edge.line_of("/cut-off")["edge.decision"] == "unavailable"


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_an_answer_of_a_verdict_that_broke_off_is_not_given(edge, talkative, protocol):
    target = f"/broke-off/{protocol}"
    edge.agent.answers[target] = {"txn.status": 403, "txn.body": "no", "txn.ctype": "text/html", "txn.retry_after": 9, "txn.ok": None}
    response = fetch(edge, "GET", target, protocol=protocol)
    assert (response.status, response.body, response.get("retry-after")) == (503, b"unavailable\n", "1")
    assert response.get("content-type") == "text/plain; charset=utf-8"
    assert talkative.seen(target) == []
