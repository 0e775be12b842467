"""Answers of every kind, the agent's and HAProxy's: the template that the request's rules chose, or the policy's, byte for byte, with the headers that
every answer of the edge has and no other."""

import contextlib
import signal
import threading

import pytest

from answers import CAP, KINDS, NUMBERS, WAYS, AnswersUpstream, Case
from clients import Closed, Http1, StreamReset, client, fetch, render1
from edge import Edge, poll
from haproxy_alone import HAProxy
from policies import config_rule, limit_rule, policy, template, under
from test_valkey import UNREACHABLE
from uploads import upload_on

PROTOCOLS = pytest.mark.parametrize("protocol", ["h1", "h2"])
CLIENT = [("X-Client", "198.51.100.1")]
TOLD = ["payload_too_large", "bad_gateway", "unavailable", "overloaded", "gateway_timeout"]  # kinds whose default pages HAProxy knows
# Whatever could mean something to HAProxy, to Lua, to a format, to a page or to a script.
HOSTILE = '"b" \'c\' %d %% %[src] %[var(txn.id)] %ci %1 %0 \\ \\n \\" ${EDGE_RUN_DIR} {x} } }} $& # ; \t\r\n\n\r a\u00fc\u20ac\U0001f600\ufeff\u2028 </script><!-- ]]> '
BODY_MAX = 32768
LONGEST = {"retry_after": 10, "request_id": 128, "status": 3}
TEXT_TYPES = ["text/html; charset=utf-8", "text/plain", "text/html", "text/plain; charset=utf-8"]
TYPES = [t + p for t in ("application/json", "application/problem+json", "text/html", "text/plain") for p in ("", "; charset=utf-8")]
# What makes the remaining answers is refused when it is to be served: the policy, and where. Who serves it adds a way to answers.py.
NOT_SERVED = {
    "unauthorized": (
        policy(
            config=[config_rule("sign-in", "true", auth={"mode": "required"})],
            auth={
                "issuers": [
                    {
                        "id": "corp",
                        "issuer": "https://corp.example/",
                        "audiences": ["api"],
                        "jwks_url": "https://corp.example/jwks",
                        "algorithm": "RS256",
                    }
                ],
                "default_accepted": ["corp"],
            },
        ),
        "/config_rules/0/settings/auth",
    ),
    "bad_request, with a template of the request's own": (
        policy(limits=[{**limit_rule("keyed", "true", limit=1, period="1h", burst=1), "key": ["ip", "header:x-key"], "on_missing_key": "reject"}]),
        "/rate_limit_rules/0/key",
    ),
}


def largest(name):
    """A body that can be as long as any may be, once its placeholders are filled in."""
    text = f"{name} {HOSTILE} {{{{status}}}} {{{{request_id}}}} {{{{retry_after}}}} "
    return text + "x" * (BODY_MAX - sum(LONGEST.values()) - len(text.encode()) + sum(len(f"{{{{{name}}}}}") for name in LONGEST))


def text_templates():
    """A default and another one for every kind, each with a content type by which it is told from its neighbours."""
    found = {}
    for i, (kind, status) in enumerate(KINDS.items()):
        found[kind] = template(status, largest(f"default {kind}"), TEXT_TYPES[i % 4])
        found[f"own-{kind}"] = template(status, largest(f"own {kind}"), TEXT_TYPES[(i + 1) % 4])
    return found


def typed_templates():
    for i, content_type in enumerate(TYPES):
        for kind in ("forbidden", "bad_gateway"):
            body = '{"\\"":"{{request_id}}<\u00fc\\\\>","status":[{{status}},"{{status}}"],"wait":{{retry_after}}}' if "json" in content_type else f"<p>{i}"
            yield f"{kind}-{i}", template(KINDS[kind], body, content_type)


def own(kind, name):
    return config_rule(name, f'http.request.headers["x-own"] eq "{name.removeprefix("own-")}"', responses={kind: name})


POLICY = policy(
    version=5,
    responses=text_templates() | dict(typed_templates()),
    config=[
        *(own(kind, f"own-{kind}") for kind in KINDS),
        *(own(name.rpartition("-")[0], name) for name, _ in typed_templates()),
        config_rule("shut", under("/blocked/"), block="block"),
        config_rule("small", under("/announced/"), body_limit=10),
        config_rule("hasty", under("/delay/"), upstream_timeout="200ms"),
    ],
    limits=[
        {**limit_rule("once", under("/limited/"), limit=1, period="24h", burst=1), "fail_mode": "local"},
        {**limit_rule("counted", under("/uncountable/"), limit=1, period="24h", burst=1), "fail_mode": "closed"},
    ],
)
TEMPLATES = POLICY["global"]["responses"]


