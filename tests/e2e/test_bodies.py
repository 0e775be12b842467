"""Bodies of requests: how large they may be and how long they may take, whichever way they come."""

import hashlib
import os
import signal

import pytest

from clients import Http1, client, fetch
from edge import Edge, poll
from policies import config_rule, policy, under
from uploads import CLOSED, RESET, BodyUpstream, TurnsUpstream, trickle, upload, upload_on
from websocket import new_key, request_headers

ALL = ["h1", "h2", "tls-h1", "tls-h2"]
BOTH = ["h1", "h2"]
LIMIT = 10
EVENTS = [("Accept", "text/event-stream")]
UPGRADES = [[("Connection", "upgrade"), ("Upgrade", "any")], request_headers(new_key())]
SHORT_MS = 400


def with_limits(read_timeout="30s"):
    document = policy(
        config=[
            config_rule("small", under("/small"), body_limit=LIMIT),
            config_rule("none", under("/none"), body_limit=0),
            config_rule("large", under("/large"), body_limit=1 << 30),
            config_rule("part", under("/part"), body_limit=LIMIT),
            config_rule("early", under("/early"), body_limit=LIMIT),
            config_rule("hints", under("/hints"), body_limit=LIMIT),
            config_rule("continue", under("/continue"), body_limit=LIMIT),
        ]
    )
    document["global"]["defaults"] |= {"body_read_timeout": read_timeout, "body_limit": 100000}
    return document


@pytest.fixture(scope="module")
def upstream():
    with BodyUpstream() as u:
        yield u


@pytest.fixture(scope="module")
def edge(upstream, cert):
    with Edge(with_limits(), upstream.url, cert=cert) as e:
        yield e


@pytest.fixture(scope="module")
def short(upstream, cert):
    """Bodies must have come within SHORT_MS; HAProxy's process knows it too."""
    with Edge(with_limits(f"{SHORT_MS}ms"), upstream.url, cert=cert) as e:
        assert fetch(e, "GET", "/warm").status == 200
        poll(lambda: f"value=<{SHORT_MS}>" in e.haproxy_command("get var proc.edge.body_idle"), "HAProxy knows the pause")
        yield e


def refused_by_template(response):
    assert response.status == 413
    assert response.json()["kind"] == "payload_too_large" and response.get("cache-control") == "no-store"


def ended_in_the_middle(response, protocol, status):
    """Without a body; the rest of the request is not waited for."""
    assert (response.status, response.body, response.get("cache-control")) == (status, b"", "no-store")
    assert response.get("connection") == ("close" if "h1" in protocol else None)


# --- how large ---


@pytest.mark.parametrize("headers", [[], EVENTS], ids=["ordinary", "stream"])
@pytest.mark.parametrize("protocol", ALL)
def test_an_announced_body_of_the_limit_passes_and_one_byte_more_is_refused(edge, upstream, protocol, headers):
    for target, size in (("/small", LIMIT), ("/none", 0)):
        marker = f"{target}/{protocol}/{len(headers)}"
        assert fetch(edge, "POST", f"{marker}/fits", headers, b"x" * size, protocol=protocol).status == 200
        refused_by_template(fetch(edge, "POST", f"{marker}/over", headers, b"x" * (size + 1), protocol=protocol))
        assert upstream.seen(f"{marker}/over") == []
        assert edge.record_of(f"{marker}/over")["edge.decision"] == "body_limit"


@pytest.mark.parametrize("headers", [[], EVENTS], ids=["ordinary", "stream"])
@pytest.mark.parametrize("protocol", ALL)
def test_an_announced_body_is_refused_before_any_of_it_has_come(edge, upstream, protocol, headers):
    target = f"/small/before/{protocol}/{len(headers)}"
    with upload(edge, protocol, target, headers, length=LIMIT + 1) as request:
        refused_by_template(request.outcome())
    assert upstream.seen(target) == []


