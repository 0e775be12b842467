"""haproxy/ alone, without an agent: the file is accepted in every combination of its flags, and what HAProxy does by itself holds."""

import contextlib
import itertools
import json
import os
import re
import signal
import socket
import stat
import subprocess
import threading

import pytest

from clients import Http1, fetch
from edge import HAPROXY, Ports, poll
from haproxy_alone import FOLDER, REQUIRED, HAProxy
from hostile import ENDLESS_TARGET
from mock_agent import FORWARD

SECOND = {"EDGE_AGENT_1": "unix@/tmp/agent-1.sock", "EDGE_RECORDS_1": "unix@/tmp/records-1.sock"}
AGENTS = {"one-agent": {}, "standby": SECOND, "two-active": {**SECOND, "EDGE_AGENT_1_ACTIVE": "1"}}
FAILURE = {"closed": {}, "open": {"EDGE_FAIL_OPEN": "1"}}
UPSTREAM = {
    f"{scheme}-{proto}": {**tls, **force}
    for scheme, tls in {"http": {}, "https": {"EDGE_UPSTREAM_TLS": "1"}}.items()
    for proto, force in {"auto": {}, "h1": {"EDGE_UPSTREAM_H1": "1"}, "h2": {"EDGE_UPSTREAM_H2": "1"}}.items()
}
TLS = {"EDGE_TLS_LISTEN": "127.0.0.1:8443", "EDGE_THREADS": "2"}
FINGERPRINTS = {"none": {}, "ja3": {"EDGE_TLS_FINGERPRINTS": "1"}, "hop": {"EDGE_TLS_FINGERPRINTS": "1", "EDGE_TLS_HOP": "1"}}
CLIENT_CERTS = {"no-ca": (), "optional": ("EDGE_TLS_CLIENT_CA",), "required": ("EDGE_TLS_CLIENT_CA", "EDGE_TLS_CLIENT_REQUIRED")}
NO_STORE = {"cache-control": "no-store", "x-content-type-options": "nosniff"}
REQUEST_ID = re.compile(r"[0-9a-f]{32}\Z")


def accepted(environment):
    """Runs `haproxy -c`: (exit status 0 and not a word of complaint, what it said)."""
    done = subprocess.run([HAPROXY, "-c", "-f", FOLDER / "haproxy.cfg"], env=environment, capture_output=True, text=True, check=False)
    said = done.stdout + done.stderr
    return done.returncode == 0 and not re.search(r"\[(WARNING|ALERT)\]|warning", said, re.I), said


@pytest.mark.parametrize("with_tls", [False, True], ids=["clear", "tls"])
@pytest.mark.parametrize("agents, failure, upstream_kind", itertools.product(AGENTS, FAILURE, UPSTREAM))
def test_the_file_is_accepted_without_a_warning(cert, agents, failure, upstream_kind, with_tls):
    tls = {**TLS, "EDGE_TLS_CERT": str(cert)} if with_tls else {}
    good, said = accepted({**REQUIRED, **AGENTS[agents], **FAILURE[failure], **UPSTREAM[upstream_kind], **tls})
    assert good, said


@pytest.mark.parametrize("proxy_protocol", [False, True], ids=["no-proxy-header", "proxy-header"])
@pytest.mark.parametrize("fingerprint, client_cert", itertools.product(FINGERPRINTS, CLIENT_CERTS))
def test_the_file_is_accepted_for_all_that_tls_may_tell(cert, tmp_path, fingerprint, client_cert, proxy_protocol):
    asked = {name: str(cert) for name in CLIENT_CERTS[client_cert]}
    if proxy_protocol:
        (tmp_path / "peers").write_text("127.0.0.0/8\n")
        asked["EDGE_PROXY_PROTOCOL"] = str(tmp_path / "peers")
    good, said = accepted({**REQUIRED, **TLS, "EDGE_TLS_CERT": str(cert), **FINGERPRINTS[fingerprint], **asked})
    assert good, said


@pytest.mark.parametrize("flags", itertools.product([False, True], repeat=4))
def test_the_file_is_accepted_behind_every_front(tmp_path, flags):
    peers = tmp_path / "peers"
    peers.write_text("::ffff:10.0.0.0/104\n2001:db8::/32\n")
    front = {"EDGE_PROXY_PROTOCOL": str(peers), "EDGE_TRUSTED_PROXIES": str(peers), "EDGE_VIEWER": "1", "EDGE_FAIL_OPEN": "1"}
    good, said = accepted({**REQUIRED, **{name: value for (name, value), on in zip(front.items(), flags) if on}})
    assert good, said


