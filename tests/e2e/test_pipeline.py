"""A request's way through HAProxy, the agent and back: what passes, what is answered, and what the upstream gets to see."""

import time

import pytest

from clients import client, fetch
from edge import Edge, poll
from policies import config_rule, header_rule, limit_rule, policy, template, under
from shapes import FORGED, SHAPES, managed, shaped, values

HTML = "<!doctype html><title>No</title><p>Not for you.</p>"
POLICY = policy(
    config=[
        config_rule("no-admin", f'http.request.uri.path eq "/admin" or {under("/admin/")}', block="block"),
        config_rule("no-html", under("/html/"), block="block", responses={"forbidden": "forbidden_html"}),
        config_rule("watch", under("/watched"), block="log"),
        config_rule("no-post", 'http.request.method eq "POST" and http.host eq "post.test"', block="block"),
    ],
    limits=[
        limit_rule("once", under("/once"), limit=1, period="2s", burst=1),
        limit_rule("shadow", under("/shadow"), limit=1, period="1h", burst=1, action="log"),
    ],
    headers=[
        header_rule("several", under("/set/"), ("X-A", "one"), ("X-B", "two"), ("X-A", "last")),
        header_rule("later", under("/set/later/"), ("X-B", "later, longer")),
    ],
    responses={"forbidden_html": template(403, HTML, "text/html; charset=utf-8")},
)

PROTOCOLS = ["h1", "h2", "tls-h1", "tls-h2"]

@pytest.fixture(scope="module")
def edge(upstream, cert):
    with Edge(POLICY, upstream.url, cert=cert) as e:
        yield e


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_passed_request_carries_the_edges_headers_and_no_forged_one(edge, protocol, shape):
    target = f"/forged/{protocol}/{shape}"
    response = fetch(edge, "POST", target, protocol=protocol, **shaped(shape, [(n, "evil") for n in FORGED]))
    assert response.status == 200
    request_id = edge.record_of(target)["request_id"]
    headers = managed(response.json())
    of_hello = [value for name, value in headers if name == "x-edge-tls-ja4"]  # test_tls_facts.py knows which
    assert len(of_hello) == protocol.startswith("tls") and "evil" not in of_hello
    assert [(name, value) for name, value in headers if name != "x-edge-tls-ja4"] == [
        ("x-edge-client-ip", "127.0.0.1"),
        ("x-forwarded-for", "127.0.0.1"),
        ("x-forwarded-host", "edge.test"),
        ("x-forwarded-proto", "https" if protocol.startswith("tls") else "http"),
        ("x-request-id", request_id),
    ]


