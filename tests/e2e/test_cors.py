"""CORS on responses: whoever made one, a browser is told who may read it."""

import pytest

from clients import client, fetch
from cross_origin import ALLOWED, EVIL, LISTED, ORIGIN, POLICY, SITE, Opinionated, cors, is_answer, preflight, vary
from edge import Edge, Ports, poll
from faults import NoAgent
from policies import config_rule, limit_rule, policy
from uploads import RESET, upload
from websocket import accept_of, new_key, request_headers

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
@pytest.mark.parametrize("method", ["GET", "HEAD", "POST"])
def test_the_upstreams_response_has_the_policys_headers_and_none_of_its_own(edge, protocol, method):
    response = fetch(edge, method, "/own/x", ORIGIN, protocol=protocol)
    assert (response.status, cors(response)) == (200, ALLOWED)
    assert sorted(vary(response)) == ["accept-encoding", "origin"]


@PROTOCOLS
@pytest.mark.parametrize("origin", [[], [("Origin", EVIL)], [("Origin", SITE), ("Origin", SITE)], [("Origin", "null")]])
def test_who_is_not_listed_is_told_nothing_but_the_upstream_answers(edge, protocol, origin):
    response = fetch(edge, "GET", "/own/x", origin, protocol=protocol)
    assert (response.status, response.body, cors(response)) == (200, b"{}", {})
    assert sorted(vary(response)) == ["accept-encoding", "origin"]


@PROTOCOLS
@pytest.mark.parametrize("origin", [[], ORIGIN, [("Origin", EVIL)]])
def test_what_does_not_depend_on_the_origin_is_the_same_for_all(edge, protocol, origin):
    single, any_site = fetch(edge, "GET", "/single/own/x", origin, protocol=protocol), fetch(edge, "GET", "/any/own/x", origin, protocol=protocol)
    assert cors(single) == {"access-control-allow-origin": [SITE], "access-control-allow-credentials": ["true"]}
    assert cors(any_site) == {"access-control-allow-origin": ["*"], "access-control-expose-headers": ["*"]}
    assert (vary(single), vary(any_site)) == (["accept-encoding"], ["accept-encoding"])


@PROTOCOLS
def test_a_later_rule_takes_the_policy_away(edge, protocol):
    response = fetch(edge, "GET", "/none/own/x", ORIGIN, protocol=protocol)
    assert cors(response)["access-control-allow-origin"] == ["*", "https://old.example"]
    assert vary(response) == ["accept-encoding"]


@PROTOCOLS
def test_a_response_that_fills_the_buffer_has_room_for_them(edge, protocol):
    response = fetch(edge, "GET", "/full/x", ORIGIN, protocol=protocol)
    assert (response.status, len(response.body), cors(response)) == (200, 300000, ALLOWED)


LONG = "https://" + "a" * 60 + "." + "b" * 60 + "." + "c" * 60 + "." + "d" * 56 + ".example"
EXPOSED = [f"X-{'e' * 92}-{i:03}" for i in range(10)] + ["X-" + "e" * 22]
# Two for the whole site and five others are the most that a request is charged; ids have at most 64 characters.
RULES = [limit_rule(f"{i}-{'r' * 62}", "true" if i < 2 else 'http.host eq "edge.test"', 10**9, "24h", 10**7) for i in range(7)]


@PROTOCOLS
def test_the_most_that_a_policy_can_add_has_room_on_a_response_that_fills_the_buffer(upstream, protocol):
    """HAProxy 3.4 would withhold the response, 3.2 do so or leave headers out."""
    assert (len(LONG), len(", ".join(EXPOSED))) == (255, 1024)
    full = policy(config=[config_rule("web", "true", cors_policy="long", ratelimit_headers=True)], limits=RULES)
    full["global"]["cors_policies"] = {"long": {"origins": [LONG, SITE], "exposed_headers": EXPOSED, "credentials": True}}
    with Edge(full, upstream.url) as e:
        response = fetch(e, "GET", "/full/x", [("Origin", LONG)], protocol=protocol)
    assert (response.status, len(response.body), vary(response)) == (200, 300000, ["origin"])
    assert cors(response)["access-control-expose-headers"] == [", ".join(EXPOSED).lower()]
    assert cors(response)["access-control-allow-origin"] == [LONG]
    assert (response.get("ratelimit").count(";r="), response.get("ratelimit-policy").count(";q=")) == (7, 7)


@PROTOCOLS
def test_a_page_can_read_why_the_edge_refused(edge, protocol):
    response = fetch(edge, "GET", "/block/x", ORIGIN, protocol=protocol)
    assert (response.status, response.json()["kind"], cors(response), vary(response)) == (403, "forbidden", ALLOWED, ["origin"])


