"""Request targets: one verdict for one request, over HTTP/1 and HTTP/2, and what of the target reaches the upstream."""

import pytest

from clients import Closed, StreamReset, fetch
from edge import Edge
from policies import config_rule, policy, under

POLICY = policy(config=[config_rule("no-admin", f'http.request.uri.path eq "/admin" or {under("/admin/")}', block="block")])


@pytest.fixture(scope="module")
def edge(upstream):
    with Edge(POLICY, upstream.url) as e:
        yield e


# target as sent, status, target as forwarded (None: as sent)
TARGETS = [
    ("/", 200, None),
    ("/a/b?c=d", 200, None),
    ("/a%20b", 200, None),
    ("/group%2Fproject", 200, None),
    ("/a%7Cb", 200, None),
    ("/a//b", 200, None),
    ("//a", 200, None),
    ("/a/./b", 200, None),
    ("/a;x=1/b;y", 200, None),
    ("/%61/%C3%A9", 200, None),
    ("/.../..a/a..", 200, None),
    ("/a%252e%252e/b", 200, None),
    ("/a?b=/../&c=%2e%2e", 200, None),
    # forwarded with what a path or query can't carry raw escaped, and without parameters that do not parse
    ("/a|b", 200, "/a%7Cb"),
    ('/a{b}"c"', 200, "/a%7Bb%7D%22c%22"),
    ("/a%2Fb|c", 200, "/a%2Fb%7Cc"),
    ("/a?x=%zz&y=1;2&ok=1&b|=1", 200, "/a?ok=1&b|=1"),
    ("/a?x=%zz", 200, "/a"),
    ("/a?", 200, None),
    ("/a?&&x=%4&b=2", 200, "/a?&&b=2"),
    # what a rule on /admin must not miss
    ("/admin", 403, None),
    ("/admin/", 403, None),
    ("/admin?x=/", 403, None),
    ("/%61dmin", 403, None),
    ("/%61%64%6d%69%6e/x", 403, None),
    ("//admin", 403, None),
    ("/./admin", 403, None),
    ("/admin;jsessionid=1", 403, None),
    ("/admin;a=b/x", 403, None),
    ("/admin/./x|y", 403, None),
    # ambiguous
    ("/..", 400, None),
    ("/a/../admin", 400, None),
    ("/admin/../public", 400, None),
    ("/a/%2e%2e/admin", 400, None),
    ("/a/.%2E/admin", 400, None),
    ("/a%2F..%2Fadmin", 400, None),
    ("/a/..%2fadmin", 400, None),
    ("/a/..;x/admin", 400, None),
    ("/a/.;x/admin", 400, None),
    ("/a/..%3Bx/admin", 400, None),
    ("/a%5Cb", 400, None),
    ("/a\\b", 400, None),
    ("/a%00b", 400, None),
    ("/a%c0%afb", 400, None),
    ("/a%ff", 400, None),
    ("/a%zz", 400, None),
    ("/a%", 400, None),
]


@pytest.mark.parametrize("protocol", ["h1", "h2"])
@pytest.mark.parametrize("target, status, forwarded", TARGETS)
def test_the_verdict_on_a_target(edge, upstream, protocol, target, status, forwarded):
    before = len(upstream.requests)
    response = fetch(edge, "GET", target, protocol=protocol)
    assert response.status == status
    if status == 200:
        assert response.json()["target"] == (forwarded or target)
        assert response.json()["method"] == "GET"
    else:
        assert response.json()["kind"] == {400: "bad_request", 403: "forbidden"}[status]
        assert len(upstream.requests) == before, "nothing reached the upstream"


@pytest.mark.parametrize("protocol", ["h1", "h2"])
@pytest.mark.parametrize("method", ["get", "Get", "gET", "post", "delete", "geT"])
def test_a_method_with_lower_case_letters_is_refused(edge, upstream, protocol, method):
    target = f"/method/{protocol}/{method}"
    response = fetch(edge, method, target, protocol=protocol)
    assert (response.status, response.json()["kind"]) == (400, "bad_request")
    assert edge.record_of(target)["edge.decision"] == "method"
    assert upstream.seen(target) == []


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "PURGE", "M-SEARCH"])
def test_upper_case_methods_pass_unchanged(edge, upstream, method):
    target = f"/passes/{method}"
    assert fetch(edge, method, target).status == 200
    assert [r["method"] for r in upstream.seen(target)] == [method]


@pytest.mark.parametrize("protocol", ["h1", "h2"])
def test_a_target_without_a_path_is_refused(edge, upstream, protocol):
    before = len(upstream.requests)
    assert fetch(edge, "OPTIONS", "*", protocol=protocol).status == 400
    assert len(upstream.requests) == before


def test_connect_is_refused(edge, upstream):
    before = len(upstream.requests)
    assert fetch(edge, "CONNECT", "edge.test:443").status == 400
    assert len(upstream.requests) == before


def test_an_absolute_target_gets_the_verdict_of_its_path(edge):
    assert fetch(edge, "GET", "http://edge.test/%61dmin").status == 403
    response = fetch(edge, "GET", "http://edge.test/plain?a=1")
    assert (response.status, response.json()["target"]) in ((200, "/plain?a=1"), (200, "http://edge.test/plain?a=1"))


@pytest.mark.parametrize("target", ["/line\x01feed", "/tab\tbed", "/nul\0", "/\x7f", "/\xc3\xa9", "/a?\xc3\xa9", "/\xff"])
@pytest.mark.parametrize("protocol", ["h1", "h2"])
def test_bytes_that_no_target_may_have_reach_the_upstream_escaped_or_not_at_all(edge, upstream, protocol, target):
    before = len(upstream.requests)
    try:
        status = fetch(edge, "GET", target.encode("latin-1"), protocol=protocol).status
    except (StreamReset, Closed):
        status = 400
    assert status in (200, 400)
    reached = [r["target"] for r in upstream.requests[before:]]
    assert len(reached) == (status == 200)
    assert all(" " < c < "\x7f" for t in reached for c in t), reached


FILLER = [(f"X-Filler-{i}", "x" * 16000) for i in range(3)]


@pytest.mark.parametrize("protocol", ["h1", "h2"])
def test_a_target_that_grows_beyond_what_can_be_forwarded_is_refused(edge, protocol):
    assert fetch(edge, "GET", "/" + "|" * 8000, FILLER, protocol=protocol).status == 400


# Over HTTP/2 HAProxy itself resets what has a host of so many bytes.
@pytest.mark.parametrize("protocol, size, status", [("h1", 260, 200), ("h2", 260, 200), ("h1", 261, 400), ("h2", 261, 400), ("h1", 40000, 400)])
def test_a_host_longer_than_any_name_is_refused(edge, protocol, size, status):
    assert fetch(edge, "GET", "/", host="a" * size, protocol=protocol).status == status