def test_other_headers_pass_as_they_were_sent_in_order(edge):
    sent = [("x-one", "1"), ("x-two", "a, b;q=\"c\""), ("x-one", "2"), ("cookie", "a=1; b=2"), ("authorization", "Bearer x.y.z"),
            ("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"), ("x-edged", "no prefix"), ("x-empty", "")]  # fmt: skip
    received = fetch(edge, "GET", "/others", sent).json()["headers"]
    names = {n for n, _ in sent}
    assert [(n, v) for n, v in received if n in names] == sent


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("host", ["edge.test", "Edge.TEST:8443", "edge.test.", "[::1]:8081"])
def test_host_reaches_the_upstream_unchanged(edge, protocol, host):
    received = fetch(edge, "GET", "/host", protocol=protocol, host=host).json()
    assert values(received, "host") == [host]
    assert values(received, "x-forwarded-host") == [host]


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("size", [0, 1, 200_000])
def test_a_body_passes_whole_with_and_without_a_length(edge, protocol, size):
    body = bytes(range(256)) * (size // 256) + b"x" * (size % 256)
    with_length = fetch(edge, "PUT", "/body", protocol=protocol, body=body).json()
    without = fetch(edge, "PUT", "/body", protocol=protocol, body=body, trailers=[]).json()
    assert with_length["body_len"] == without["body_len"] == size
    assert with_length["body_sha256"] == without["body_sha256"]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_request_trailers_are_dropped(edge, protocol):
    trailers = [("x-edge-auth-sub", "admin"), ("x-other", "1")]
    received = fetch(edge, "POST", "/trailers", protocol=protocol, body=b"body", trailers=trailers).json()
    assert received["body_len"] == 4
    assert received["trailers"] == []


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_stream_passes(edge, protocol):
    response = fetch(edge, "GET", "/stream/3", [("Accept", "text/event-stream")], protocol=protocol)
    assert (response.status, response.body) == (200, b"data: 0\n\ndata: 1\n\ndata: 2\n\n")


# --- answers of the edge ---


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_block_answers_403_with_the_template_and_nothing_reaches_the_upstream(edge, upstream, protocol, shape):
    target = f"/admin/{protocol}/{shape}"
    response = fetch(edge, "GET", target, protocol=protocol, **shaped(shape))
    assert response.status == 403
    assert response.get("content-type") == "application/json"
    assert response.get("cache-control") == "no-store"
    assert response.get("x-content-type-options") == "nosniff"
    assert response.get("retry-after") is None
    record = edge.record_of(target)
    assert response.json() == {"kind": "forbidden", "status": 403, "retry_after": 0, "request_id": record["request_id"]}
    assert upstream.seen(target) == []


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_rule_chooses_an_html_template(edge, protocol):
    response = fetch(edge, "GET", "/html/page", protocol=protocol)
    assert (response.status, response.get("content-type")) == (403, "text/html; charset=utf-8")
    assert response.body.decode() == HTML
    assert response.get("x-content-type-options") == "nosniff"


def test_head_gets_the_answer_without_a_body(edge):
    with client(edge) as c:
        assert c.request("HEAD", "/admin").status == 403
        assert c.request("GET", "/after").status == 200


def test_an_expression_sees_host_and_method(edge):
    assert fetch(edge, "POST", "/", body=b"", host="POST.test:81").status == 403
    assert fetch(edge, "GET", "/", host="POST.test:81").status == 200
    assert fetch(edge, "POST", "/", body=b"", host="other.test").status == 200


def test_block_log_passes_and_says_would_block(edge):
    assert fetch(edge, "GET", "/watched/1").status == 200
    record = edge.record_of("/watched/1")
    assert record["edge.decision"] == "would_block"
    assert record["edge.config_rules"] == ["watch"]


def test_a_shadow_limit_passes_and_says_would_block(edge):
    assert fetch(edge, "GET", "/shadow/1").status == 200
    assert fetch(edge, "GET", "/shadow/2").status == 200
    assert edge.record_of("/shadow/1")["edge.decision"] == "allow"
    record = edge.record_of("/shadow/2")
    assert (record["edge.decision"], record["edge.rate_limit_rule"]) == ("would_block", "shadow")


def test_a_limited_client_that_waits_retry_after_passes(edge, upstream):
    began = time.monotonic()
    assert fetch(edge, "GET", "/once/first").status == 200
    refused = fetch(edge, "GET", "/once/refused")
    refused_at = time.monotonic()
    assert refused.status == 429
    retry_after = int(refused.get("retry-after"))
    assert retry_after in (1, 2)
    assert refused.json()["retry_after"] == retry_after
    assert refused.get("cache-control") == "no-store"
    assert upstream.seen("/once/refused") == []

    def passes():
        asked_at = time.monotonic()
        response = fetch(edge, "GET", "/once/again")
        assert response.status == 200 or asked_at < refused_at + retry_after, "refused after the wait that Retry-After named"
        return response.status == 200

    poll(passes, "the limit lets the client in again")
    assert time.monotonic() - began >= 2, "one request in two seconds, not more"
    assert len(upstream.seen("/once/again")) == 1


# --- header rules ---


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("protocol", ["h1", "h2"])
def test_header_rules_set_several_headers_and_replace_what_the_client_sent(edge, protocol, shape):
    sent = [("X-A", "client"), ("X-a", "client again"), ("X-C", "kept")]
    received = fetch(edge, "GET", "/set/it", protocol=protocol, **shaped(shape, sent)).json()
    assert (values(received, "x-a"), values(received, "x-b"), values(received, "x-c")) == (["last"], ["two"], ["kept"])


def test_a_later_header_rule_wins(edge):
    received = fetch(edge, "GET", "/set/later/1").json()
    assert (values(received, "x-a"), values(received, "x-b")) == (["last"], ["later, longer"])
    assert edge.record_of("/set/later/1")["edge.request_header_rules"] == ["several", "later"]


def test_a_request_that_no_header_rule_matches_is_left_alone(edge):
    received = fetch(edge, "GET", "/unset", [("X-A", "client")]).json()
    assert (values(received, "x-a"), values(received, "x-b")) == (["client"], [])