def test_a_page_can_read_that_a_limit_was_spent(edge):
    statuses = []
    for protocol in ("h1", "h2"):
        response = fetch(edge, "GET", "/limited/x", ORIGIN, protocol=protocol)
        statuses.append(response.status)
        assert (cors(response), vary(response)) == (ALLOWED, ["origin"])
        assert response.get("ratelimit").startswith('"once";r=0;t=')
        assert response.get("ratelimit-policy") == '"once";q=1;w=86400'
    assert statuses == [200, 429]


def kept(edge):
    """Idle connections that HAProxy holds to the upstream."""
    names, *rows = [line.lstrip("# ").split() for line in edge.haproxy_command("show servers conn").splitlines() if line]
    return sum(int(row[names.index("idle_cur")]) for row in rows if row[0].endswith("/upstream"))


@PROTOCOLS
@pytest.mark.parametrize("target, status", [("/reset/x", 502), ("/close/x", 502), ("/garbage/x", 502), ("/delay/5000", 504)])
def test_a_page_can_read_that_the_upstream_gave_no_answer(edge, upstream, protocol, target, status):
    """Over a new connection to the upstream: HAProxy says nothing where a kept one ends."""
    upstream.end_kept()
    poll(lambda: kept(edge) == 0, "HAProxy has noticed")
    response = fetch(edge, "GET", target, ORIGIN, protocol=protocol)
    assert (response.status, response.json()["status"], cors(response), vary(response)) == (status, status, ALLOWED, ["origin"])


@PROTOCOLS
def test_a_page_can_read_that_the_upstream_was_not_there(edge, upstream, protocol):
    with upstream.refusing():
        response = fetch(edge, "GET", "/x", ORIGIN, protocol=protocol)
    assert (response.status, response.json()["kind"], cors(response)) == (502, "bad_gateway", ALLOWED)


@PROTOCOLS
def test_a_page_can_read_that_its_announced_body_is_too_large(edge, protocol):
    response = fetch(edge, "POST", "/small/x", ORIGIN, body=b"x" * 11, protocol=protocol)
    assert (response.status, response.json()["kind"], cors(response)) == (413, "payload_too_large", ALLOWED)


@PROTOCOLS
def test_a_page_can_read_that_its_body_became_too_large(edge, protocol):
    with upload(edge, protocol, "/small/x", ORIGIN, length=None) as request:
        request.send(b"x" * 11)
        outcome = request.outcome()
    assert (outcome.status, cors(outcome), vary(outcome)) == (413, ALLOWED, ["origin"])


@PROTOCOLS
def test_a_page_can_read_that_its_body_came_too_slowly(edge, protocol):
    with upload(edge, protocol, "/x", ORIGIN, length=None) as request:
        request.send(b"x")
        outcome = request.outcome()
    assert outcome == RESET or (outcome.status, cors(outcome), vary(outcome)) == (408, ALLOWED, ["origin"])


@PROTOCOLS
@pytest.mark.parametrize("target", ["/a%5Cb", "/a/..%2Fb"])
def test_what_is_refused_before_there_are_settings_has_none(edge, protocol, target):
    response = fetch(edge, "GET", target, ORIGIN, protocol=protocol)
    assert (response.status, cors(response), response.all("vary")) == (400, {}, [])


def test_an_event_stream_has_them(edge):
    response = fetch(edge, "GET", "/events/x", [*ORIGIN, ("Accept", "text/event-stream")])
    assert (response.status, response.body, cors(response)) == (200, b"data: 1\n\n", ALLOWED)


def test_a_websocket_is_switched_to_as_ever(edge):
    key = new_key()
    with client(edge) as c:
        response = c.request("GET", "/socket/x", request_headers(key, *ORIGIN))
    assert (response.status, response.get("sec-websocket-accept"), cors(response)) == (101, accept_of(key), ALLOWED)


@PROTOCOLS
def test_a_page_can_read_that_a_limit_could_not_be_counted(upstream, protocol):
    nobody = Ports()
    closed = policy(config=[config_rule("web", "true", cors_policy="listed")], limits=[{**limit_rule("l", "true", 1, "1h", 1), "fail_mode": "closed"}])
    closed["global"]["cors_policies"] = {"listed": LISTED}
    try:
        with Edge(closed, upstream.url, {"VALKEY_URL": f"redis://127.0.0.1:{nobody.first}"}) as e:
            response = fetch(e, "GET", "/x", ORIGIN, protocol=protocol)
            assert (response.status, response.json()["kind"], response.get("retry-after")) == (503, "unavailable", "1")
            assert cors(response) == ALLOWED
            assert is_answer(preflight(e, "/x", protocol))
    finally:
        nobody.close()


def test_what_no_agent_decides_has_none(upstream):
    """Preflights are refused as well: nobody knows who may ask."""
    with Edge(POLICY, upstream.url) as e:
        with NoAgent(e):
            for protocol in ("h1", "h2"):
                for response in (fetch(e, "GET", "/own/x", ORIGIN, protocol=protocol), preflight(e, "/own/x", protocol)):
                    assert (response.status, cors(response), response.all("vary")) == (503, {}, [])
        assert is_answer(preflight(e, "/own/x", "h1"))