def knows_pages(edge, mark="text/"):
    """Whether HAProxy has all its default pages, of a content type with mark. Each answer may teach it one."""
    fetch(edge, "GET", "/teach", CLIENT)
    return all(mark in edge.haproxy_command(f"get var proc.edge.ct_{kind}") for kind in TOLD)


@pytest.fixture(scope="module")
def upstream():
    with AnswersUpstream() as u:
        yield u
        u.released.set()


@pytest.fixture(scope="module")
def edge(upstream):
    """Its Valkey is not there. One thread of HAProxy's: the cap is exact."""
    settings = {
        "CLIENT_IP_SOURCE": "header:X-Client",
        "TRUSTED_PROXIES": "127.0.0.1",
        "VALKEY_URL": UNREACHABLE,
        "MAX_INFLIGHT": CAP,
        "EDGE_HAPROXY_THREADS": "1",
        "EDGE_UPSTREAM_CONNECT_TIMEOUT": "300ms",
    }
    with Edge(POLICY, upstream.url, settings) as e:
        poll(lambda: knows_pages(e), "HAProxy knows the pages")
        yield e


def rendered(name, status, request_id, retry_after):
    values = {"status": status, "request_id": request_id, "retry_after": retry_after or "0"}
    body = TEMPLATES[name]["body"]
    for placeholder, value in values.items():
        body = body.replace(f"{{{{{placeholder}}}}}", str(value))
    return body.encode()


def check_headers(response, content_type, size):
    """All of them."""
    retry_after = response.get("retry-after")
    assert (retry_after is not None) == (response.status in (429, 503))
    want = {"content-type": content_type, "content-length": str(size), "cache-control": "no-store", "x-content-type-options": "nosniff"}
    want |= {"retry-after": retry_after} if retry_after else {}
    assert sorted(response.headers) == sorted(want.items())


def check(response, kind, name, request_id):
    assert response.status == KINDS[kind]
    retry_after = response.get("retry-after")
    assert response.body == rendered(name, KINDS[kind], request_id, retry_after)
    check_headers(response, TEMPLATES[name]["content_type"], len(response.body))
    assert retry_after is None or retry_after == "1" or kind == "rate_limited" and 1 < int(retry_after) <= 24 * 3600


def ways(**want):
    rows = [(name, protocol) for name, way in WAYS.items() for protocol in way.protocols if all(getattr(way, k) == v for k, v in want.items())]
    return pytest.mark.parametrize("name, protocol", rows)


def test_every_kind_has_a_way_or_a_reason():
    assert {way.kind for way in WAYS.values()} | {"unauthorized"} == set(KINDS)


@pytest.mark.parametrize("what", NOT_SERVED)
def test_what_leads_to_the_other_answers_is_refused_when_it_is_to_be_served(upstream, what):
    document, path = NOT_SERVED[what]
    edge = Edge(document, upstream.url).start(ready=False)
    try:
        assert edge.event("policy_error", code="unsupported")["path"] == path
    finally:
        edge.stop()


@ways()
def test_without_a_choice_the_policys_template_answers(edge, upstream, name, protocol):
    case = Case(edge, upstream, protocol, name, choose=False)
    response = WAYS[name].ask(case)
    check(response, WAYS[name].kind, WAYS[name].kind, case.id)
    assert edge.record_of(case.path)["request_id"] == case.id


@ways(own=True)
def test_the_template_that_a_rule_gave_the_request_answers(edge, upstream, name, protocol):
    case = Case(edge, upstream, protocol, name, choose=True)
    response = WAYS[name].ask(case)
    check(response, WAYS[name].kind, f"own-{WAYS[name].kind}", case.id)
    assert edge.record_of(case.path)["request_id"] == case.id


@ways(own=False)
def test_an_answer_before_the_config_phase_is_the_policys(edge, upstream, name, protocol):
    case = Case(edge, upstream, protocol, name, choose=True)
    check(WAYS[name].ask(case), WAYS[name].kind, WAYS[name].kind, case.id)


@ways()
def test_head_gets_the_status_and_the_headers_without_a_body(edge, upstream, name, protocol):
    way = WAYS[name]
    case = Case(edge, upstream, protocol, name, choose=True, method="HEAD")
    response = way.ask(case)
    chosen = f"own-{way.kind}" if way.own else way.kind
    assert (response.status, response.body) == (KINDS[way.kind], b"")
    check_headers(response, TEMPLATES[chosen]["content_type"], len(rendered(chosen, KINDS[way.kind], case.id, response.get("retry-after"))))