@pytest.mark.parametrize("length", [2**63 - 1, 2**63, 2**64 - 1])
def test_an_announced_size_beyond_every_number_is_refused_before_any_of_it_has_come(edge, upstream, length):
    with upload(edge, "h1", f"/large/100?{length}", length=length) as request:
        refused_by_template(request.outcome())
    assert upstream.seen(f"/large/100?{length}") == []


@pytest.mark.parametrize("headers", [[], EVENTS], ids=["ordinary", "stream"])
@pytest.mark.parametrize("protocol", ALL)
def test_a_body_without_length_of_the_limit_passes_and_one_byte_more_is_refused(edge, upstream, protocol, headers):
    marker = f"/small/whole/{protocol}/{len(headers)}"
    for name, size in (("fits", LIMIT), ("over", LIMIT + 1)):
        with upload(edge, protocol, f"{marker}/{name}", headers) as request:
            request.send(b"x" * size, end=True)
            response = request.outcome()
        # Whether the body is known when the request is judged is a matter of how it arrives.
        assert response.status == (200 if name == "fits" else 413)
    assert [r["body_len"] for r in upstream.seen(f"{marker}/fits")] == [LIMIT]
    assert [r for r in upstream.seen(f"{marker}/over") if r["whole"]] == []
    assert edge.record_of(f"{marker}/over")["edge.decision"] == "body_limit"


@pytest.mark.parametrize("headers", [[], EVENTS], ids=["ordinary", "stream"])
@pytest.mark.parametrize("protocol", ALL)
def test_a_body_without_length_is_counted_while_it_streams(edge, upstream, protocol, headers):
    marker = f"/small/streams/{protocol}/{len(headers)}"
    with upload(edge, protocol, f"{marker}/fits", headers) as request:
        for i in range(LIMIT):
            request.send(b"x")
            upstream.came(f"{marker}/fits", i + 1)
        request.send(end=True)
        assert request.outcome().status == 200
    with upload(edge, protocol, f"{marker}/over", headers) as request:
        request.send(b"x" * LIMIT)
        upstream.came(f"{marker}/over", LIMIT)
        request.send(b"x")
        ended_in_the_middle(request.outcome(), protocol, 413)
    record = edge.record_of(f"{marker}/over")
    assert (record["edge.decision"], record["http.response.status_code"], record["edge.upstream_answered"]) == ("body_limit", 413, False)
    assert not upstream.came(f"{marker}/over", LIMIT)["whole"]


@pytest.mark.parametrize("protocol", BOTH)
def test_the_upstream_gets_no_byte_beyond_the_limit(edge, upstream, protocol):
    target = f"/small/beyond/{protocol}"
    with upload(edge, protocol, target) as request:
        request.send(b"x")
        upstream.came(target, 1)
        request.send(b"y" * 50000)
        ended_in_the_middle(request.outcome(), protocol, 413)
    assert upstream.came(target, 1)["body_len"] <= LIMIT


@pytest.mark.parametrize("protocol", ALL)
def test_over_http_2_other_streams_of_the_connection_go_on(edge, upstream, protocol):
    if "h1" in protocol:
        pytest.skip("HTTP/1 has one request at a time: its connection closes")
    with client(edge, protocol) as c:
        request = upload_on(c, f"/small/others/{protocol}")
        request.send(b"x")
        upstream.came(f"/small/others/{protocol}", 1)
        request.send(b"x" * LIMIT)
        ended_in_the_middle(request.outcome(), protocol, 413)
        assert c.request("POST", "/small/after", body=b"x" * LIMIT).status == 200


def test_http_1_connections_serve_on_after_a_refusal_whose_body_was_there(edge):
    with Http1(edge.port) as c:
        refused_by_template(c.request("POST", "/small/there", body=b"x" * (LIMIT + 1)))
        assert c.request("POST", "/small/next", body=b"x" * LIMIT).status == 200


