"""CORS: what browsers are told about who may read a response, whoever made it, and the preflights that the edge answers itself."""

import pytest

from clients import client, fetch
from edge import Edge, Ports, poll
from faults import NoAgent
from faulty_upstream import FaultyUpstream
from policies import config_rule, limit_rule, policy, under
from upstream import answer
from uploads import RESET, upload
from websocket import accept_of, new_key, request_headers

PROTOCOLS = pytest.mark.parametrize("protocol", ["h1", "h2"])
SITE, OTHER, EVIL = "https://app.example", "http://localhost:3000", "https://evil.example"
ORIGIN = [("Origin", SITE)]
LISTED = {
    "origins": [SITE, OTHER],
    "methods": ["PUT", "DELETE"],
    "request_headers": ["Content-Type", "X-Token"],
    "exposed_headers": ["X-Request-Id", "RateLimit"],
    "credentials": True,
    "max_age": "10m",
}
ALLOWED = {
    "access-control-allow-origin": [SITE],
    "access-control-allow-credentials": ["true"],
    "access-control-expose-headers": ["x-request-id, ratelimit"],
}
PREFLIGHT = {
    "access-control-allow-origin": [SITE],
    "access-control-allow-credentials": ["true"],
    "access-control-allow-methods": ["PUT, DELETE"],
    "access-control-allow-headers": ["content-type, x-token"],
    "access-control-max-age": ["600"],
}
OWN = {"cache-control": "no-store", "x-content-type-options": "nosniff"}

POLICY = policy(
    config=[
        config_rule("web", "true", cors_policy="listed"),
        config_rule("single", under("/single/"), cors_policy="single"),
        config_rule("any", under("/any/"), cors_policy="any"),
        config_rule("none", under("/none/"), cors_policy="none"),
        config_rule("shut", under("/block/"), block="block"),
        config_rule("seen", under("/logged/"), block="log"),
        config_rule("counted", under("/limited/"), ratelimit_headers=True),
        config_rule("slow", under("/delay/"), upstream_timeout="200ms"),
        config_rule("small", under("/small/"), body_limit=10),
    ],
    limits=[
        limit_rule("once", under("/limited/"), limit=1, period="24h", burst=1),
        limit_rule("one-each", under("/unspent/"), limit=2, period="24h", burst=2),
    ],
)
POLICY["global"]["cors_policies"] = {
    "listed": LISTED,
    "single": {"origins": [SITE], "credentials": True},
    "any": {"origins": ["*"], "methods": ["*"], "request_headers": ["*", "Authorization"], "exposed_headers": ["*"]},
}
POLICY["global"]["defaults"]["body_read_timeout"] = "1s"

UPSTREAMS_OWN = (
    b"Access-Control-Allow-Origin: *\r\nAccess-Control-Allow-Origin: https://old.example\r\nACCESS-CONTROL-EXPOSE-HEADERS: x-old\r\n"
    b"Access-Control-Allow-Private-Network: true\r\nAccess_Control_Allow_Origin: *\r\nVary: Accept-Encoding\r\n"
)


class Opinionated(FaultyUpstream):
    """Beside what others answer: /own/... has CORS headers of its own, /events streams, /socket switches protocols, /full has a large body."""

    def respond(self, sock, request):
        if "/own/" in request["target"]:
            sock.sendall(answer(200, b"" if request["method"] == "HEAD" else b"{}", UPSTREAMS_OWN))
        elif request["target"].startswith("/full/"):
            sock.sendall(answer(200, b"x" * 300000))
        elif request["target"].startswith("/events/"):
            sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n" + UPSTREAMS_OWN + b"\r\ndata: 1\n\n")
            return False
        elif request["target"].startswith("/socket/"):
            key = next(v for n, v in request["headers"] if n.lower() == "sec-websocket-key")
            head = "HTTP/1.1 101 Switching\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: %s\r\n" % accept_of(key)
            sock.sendall(head.encode() + UPSTREAMS_OWN + b"\r\n")
            return False
        else:
            return super().respond(sock, request)
        return True


@pytest.fixture(scope="module")
def upstream():
    with Opinionated() as u:
        yield u


@pytest.fixture(scope="module")
def edge(upstream):
    with Edge(POLICY, upstream.url, {"EDGE_HAPROXY_THREADS": "1"}) as e:
        yield e


def cors(response):
    """All Access-Control-* of a response: name to values."""
    found = {}
    for name, value in response.headers:
        if name.startswith("access-control-"):
            found.setdefault(name, []).append(value)
    return found


def vary(response):
    return [item.strip().lower() for value in response.all("vary") for item in value.split(",")]


def preflight(edge, target, protocol, origin=SITE, method="PUT", headers=None, extra=()):
    asked = [("Origin", origin)] + ([("Access-Control-Request-Method", method)] if method else [])
    asked += [("Access-Control-Request-Headers", headers)] if headers is not None else []
    return fetch(edge, "OPTIONS", target, [*asked, *extra], protocol=protocol)


def is_answer(response):
    return (response.status, response.body, response.get("content-type"), response.get("content-length")) == (204, b"", None, None)


# --- Preflights ---


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
    assert (cors(refused), vary(allowed), vary(refused)) == ({}, [], [])
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
def test_a_preflight_spends_no_limit(edge, protocol):
    """The limit is one request of each protocol."""
    target = f"/unspent/{protocol}"
    for _ in range(3):
        assert is_answer(preflight(edge, target, protocol))
    assert fetch(edge, "GET", target, ORIGIN, protocol=protocol).status == 200


@PROTOCOLS
def test_more_names_than_a_policy_could_list_are_refused_and_cost_little(edge, protocol):
    """Guards against answers that cost more than what asks for them: a thousand of them, each 30 KB, are no reason to be slow."""
    for target in ("/huge", "/any/huge"):
        response = preflight(edge, target, protocol, headers=",".join(["a"] * 15000))
        assert is_answer(response) and cors(response) == {}


# --- Other responses ---


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
