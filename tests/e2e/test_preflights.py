"""CORS preflights: the edge answers them where a policy applies, before anything that costs more."""

import pytest

from clients import client, fetch
from cross_origin import ALLOWED, EVIL, ORIGIN, OTHER, OWN, POLICY, PREFLIGHT, SITE, Opinionated, cors, is_answer, preflight, vary
from edge import Edge

PROTOCOLS = pytest.mark.parametrize("protocol", ["h1", "h2"])


@pytest.fixture(scope="module")
def upstream():
    with Opinionated() as u:
        yield u


@pytest.fixture(scope="module")
def edge(upstream):
    with Edge(POLICY, upstream.url, {"EDGE_HAPROXY_THREADS": "1"}) as e:
        yield e


@PROTOCOLS
@pytest.mark.parametrize("headers", [None, "", "content-type", "x-token,content-type", " X-Token , Content-Type "])
def test_a_preflight_is_answered_with_all_that_the_policy_allows(edge, upstream, protocol, headers):
    target = f"/asked/{protocol}"
    response = preflight(edge, target, protocol, headers=headers)
    assert is_answer(response)
    assert (cors(response), vary(response)) == (PREFLIGHT, ["origin"])
    assert {name: response.get(name) for name in OWN} == OWN
    assert upstream.seen(target) == []


@PROTOCOLS
@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "DELETE"])
def test_listed_methods_and_those_that_browsers_never_ask_about_are_allowed(edge, protocol, method):
    assert cors(preflight(edge, "/methods", protocol, method=method)) == PREFLIGHT


REFUSED = {
    "a foreign origin": {"origin": EVIL},
    "an origin that begins as a listed one": {"origin": SITE + ".evil.example"},
    "an origin in another case": {"origin": SITE.upper()},
    "no site's origin": {"origin": "null"},
    "two origins": {"extra": [("Origin", SITE)]},
    "two origins in one": {"origin": f"{SITE}, {OTHER}"},
    "a method that is not listed": {"method": "PATCH"},
    "a method in another case": {"method": "put"},
    "two methods": {"extra": [("Access-Control-Request-Method", "PUT")]},
    "a header that is not listed": {"headers": "content-type,x-other"},
    "a header that is not listed, on a line of its own": {"headers": "content-type", "extra": [("Access-Control-Request-Headers", "x-other")]},
    "a star, which stands for itself": {"headers": "*"},
}


@PROTOCOLS
@pytest.mark.parametrize("why", REFUSED)
def test_a_refused_preflight_says_nothing_but_that_it_depends_on_the_origin(edge, upstream, protocol, why):
    """Guards that a foreign page's preflight neither gets leave nor reaches the upstream."""
    target = f"/refused/{protocol}"
    response = preflight(edge, target, protocol, **REFUSED[why])
    assert is_answer(response)
    assert (cors(response), vary(response)) == ({}, ["origin"])
    assert upstream.seen(target) == []


@PROTOCOLS
def test_where_everything_is_allowed_the_answer_depends_on_nothing(edge, protocol):
    response = preflight(edge, "/any/x", protocol, origin=EVIL, method="PATCH", headers="authorization,x-whatever")
    assert is_answer(response)
    assert cors(response) == {
        "access-control-allow-origin": ["*"],
        "access-control-allow-methods": ["*"],
        "access-control-allow-headers": ["*, authorization"],
    }
    assert vary(response) == []


@PROTOCOLS
def test_a_single_origin_is_the_only_one_that_a_preflight_is_allowed(edge, protocol):
    allowed, refused = preflight(edge, "/single/x", protocol, method="GET"), preflight(edge, "/single/x", protocol, origin=OTHER, method="GET")
    assert cors(allowed) == {"access-control-allow-origin": [SITE], "access-control-allow-credentials": ["true"]}
    assert (cors(refused), vary(allowed), vary(refused)) == ({}, [], ["origin"])
    assert is_answer(allowed) and is_answer(refused)


@PROTOCOLS
def test_without_a_policy_a_preflight_is_the_upstreams_and_so_is_the_answer(edge, protocol):
    target = f"/none/own/{protocol}"
    response = preflight(edge, target, protocol, origin=EVIL, headers="x-any")
    assert (response.status, response.body) == (200, b"{}")
    assert cors(response)["access-control-allow-origin"] == ["*", "https://old.example"]
    assert (cors(response)["access-control-expose-headers"], vary(response)) == (["x-old"], ["accept-encoding"])
    received = dict(preflight(edge, f"/none/echo/{protocol}", protocol, origin=EVIL, headers="x-any").json()["headers"])
    names = ("origin", "access-control-request-method", "access-control-request-headers")
    assert [received[name] for name in names] == [EVIL, "PUT", "x-any"]


@PROTOCOLS
@pytest.mark.parametrize("headers", [[("Origin", SITE)], [("Access-Control-Request-Method", "PUT")]])
def test_options_that_is_no_preflight_goes_on(edge, upstream, protocol, headers):
    target = f"/options/{protocol}/{len(headers[0][0])}"
    response = fetch(edge, "OPTIONS", target, headers, protocol=protocol)
    assert (response.status, len(upstream.seen(target))) == (200, 1)
    assert "access-control-allow-methods" not in cors(response)


@PROTOCOLS
def test_the_block_setting_comes_before_a_preflight(edge, protocol):
    response = preflight(edge, "/block/x", protocol)
    assert (response.status, cors(response)) == (403, ALLOWED)


@PROTOCOLS
def test_a_preflight_is_one_line_even_where_a_rule_would_block(edge, protocol):
    target = f"/logged/{protocol}"
    assert is_answer(preflight(edge, target, protocol))
    line = edge.record_of(target)
    assert (line["edge.decision"], line["http.response.status_code"], line["edge.upstream_answered"]) == ("preflight", 204, False)


@PROTOCOLS
def test_the_request_that_was_asked_about_follows_on_the_same_connection(edge, protocol):
    """Guards that the answer ends no HTTP/1 connection: HAProxy would close one behind a 204 without Content-Length."""
    with client(edge, protocol) as c:
        assert is_answer(c.request("OPTIONS", "/kept", [*ORIGIN, ("Access-Control-Request-Method", "PUT")]))
        response = c.request("PUT", "/kept", ORIGIN, body=b"{}")
    assert (response.status, response.json()["body_len"], cors(response)) == (200, 2, ALLOWED)


@PROTOCOLS
def test_a_preflight_spends_no_limit(edge, protocol):
    """The limit is one request of each protocol."""
    target = f"/unspent/{protocol}"
    for _ in range(3):
        assert is_answer(preflight(edge, target, protocol))
    assert fetch(edge, "GET", target, ORIGIN, protocol=protocol).status == 200


@PROTOCOLS
def test_more_names_than_a_policy_could_list_are_refused(edge, protocol):
    """Guards against questions of 30 KB that are looked at name by name."""
    for target in ("/huge", "/any/huge"):
        response = preflight(edge, target, protocol, headers=",".join(["a"] * 15000))
        assert is_answer(response) and cors(response) == {}