@pytest.mark.parametrize("protocol", BOTH)
def test_a_response_that_has_begun_breaks_off_when_the_body_is_too_large(edge, upstream, protocol):
    target = f"/part/{protocol}"
    with upload(edge, protocol, target) as request:
        request.send(b"x")
        upstream.came(target, 1)
        poll(lambda: "begun" if protocol == "h2" else request.c.sock.recv(1, 2), "the response has begun")
        request.send(b"x" * LIMIT)
        assert request.outcome() == (CLOSED if protocol == "h1" else RESET)
    record = edge.record_of(target)
    assert (record["edge.decision"], record["edge.upstream_answered"]) == ("body_limit", True)
    assert not upstream.came(target, 1)["whole"]


@pytest.mark.parametrize("protocol", BOTH)
def test_an_upstream_that_answers_early_is_heard_once(edge, upstream, protocol):
    target = f"/early/{protocol}"
    with upload(edge, protocol, target) as request:
        response = request.outcome()
        assert (response.status, response.body) == (200, b"early")
        request.send(b"x", end=True)
    assert len(upstream.seen(target)) == 1


@pytest.mark.parametrize("protocol", BOTH)
def test_interim_responses_do_not_hide_the_end_of_a_body(edge, upstream, protocol):
    target = f"/hints/{protocol}"
    with upload(edge, protocol, target) as request:
        request.send(b"x")
        upstream.came(target, 1)
        request.send(b"x" * LIMIT)
        ended_in_the_middle(request.outcome(), protocol, 413)


@pytest.mark.parametrize("protocol", BOTH)
def test_a_client_that_waits_for_100_gets_it_or_the_refusal(edge, upstream, protocol):
    expect = [("Expect", "100-continue")]
    with upload(edge, protocol, f"/continue/fits/{protocol}", expect, length=LIMIT) as request:
        upstream.came(f"/continue/fits/{protocol}", 0)
        request.send(b"x" * LIMIT, end=True)
        assert request.outcome().status == 200
    with upload(edge, protocol, f"/continue/over/{protocol}", expect, length=LIMIT + 1) as request:
        refused_by_template(request.outcome())
    assert upstream.seen(f"/continue/over/{protocol}") == []
    with upload(edge, protocol, f"/continue/later/{protocol}", expect) as request:
        upstream.came(f"/continue/later/{protocol}", 0)
        request.send(b"x" * (LIMIT + 1))
        ended_in_the_middle(request.outcome(), protocol, 413)


@pytest.mark.parametrize("protocol", BOTH)
def test_trailers_are_no_part_of_the_body(edge, protocol):
    trailers = [("X-Checksum", "y" * 1000)]
    assert fetch(edge, "POST", "/small/trailers", body=b"x" * LIMIT, trailers=trailers, protocol=protocol).status == 200
    # Over HTTP/2 they would follow on a stream that has its answer.
    if protocol == "h1":
        assert fetch(edge, "POST", "/small/trailers", body=b"x" * (LIMIT + 1), trailers=trailers).status == 413


def test_http_1_0_is_held_to_the_limit(edge, upstream):
    for name, size, status in (("fits", LIMIT, 200), ("over", LIMIT + 1, 413)):
        with upload(edge, "h1", f"/small/old/{name}", length=size, version="1.0") as request:
            request.send(b"x" * size)
            assert request.outcome().status == status
    assert upstream.seen("/small/old/over") == []


def test_chunks_with_extensions_and_of_one_byte_count_their_bytes_only(edge, upstream):
    with upload(edge, "h1", "/small/chunks") as request:
        request.c.send(b"1;name=value\r\nx\r\n" * LIMIT)
        upstream.came("/small/chunks", LIMIT)
        request.c.send(b"0\r\n\r\n")
        assert request.outcome().status == 200