@pytest.mark.parametrize("name", ["EDGE_PROXY_PROTOCOL", "EDGE_TRUSTED_PROXIES"])
def test_a_list_of_peers_that_is_not_there_is_noticed(tmp_path, name):
    assert not accepted({**REQUIRED, name: str(tmp_path / "gone")})[0]


@pytest.mark.parametrize("missing", sorted(REQUIRED))
def test_a_missing_variable_is_noticed(missing):
    environment = {**REQUIRED, **FAILURE["open"]}
    del environment[missing]
    assert not accepted(environment)[0]


def test_a_limit_of_header_bytes_is_accepted_without_a_warning():
    good, said = accepted({**REQUIRED, "EDGE_MAX_HEADER_BYTES": "4096"})
    assert good, said


def test_a_name_that_does_not_resolve_does_not_hinder_a_start():
    good, said = accepted({**REQUIRED, "EDGE_UPSTREAM_ADDR": "nobody.invalid:80"})
    assert good, said


@pytest.fixture(scope="module")
def closed(upstream, cert):
    with HAProxy({"EDGE_UPSTREAM_ADDR": f"127.0.0.1:{upstream.port}"}, cert) as h:
        yield h


@pytest.fixture(scope="module")
def opened(upstream, cert):
    with HAProxy({"EDGE_UPSTREAM_ADDR": f"127.0.0.1:{upstream.port}", "EDGE_FAIL_OPEN": "1"}, cert) as h:
        yield h


@pytest.mark.parametrize("protocol", ["h1", "h2", "tls-h1", "tls-h2"])
def test_without_an_agent_a_request_is_refused_recorded_and_printed(closed, upstream, protocol):
    response = fetch(closed, "GET", f"/refused/{protocol}?secret=value", [("Cookie", "secret")], host="edge.test", protocol=protocol)
    assert (response.status, response.get("retry-after")) == (503, "1")
    assert {name: response.get(name) for name in NO_STORE} == NO_STORE
    line = closed.line_of(f"/refused/{protocol}")
    assert (line["edge.decision"], line["http.response.status_code"], line["server.address"]) == ("unavailable", 503, "edge.test")
    assert REQUEST_ID.match(line["request_id"]) and "secret" not in json.dumps(line)
    record = poll(closed.records, "the record")[-1]
    assert len(record) == 15 and "secret" not in " ".join(record)
    assert (record[:3], record[5], record[6], record[8], record[9]) == (["4", "-", "503"], "LR", "false", "plain", "<NOSRV>")
    assert upstream.seen(f"/refused/{protocol}") == []


