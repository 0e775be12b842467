"""Rules on every part of a request, in a running edge: HTTP/1, HTTP/2 and `edge-spoa simulate` give one verdict."""

import json
import os
import subprocess

import pytest

from clients import fetch
from edge import BINARY, Edge
from policies import config_rule, policy

CHROME = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36"

# What a rule asks, the query and headers of a request, and whether it holds for it.
ROWS = [
    ('http.request.headers["X-Key"] eq "secret"', "", [("x-key", "secret")], True),
    ('http.request.headers["x-key"] eq "secret"', "", [("X-KEY", "Secret")], False),
    ('http.request.headers["x-key"] eq "b"', "", [("X-Key", "a"), ("X-Key", "b")], True),
    ('http.request.headers["x-key"] ne "secret"', "", [], True),
    ('not http.request.headers["x-key"] eq "a"', "", [("X-Key", "b"), ("X-Key", "a")], False),
    ('http.request.headers.names eq "x-key"', "", [("X-Key", "")], True),
    ('http.request.headers.names contains "edge"', "", [("X-Edge-Auth-Sub", "root"), ("x_edge_new", "1")], False),
    ('http.request.headers.names contains "forwarded"', "", [("X-Forwarded-For", "192.0.2.1")], False),
    ('http.request.cookies["id"] eq "7"', "", [("Cookie", "a=1; id=7; b=2")], True),
    ('http.request.cookies["id"] eq "7"', "", [("Cookie", "a=1"), ("Cookie", "id=7")], True),
    ('http.request.cookies["ID"] eq "7"', "", [("Cookie", "id=7")], False),
    ('http.request.cookies["id"] ne "7"', "", [], True),
    ('http.request.uri.args["q"] eq "a b&c"', "?q=a+b%26c", [], True),
    ('http.request.uri.args["q"] eq "2"', "?q=1&q=2", [], True),
    ('http.request.uri.args["q"] eq "1"', "?%71=1", [], True),
    ('http.request.uri.args["q"] eq "1"', "?q=1;x", [], False),
    ('http.request.uri.args.names in {"debug" "trace"}', "?a=1&debug", [], True),
    ('http.request.uri.query contains "token="', "?token=1", [], True),
    ('http.request.uri.query contains "a="', "?a=%zz&b=1", [], False),
    ('http.user_agent wildcard "*CURL*"', "", [("User-Agent", "curl/8.0")], True),
    ('http.user_agent strict_wildcard "*CURL*"', "", [("User-Agent", "curl/8.0")], False),
    ('http.user_agent eq ""', "", [], True),
    ('http.user_agent matches "^curl/[0-9]+"', "", [("User-Agent", "curl/8.0")], True),
    ('http.referer ne ""', "", [("Referer", "https://a.example/")], True),
    ('http.x_forwarded_for contains "192.0.2.9"', "", [("X-Forwarded-For", "192.0.2.9"), ("X-Forwarded-For", "10.0.0.1")], True),
    ('client.signals eq "tool_user_agent"', "", [("User-Agent", "python-requests/2.31")], True),
    ('client.signals eq "tool_user_agent"', "", [("User-Agent", CHROME)], False),
    ('client.signals in {"no_user_agent" "scanner_user_agent"}', "", [], True),
    ('http.host in {"edge.test" "other.test"} and ip.src in {127.0.0.0/8 ::1}', "", [], True),
    ('http.request.method in {"POST" "PUT"} or not ip.src eq 127.0.0.1', "", [], False),
    ("client.verified_bot eq true", "", [], False),
]  # fmt: skip


def path_of(number):
    return f"/row/{number}"


POLICY = policy(
    config=[config_rule(f"row-{n}", f'http.request.uri.path eq "{path_of(n)}" and ({row[0]})', block="block") for n, row in enumerate(ROWS)]
)


@pytest.fixture(scope="module")
def edge(upstream):
    with Edge(POLICY, upstream.url, settings={"ALLOW_REGEX": "true"}) as e:
        yield e


def simulated(edge, target, headers):
    """Whether the same policy blocks the same request offline."""
    merged = {}
    for name, value in headers:
        merged.setdefault(name.lower(), []).append(value)
    request = {"method": "GET", "host": "edge.test", "path": target, "ip": "127.0.0.1", "headers": merged}
    result = subprocess.run(
        [BINARY, "simulate", str(edge.policy_file)],
        input=json.dumps(request),
        capture_output=True,
        text=True,
        env={**os.environ, "CLIENT_IP_SOURCE": "remote_addr", "ALLOW_REGEX": "true"},
        check=True,
    )
    return json.loads(result.stdout)["rejected"] == "block"


@pytest.mark.parametrize("number", range(len(ROWS)))
def test_a_rule_holds_alike_over_both_protocols_and_offline(edge, number):
    _, query, headers, holds = ROWS[number]
    target = path_of(number) + query
    assert [fetch(edge, "GET", target, headers, protocol=p).status for p in ("h1", "h2")] == [403 if holds else 200] * 2
    assert simulated(edge, target, headers) == holds


def test_a_crawlers_address_is_known_by_the_snapshots_ranges(upstream):
    rule = config_rule("bots", "client.verified_bot eq true", block="block")
    ranges = [{"source": "https://crawler.example/ranges", "prefixes": ["127.0.0.0/8"]}]
    for prefixes, status in ((ranges, 403), ([], 200)):
        with Edge({"active": policy(config=[rule]), "verified_bots": prefixes}, upstream.url) as edge:
            assert fetch(edge, "GET", "/").status == status