@PROTOCOLS
@pytest.mark.parametrize("kind, path", [("forbidden", "/blocked/typed"), ("bad_gateway", "/garbage/typed")])
def test_each_content_type_there_is_is_sent_as_it_is_written(edge, kind, path, protocol):
    for i, content_type in enumerate(TYPES):
        headers = [*CLIENT, ("X-Own", f"{kind}-{i}"), ("X-Request-Id", "a-B_c.9")]
        response = fetch(edge, "GET", path, headers, protocol=protocol)
        check(response, kind, f"{kind}-{i}", "a-B_c.9")
        if "json" in content_type:
            assert response.json() == {'"': "a-B_c.9<\u00fc\\>", "status": [KINDS[kind], str(KINDS[kind])], "wait": 0}


@PROTOCOLS
@pytest.mark.parametrize("kind, path", [("forbidden", "/blocked/id"), ("bad_gateway", "/garbage/id"), ("bad_request", "/id/%5C")])
def test_an_id_that_could_leave_its_place_in_a_page_is_never_in_one(edge, kind, path, protocol):
    """Security: the request id is the one thing of a request that a page may hold."""
    hostile = ['"><script>', '","a":"b', "{{status}}", "a b", "%[src]", "&lt;", "\\", "i" * 129, "a\u00fc".encode().decode("latin-1")]
    for given in hostile:
        response = fetch(edge, "GET", path, [*CLIENT, ("X-Request-Id", given)], protocol=protocol)
        before, _, behind = TEMPLATES[kind]["body"].partition("{{request_id}}")
        before, behind = (text.replace("{{status}}", str(KINDS[kind])).replace("{{retry_after}}", "0").encode() for text in (before, behind))
        assert response.body.startswith(before) and response.body.endswith(behind)
        made = response.body[len(before) : len(response.body) - len(behind)]
        assert len(made) == 32 and set(made) <= set(b"0123456789abcdef"), given


# --- connections ---