@pytest.mark.parametrize(
    "data, status",
    [
        (b"NONSENSE\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: a\r\nBad Header: x\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: a\r\n" + b"X: y\r\n" * 102 + b"\r\n", 400),
        (ENDLESS_TARGET, 414),
        (b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", 422),
        (b"GET / HTTP/1.1\r\nHost: a\r\nX: " + b"x" * 62000 + b"\r\n\r\n", 431),
        (b"GET / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 413),
    ],
    ids=["no-http", "bad-name", "too-many", "long-target", "coding", "large", "chunks-in-1.0"],
)
def test_what_is_refused_before_it_is_a_request_is_never_cached_and_printed(closed, data, status):
    n = len(closed.lines())
    with Http1(closed.port) as c:
        c.send(data)
        response = c.receive()
    assert (response.status, response.get("connection")) == (status, "close")
    assert {name: response.get(name) for name in NO_STORE} == NO_STORE
    poll(lambda: len(closed.lines()) == n + 1, "its line")
    assert (closed.lines()[-1]["edge.decision"], closed.lines()[-1]["http.response.status_code"]) == ("bad_request", status)


@pytest.fixture(scope="module")
def unfinished(closed):
    """The answer to a request that never ends; asked first and looked at last, since it takes ten seconds."""
    answers = []

    def ask():
        with Http1(closed.port) as c:
            c.sock.settimeout(60)
            c.send(b"GET /unfinished HTTP/1.1\r\nHost: a\r\n")
            answers.append(c.receive())

    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    yield thread, answers
    thread.join(60)


@pytest.mark.usefixtures("unfinished")
def test_http2_can_not_begin_on_a_connection_in_use(closed):
    with Http1(closed.port) as c:
        c.request("GET", "/before")
        c.send(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
        response = c.receive()
    assert response.status in (400, 405), "400 is 3.2's, 405 is 3.4's"
    assert {name: response.get(name) for name in NO_STORE} == NO_STORE


@pytest.mark.parametrize("cap, headers", [("EDGE_CAP_ORDINARY", []), ("EDGE_CAP_STREAMS", [("Accept", "text/html, Text/Event-Stream")])])
def test_above_a_cap_requests_are_refused_as_overload(cap, headers):
    with HAProxy({cap: "0"}) as haproxy:
        response = fetch(haproxy, "GET", "/over", headers)
        assert (response.status, response.get("retry-after"), response.get("cache-control")) == (503, "1", "no-store")
        assert haproxy.line_of("/over")["edge.decision"] == "overloaded"
        other = [] if headers else [("Accept", "text/event-stream")]
        fetch(haproxy, "GET", "/other", other)
        assert haproxy.line_of("/other")["edge.decision"] == "unavailable", "the caps are apart"


FORGED = [
    *(("X-Edge-Auth-Sub", "a"), ("X_EDGE_Auth_Sub", "b"), ("x-edge_client-ip", "c"), ("Forwarded", "for=d"), ("X-Forwarded-For", "e")),
    *(("X_Forwarded_Host", "f"), ("X-Forwarded-Port", "g"), ("X-Request-ID", "h"), ("X-Request_Id", "i")),
]


@pytest.mark.parametrize("protocol", ["h1", "h2", "tls-h1", "tls-h2"])
def test_open_mode_forwards_without_identity_and_without_anything_forged(opened, protocol):
    headers = [*FORGED, ("X-Edged", "kept"), ("Traceparent", "kept")]
    response = fetch(opened, "POST", f"/open/{protocol}", headers, b"body", [("X-Edge-Auth-Sub", "t")], protocol=protocol)
    assert response.status == 200
    line = opened.line_of(f"/open/{protocol}")
    assert (line["edge.decision"], line["edge.upstream_answered"]) == ("unavailable", True)
    received = response.json()
    assert received["trailers"] == []
    names = re.compile(r"(x[_-])?(edge|forwarded|request)")
    kept = [(n, v) for n, v in received["headers"] if names.match(n) or v == "kept"]
    assert kept == [("x-edged", "kept"), ("traceparent", "kept"), ("x-request-id", line["request_id"])]


@pytest.mark.parametrize("protocol, through", [("h1", None), ("h2", b"bytes for the tunnel")])
def test_open_mode_makes_no_tunnel_through_which_headers_could_be_forged(opened, upstream, protocol, through):
    target = f"tunnel-{protocol}.test:443"
    assert fetch(opened, "CONNECT", target, body=through, host=target, protocol=protocol).status == 400
    assert not upstream.seen(target)
    assert fetch(opened, "GET", "/after-connect", protocol=protocol).status == 200


def test_a_connection_header_cannot_make_the_upstream_drop_headers(opened):
    response = fetch(opened, "GET", "/hop", [("Connection", "x-request-id, te"), ("TE", "trailers")])
    headers = dict(response.json()["headers"])
    assert "connection" not in headers and REQUEST_ID.match(headers["x-request-id"]) and headers["te"] == "trailers"


@pytest.mark.parametrize("length", ["1001", "0001001", "9223372036854775808", "18446744073709551615"])
def test_open_mode_refuses_a_body_above_the_static_limit_before_it_comes(opened, length):
    with Http1(opened.port) as c:
        c.send(f"POST /limit HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n".encode())
        response = c.receive()
    assert (response.status, response.get("cache-control")) == (413, "no-store")


def test_open_mode_takes_a_body_of_the_static_limit(opened):
    assert fetch(opened, "POST", "/limit/kept", body=b"x" * 1000).json()["body_len"] == 1000


@pytest.mark.parametrize("path, status", [("/close", 502), ("/garbage", 502)])
def test_an_upstream_without_an_answer_is_a_502_that_is_never_cached(opened, path, status):
    response = fetch(opened, "GET", f"{path}/alone")
    assert (response.status, response.get("cache-control")) == (status, "no-store")


@pytest.mark.parametrize("status", [500, 502, 503, 504])
def test_an_error_of_the_upstream_passes_untouched(opened, status):
    response = fetch(opened, "GET", f"/status/{status}")
    assert (response.status, response.get("cache-control"), response.get("retry-after")) == (status, None, None)


@pytest.mark.parametrize("addr", ["nobody.invalid:80", None], ids=["no-address", "refused"])
def test_an_unreachable_upstream_is_a_502(addr):
    nobody = Ports()
    try:
        with HAProxy({"EDGE_FAIL_OPEN": "1", "EDGE_UPSTREAM_ADDR": addr or f"127.0.0.1:{nobody.first}"}) as haproxy:
            response = fetch(haproxy, "GET", "/down")
            assert (response.status, response.get("cache-control"), response.get("retry-after")) == (502, "no-store", None)
    finally:
        nobody.close()


def test_an_upstream_that_does_not_accept_is_a_504(cert):
    """A TLS handshake that nobody answers counts as connecting."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        settings = {"EDGE_UPSTREAM_ADDR": f"127.0.0.1:{silent.getsockname()[1]}", "EDGE_UPSTREAM_CONNECT_TIMEOUT_MS": "200"}
        with HAProxy({**settings, "EDGE_FAIL_OPEN": "1", "EDGE_UPSTREAM_TLS": "1", "SSL_CERT_FILE": str(cert)}) as haproxy:
            response = fetch(haproxy, "GET", "/silent")
            assert (response.status, response.get("cache-control")) == (504, "no-store")


@pytest.mark.parametrize("proto", [{}, {"EDGE_UPSTREAM_H1": "1"}, {"EDGE_UPSTREAM_H2": "1"}], ids=["auto", "h1", "h2"])
def test_an_https_upstream_must_prove_the_name_of_the_requests_host(cert, upstream, proto):
    """Another HAProxy, in open mode, is the https upstream."""
    with HAProxy({"EDGE_FAIL_OPEN": "1", "EDGE_UPSTREAM_ADDR": f"127.0.0.1:{upstream.port}"}, cert) as inner:
        settings = {"EDGE_UPSTREAM_ADDR": f"127.0.0.1:{inner.tls_port}", "EDGE_UPSTREAM_TLS": "1", "SSL_CERT_FILE": str(cert)}
        with HAProxy({**settings, **proto, "EDGE_FAIL_OPEN": "1"}) as haproxy:
            for host, status in [("edge.test", 200), ("Edge.TEST.:443", 200), ("other.test", 502), ("127.0.0.1", 502)]:
                response = fetch(haproxy, "GET", "/secure", host=host)
                assert (response.status, response.get("cache-control")) == (status, None if status == 200 else "no-store"), host
                if status == 200:
                    assert dict(response.json()["headers"])["host"] == host
            with Http1(haproxy.port) as c:
                c.send(b"GET /nameless HTTP/1.0\r\n\r\n")
                assert c.receive().status == 502, "a request without a host has no name to check"


class Switching:
    """An upstream that switches to the protocol named in the path, then echoes."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                sock, _ = self.listener.accept()
            except OSError:
                return
            with sock, contextlib.suppress(OSError):
                path = sock.recv(65536).split(b" ")[1]
                sock.sendall(b"HTTP/1.1 101 Switching\r\nConnection: upgrade\r\nUpgrade: " + path.lstrip(b"/") + b"\r\n\r\n")
                sock.sendall(sock.recv(100))


@pytest.mark.parametrize("asked, given, status", [("foo", "foo", 101), ("Foo", "fOO", 101), ("foo", "bar", 502), (None, "foo", 502)])
def test_a_switch_to_another_protocol_than_asked_is_refused(asked, given, status):
    switching = Switching()
    with HAProxy({"EDGE_FAIL_OPEN": "1", "EDGE_UPSTREAM_ADDR": f"127.0.0.1:{switching.port}"}) as haproxy, Http1(haproxy.port) as c:
        response = c.request("GET", f"/{given}", [("Connection", "Upgrade, x-request-id"), ("Upgrade", asked)] if asked else [])
        assert response.status == status
        if status == 101:
            c.send(b"echo")
            assert c.take(4) == b"echo"
    switching.listener.close()


def test_health_says_why_an_edge_is_not_ready(closed):
    assert closed.health("/livez") == (200, "ok")
    status, said = closed.health("/readyz")
    assert status == 503
    assert said.startswith("no agent has passed its check") and "edge-spoa doctor" in said
    closed.command("set server ready_flag/flag state maint")
    assert closed.health("/readyz") == (503, "draining: this edge takes no more requests")
    closed.command("set server ready_flag/flag state ready")
    assert closed.health("/readyz") == (503, said)
    assert closed.health("/other")[0] == 404
    assert [line for line in closed.lines() if line.get("url.path") in ("/livez", "/readyz", "/other")] == []


def test_only_its_owner_may_use_the_stats_socket(closed):
    assert stat.S_IMODE(os.stat(closed.dir / "haproxy.sock").st_mode) == 0o600


def test_a_reload_fails_no_request_and_the_old_process_still_prints_its_own(upstream):
    with HAProxy({"EDGE_FAIL_OPEN": "1", "EDGE_UPSTREAM_ADDR": f"127.0.0.1:{upstream.port}"}) as haproxy:
        old = haproxy.workers()
        with Http1(haproxy.port) as idle, Http1(haproxy.port) as busy:
            assert idle.request("GET", "/reload/before").status == 200
            busy.send(b"GET /delay/1500/reload HTTP/1.1\r\nHost: a\r\n\r\n")
            poll(lambda: upstream.seen("/delay/1500/reload"), "the upstream has it")
            os.kill(haproxy.process.pid, signal.SIGUSR2)
            poll(lambda: haproxy.workers() - old, "a new process")
            answers = []

            def told_to_close():
                answers.append(idle.request("GET", "/reload/idle"))
                return answers[-1].get("connection") == "close"

            poll(told_to_close, "the old process ends its idle connection with an answer")
            assert {response.status for response in answers} == {200}
            assert fetch(haproxy, "GET", "/reload/new").status == 200
            assert busy.receive().status == 200
        poll(lambda: not haproxy.workers() & old, "the old process ends")
        assert haproxy.line_of("/delay/1500/reload")["http.response.status_code"] == 200


def test_an_old_process_prints_the_record_of_what_an_agent_decided_since_its_ring_has_stopped(upstream):
    rec = r"3 0 a 7 would_block - 192.0.2.7 - - - - - - - - - - id GET edge.test - 0 - /delay/1500/\u00fc\"x"
    with HAProxy({"EDGE_UPSTREAM_ADDR": f"127.0.0.1:{upstream.port}"}, mock=True) as haproxy:
        old = haproxy.workers()
        haproxy.agent.answers["/delay/1500/decided"] = {**FORWARD, "txn.rec": rec}
        with Http1(haproxy.port) as c:
            c.send(b"GET /delay/1500/decided HTTP/1.1\r\nHost: a\r\n\r\n")
            poll(lambda: upstream.seen("/delay/1500/decided"), "the upstream has it")
            os.kill(haproxy.process.pid, signal.SIGUSR2)
            poll(lambda: haproxy.workers() - old, "a new process")
            assert c.receive().status == 200
        record = haproxy.late_record_of(rec.split(" ")[-1])
        assert (record[0], record[1], record[2]) == ("4", rec, "200")


def test_requests_with_a_verdict_are_counted_recorded_and_not_printed(upstream):
    with HAProxy({"EDGE_UPSTREAM_ADDR": f"127.0.0.1:{upstream.port}"}, mock=True) as haproxy:
        haproxy.agent.answers["/refused"] = {"txn.status": 403, "txn.rec": "3 0 a 1 block - - - - - - - - - - - - id GET a - 0 - /refused"}
        for i in range(5):
            assert fetch(haproxy, "GET", f"/counted/{i}").status == 200
            assert fetch(haproxy, "GET", "/refused").status == 403
        records = poll(lambda: len(haproxy.records()) == 10 and haproxy.records(), "their records")
        # Two threads can write the same number, and one after the other.
        assert max(int(record[12]) for record in records) in (8, 9)
        assert {int(record[13]) for record in records} == haproxy.workers()
        assert sorted(record[1] for record in records) == sorted([FORWARD["txn.rec"], haproxy.agent.answers["/refused"]["txn.rec"]] * 5)
        assert haproxy.lines() == []


def test_an_abandoned_request_does_not_wait_for_its_upstream(opened, upstream):
    with Http1(opened.port) as c:
        c.send(b"GET /delay/600000/left HTTP/1.1\r\nHost: a\r\n\r\n")
        poll(lambda: upstream.seen("/delay/600000/left"), "the upstream has it")
    assert opened.line_of("/delay/600000/left")["edge.upstream_answered"] is False


def test_a_request_that_does_not_arrive_in_time_is_a_408_that_is_never_cached(unfinished):
    thread, answers = unfinished
    thread.join(60)
    assert (answers[0].status, answers[0].get("connection")) == (408, "close")
    assert {name: answers[0].get(name) for name in NO_STORE} == NO_STORE