def test_a_broken_chunk_in_the_middle_ends_the_connection(edge, upstream):
    with upload(edge, "h1", "/small/broken") as request:
        request.send(b"x")
        upstream.came("/small/broken", 1)
        request.c.send(b"zz\r\n")
        assert request.outcome() == CLOSED
    assert not upstream.came("/small/broken", 1)["whole"]


@pytest.mark.parametrize("headers", UPGRADES, ids=["any protocol", "websocket"])
def test_a_body_that_comes_with_an_upgrade_is_counted_too_and_the_upgrade_goes(edge, upstream, headers):
    target = f"/small/upgrade/{len(headers)}"
    with upload(edge, "h1", target, headers) as request:
        request.send(b"x" * LIMIT)
        upstream.came(target, LIMIT)
        request.send(b"x", end=True)
        ended_in_the_middle(request.outcome(), "h1", 413)
    seen = upstream.came(target, LIMIT)
    assert seen["body_len"] == LIMIT and not {"upgrade", "sec-websocket-accept"} & {name.lower() for name, _ in seen["headers"]}


# --- how long ---


@pytest.mark.parametrize("headers", [[], EVENTS], ids=["ordinary", "stream"])
@pytest.mark.parametrize("length", [1000, None], ids=["announced", "without-length"])
@pytest.mark.parametrize("protocol", ALL)
def test_a_body_that_comes_too_slowly_is_ended(short, upstream, protocol, length, headers):
    target = f"/slow/{protocol}/{length}/{len(headers)}"
    with upload(short, protocol, target, headers, length=length) as request:
        end = trickle(request, SHORT_MS / 10000)
        try:
            ended_in_the_middle(request.outcome(), protocol, 408)
        finally:
            end()
    record = short.record_of(target)
    assert (record["edge.decision"], record["http.response.status_code"]) == ("body_timeout", 408)
    assert not upstream.came(target, 1)["whole"]


def test_a_body_that_comes_too_slowly_is_ended_also_when_it_comes_with_an_upgrade(short, upstream):
    with upload(short, "h1", "/slow/upgrade", UPGRADES[0]) as request:
        end = trickle(request, SHORT_MS / 10000)
        try:
            ended_in_the_middle(request.outcome(), "h1", 408)
        finally:
            end()
    assert not upstream.came("/slow/upgrade", 1)["whole"]


@pytest.mark.parametrize("pieces", [0, 1])
@pytest.mark.parametrize("headers", [[], EVENTS], ids=["ordinary", "stream"])
@pytest.mark.parametrize("length", [1000, None], ids=["announced", "without-length"])
@pytest.mark.parametrize("protocol", BOTH)
def test_a_client_that_falls_silent_in_its_body_is_ended(short, protocol, length, headers, pieces):
    target = f"/silent/{protocol}/{length}/{len(headers)}/{pieces}"
    with upload(short, protocol, target, headers, length=length) as request:
        for _ in range(pieces):
            request.send(b"x")
        ended_in_the_middle(request.outcome(), protocol, 408)
    record = short.record_of(target)
    assert (record["edge.decision"], record["http.response.status_code"]) == ("body_timeout", 408)


@pytest.mark.parametrize("headers", [[], EVENTS], ids=["ordinary", "stream"])
def test_client_and_upstream_may_take_turns_in_their_bodies(headers):
    """Each piece is sent only once the one before has come back."""
    with TurnsUpstream() as turns, Edge(with_limits(), turns.url) as e, client(e) as c:
        request = upload_on(c, "/turns", headers)
        assert c.take_line().startswith(b"HTTP/1.1 200")
        c.take_headers()
        for piece in (b"one", b"two", b"three"):
            request.send(piece)
            assert int(c.take_line(), 16) == len(piece) and c.take(len(piece)) == piece and c.take_line() == b""
        request.send(end=True)
        assert c.take_line() == b"0"