def at_once(edge, path, n):
    """The statuses of n requests at the same time."""
    statuses = []
    threads = [threading.Thread(target=lambda i=i: statuses.append(fetch(edge, "GET", f"{path}/{i}", CLIENT).status)) for i in range(n)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return statuses


@pytest.mark.parametrize("path, status", [("/blocked", 403), ("/forwarded", 200)])
def test_many_of_the_largest_answers_at_once_all_arrive(upstream, path, status):
    """HAProxy loses a connection to its agent, with every request on it, once more than a buffer of answers lies before it unread. In answers
    to forwarded requests the policy's pages are what is large."""
    with Edge(POLICY, upstream.url, {"CLIENT_IP_SOURCE": "header:X-Client", "TRUSTED_PROXIES": "127.0.0.1", "EDGE_HAPROXY_THREADS": "1"}) as edge:
        for i in range(5):
            assert at_once(edge, f"{path}/{i}", 20) == [status] * 20
        assert edge.metric("edge_spop_lost_acks_total") == 0


def http10(target, *headers):
    return render1("GET", target, [*CLIENT, *headers]).replace(b" HTTP/1.1\r\n", b" HTTP/1.0\r\n", 1)


@pytest.mark.parametrize("kind, path", [("forbidden", "/blocked/old"), ("bad_gateway", "/garbage/old"), ("bad_request", "/old/%5C")])
def test_an_http10_client_gets_the_whole_answer_and_then_the_end(edge, kind, path):
    with Http1(edge.port) as c:
        c.send(http10(path, ("X-Request-Id", "old")))
        response = c.receive()
        assert (response.status, response.body) == (KINDS[kind], rendered(kind, KINDS[kind], "old", None))
        assert response.all("transfer-encoding") == [] and c.take_rest() == b""


@pytest.mark.parametrize("kind, path", [("forbidden", "/blocked/kept"), ("bad_gateway", "/garbage/kept"), ("bad_request", "/kept/%5C")])
def test_an_http10_client_that_keeps_its_connection_gets_the_next_answer_on_it(edge, kind, path):
    with Http1(edge.port) as c:
        for _ in range(2):
            c.send(http10(path, ("X-Request-Id", "old"), ("Connection", "keep-alive")))
            assert c.receive().body == rendered(kind, KINDS[kind], "old", None)


@pytest.mark.parametrize("protocol, length", [("h1", 60), ("h1", 20_000), ("h1", 300_000), ("h2", 60), ("h2", 20_000)])
@pytest.mark.parametrize("path, status", [("/blocked", 403), ("/announced", 413), ("/unread/%5C", 400)])
def test_a_body_that_nobody_read_is_never_taken_for_a_request(edge, upstream, path, status, length, protocol):
    """Security: request smuggling. The connection goes on behind the body, or ends."""
    number = next(NUMBERS)
    body = render1("GET", f"/smuggled/{number}", CLIENT).ljust(length, b"x")
    with client(edge, protocol) as c:
        request = upload_on(c, f"{path}/{number}", CLIENT, len(body))
        request.send(body, end=True)
        assert request.outcome().status == status
        with contextlib.suppress(OSError, Closed, StreamReset):
            after = c.request("GET", f"/after/{number}", CLIENT)
            assert (after.status, after.json()["target"]) == (200, f"/after/{number}")
    assert fetch(edge, "GET", f"/later/{number}", CLIENT).status == 200
    assert upstream.seen("/smuggled") == [] and upstream.seen(path) == []


# --- which statuses there are ---


@PROTOCOLS
def test_a_status_that_the_edge_does_not_answer_with_is_a_503(upstream, protocol):
    """Security: whatever an agent says, the request is not forwarded."""
    with HAProxy({"EDGE_UPSTREAM_ADDR": f"127.0.0.1:{upstream.port}"}, mock=True) as haproxy:
        for status in [0, 1, 100, 101, 200, 205, 302, 402, 404, 418, 451, 499, 500, 502, 504, 599, 600, 1000, 2**31, 2**32 + 403, 2**64 - 403, 2**64 - 1, "403", "", "x"]:
            target = f"/odd/{protocol}/{status}"
            haproxy.agent.answers[target] = {"txn.status": status, "txn.body": "page", "txn.ctype": "text/plain"}
            response = fetch(haproxy, "GET", target, protocol=protocol)
            assert (response.status, response.body, response.get("retry-after")) in [(503, b"page", "1"), (403, b"page", None)], status
            assert (response.status == 403) == (status == "403"), status
            assert response.get("cache-control") == "no-store"
        assert upstream.seen("/odd/") == []


# --- a policy that changes ---


def versioned(version):
    types = {4: "text/plain", 5: "text/html", 6: "application/json"}
    return policy(version=version, responses={kind: template(status, f'"{version}"', types[version]) for kind, status in KINDS.items()})


def publish(edge, document, n_agents):
    before = len(edge.matching(event="policy_loaded"))
    edge.write_policy(document)
    edge.signal(signal.SIGHUP)
    edge.wait_lines(before + n_agents, event="policy_loaded")


def test_haproxys_pages_change_with_the_policy_whoever_tells_them_and_are_told_to_a_reloaded_haproxy(upstream):
    """Two agents that share the requests, of two workers each."""
    settings = {"EDGE_AGENTS": "2", "EDGE_AGENTS_ACTIVE": "2", "CLIENT_IP_SOURCE": "header:X-Client", "TRUSTED_PROXIES": "127.0.0.1"}
    with Edge(versioned(4), upstream.url, settings) as edge:

        def has(content_type, version):
            assert poll(lambda: knows_pages(edge, f"<{content_type}>"), f"HAProxy knows the pages of version {version}")
            response = fetch(edge, "GET", "/garbage", CLIENT)
            assert (response.get("content-type"), response.body) == (content_type, f'"{version}"'.encode())

        has("text/plain", 4)
        publish(edge, versioned(5), 2)
        has("text/html", 5)
        before = edge.haproxy_pids()[1]
        edge.signal(signal.SIGUSR2)
        poll(lambda: set(edge.haproxy_pids()[1]).isdisjoint(before), "another process has taken over")
        has("text/html", 5)
        publish(edge, versioned(6), 2)
        has("application/json", 6)
        # Pages of before are not told again, over whichever connection.
        assert all(fetch(edge, "GET", f"/garbage/{i}", CLIENT).body == b'"6"' for i in range(40))


def test_both_largest_pages_of_a_request_do_not_fit_and_only_the_second_gives_way(upstream):
    """What haproxy/README.md says of two of them."""
    responses = {"bad_gateway": "own-bad_gateway", "gateway_timeout": "own-gateway_timeout"}
    rules = [config_rule("both", 'http.request.headers["x-own"] eq "both"', responses=responses), config_rule("hasty", under("/delay/"), upstream_timeout="200ms")]
    with Edge(policy(config=rules, responses=text_templates()), upstream.url) as edge:
        poll(lambda: knows_pages(edge), "HAProxy knows the pages")
        bodies = {path: fetch(edge, "GET", path, [("X-Own", "both")]).body.split(b" ", 2)[:2] for path in ("/garbage/both", "/delay/5000/both")}
        assert bodies == {"/garbage/both": [b"own", b"bad_gateway"], "/delay/5000/both": [b"default", b"gateway_timeout"]}
        assert edge.metric("edge_error_page_left_out_total") > 0