@pytest.mark.parametrize("protocol", BOTH)
def test_the_pause_of_a_body_does_not_bind_the_upstream_nor_its_answer(short, protocol):
    for target, headers in ((f"/delay/{3 * SHORT_MS}/{protocol}", []), (f"/pause/{3 * SHORT_MS}", EVENTS)):
        with upload(short, protocol, target, headers) as request:
            request.send(b"x")
            request.send(end=True)
            assert request.outcome().status == 200


@pytest.mark.parametrize("protocol", BOTH)
def test_a_connection_may_rest_longer_than_a_body_may_pause(short, protocol):
    with client(short, protocol) as c:
        request = upload_on(c, f"/first/{protocol}")
        request.send(b"x")
        request.send(end=True)
        assert request.outcome().status == 200
        assert c.request("GET", f"/delay/{2 * SHORT_MS}/rest").status == 200


@pytest.mark.parametrize("protocol", BOTH)
def test_a_client_that_leaves_in_its_body_takes_the_upstream_request_with_it(edge, upstream, protocol):
    target = f"/small/leaves/{protocol}"
    with upload(edge, protocol, target) as request:
        request.send(b"x")
        upstream.came(target, 1)
    record = edge.record_of(target)
    assert (record["edge.decision"], record["http.response.status_code"]) == ("allow", 0)
    assert not upstream.came(target, 1)["whole"]


# --- much ---


@pytest.mark.parametrize("length", [True, False], ids=["announced", "without-length"])
@pytest.mark.parametrize("protocol", BOTH)
def test_a_long_upload_arrives_whole(edge, upstream, protocol, length):
    piece, n = os.urandom(1 << 20), 24
    target = f"/large/10/{protocol}/{length}"
    with upload(edge, protocol, target.replace("/10/", "/10?"), length=len(piece) * n if length else None) as request:
        for i in range(n):
            assert request.send(piece, end=i == n - 1)
        assert request.outcome().status == 200
    seen = upstream.came(target.replace("/10/", "/10?"), len(piece) * n)
    assert seen["body_sha256"] == hashlib.sha256(piece * n).hexdigest()


# --- while nobody decides ---


@pytest.fixture(scope="module")
def open_edge(upstream, cert):
    """Its agent is stopped for good: every request passes without a decision."""
    settings = {"EDGE_ON_AGENT_FAILURE": "open", "EDGE_BODY_LIMIT": str(LIMIT)}
    with Edge(with_limits(), upstream.url, settings, cert=cert) as e:
        assert fetch(e, "GET", "/warm").status == 200
        for pid in e.agent_pids().values():
            os.kill(pid, signal.SIGSTOP)
        try:
            poll(lambda: e.readyz()[0] == 503, "the agent's check has failed")
            yield e
        finally:
            for pid in e.agent_pids().values():
                os.kill(pid, signal.SIGCONT)


@pytest.mark.parametrize("headers", [[], EVENTS], ids=["ordinary", "stream"])
@pytest.mark.parametrize("protocol", ALL)
def test_without_a_decision_the_static_limit_holds(open_edge, upstream, protocol, headers):
    marker = f"/open/{protocol}/{len(headers)}"
    assert fetch(open_edge, "POST", f"{marker}/fits", headers, b"x" * LIMIT, protocol=protocol).status == 200
    assert fetch(open_edge, "POST", f"{marker}/over", headers, b"x" * (LIMIT + 1), protocol=protocol).status == 413
    with upload(open_edge, protocol, f"{marker}/whole", headers) as request:
        request.send(b"x" * (LIMIT + 1), end=True)
        assert request.outcome().status == 413
    with upload(open_edge, protocol, f"{marker}/later", headers) as request:
        request.send(b"x" * LIMIT)
        upstream.came(f"{marker}/later", LIMIT)
        request.send(b"x")
        ended_in_the_middle(request.outcome(), protocol, 413)
    assert upstream.seen(f"{marker}/over") == [] and not upstream.came(f"{marker}/later", LIMIT)["whole"]
    assert open_edge.record_of(f"{marker}/later")["edge.decision"] == "body_limit"
