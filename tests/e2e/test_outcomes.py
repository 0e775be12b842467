"""What the access log says of a request whose upstream gave no answer, or only a part of one: the decision, the kind of error, and why."""

import contextlib
import os
import re
import signal
import socket
import struct
import threading
from pathlib import Path

import pytest

from authority import DAY, Authority
from clients import Closed, StreamReset, client, fetch, render1
from edge import ROOT, Edge, poll
from faulty_upstream import FaultyUpstream, TlsUpstream
from haproxy_alone import HAProxy
from mock_agent import FORWARD
from policies import config_rule, policy, under
from test_upstream_faults import kept
from upstream import answer
from websocket import new_key, request_headers

PROTOCOLS = pytest.mark.parametrize("protocol", ["h1", "h2"])
POLICY = policy(version=5, config=[config_rule("hasty", under("/hasty"), upstream_timeout="1s"), config_rule("seen", under("/close/seen"), block="log")])
ROW = re.compile(r'^UPSTREAM_CAUSE_ROW\(\w+, "([^"]+)", (\w+), "([^"]+)"\)', re.M)
CAUSES = {name: (kind.lower(), text) for name, kind, text in ROW.findall((ROOT / "schemas/upstream_causes.def").read_text())}
DECISIONS = {"timeout": "upstream_timeout", "tls": "upstream_tls"}
SSE = ("Accept", "text/event-stream")


def check_line(line, status, cause):
    kind, text = CAUSES[cause]
    assert (line["edge.upstream_error_kind"], line["edge.upstream_error"]) == (kind, text)
    assert (line["edge.decision"], line["http.response.status_code"]) == (DECISIONS.get(kind, "upstream_error"), status)
    assert line["edge.upstream_answered"] is False


def reset(sock):
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


class Upstream(FaultyUpstream):
    """Beside its parents' paths: /hasty never answers, /switch/<what> switches to that, /odd/<status> answers with it, /interim closes behind a 103,
    /broken resets in the middle of its answer, /endless never ends it, /held closes without an answer once `released` is set."""

    def __init__(self):
        self.released = threading.Event()
        super().__init__()

    def respond(self, sock, request):
        verb, _, rest = request["target"].lstrip("/").partition("/")
        if verb == "hasty":
            return self.stopping.wait(30)
        if verb == "held":
            self.released.wait(30)
            return False
        if verb == "switch":
            sock.sendall(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: %s\r\n\r\n" % rest.split("/")[0].encode())
            return False
        if verb == "odd":
            sock.sendall(answer(int(rest.split("/")[0]), b"odd"))
            return True
        if verb == "interim":
            sock.sendall(b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n")
            return False
        if verb in ("broken", "endless"):
            sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nhalf")
            if verb == "endless":
                return self.stopping.wait(30)
            reset(sock)
            return False
        return super().respond(sock, request)


@pytest.fixture(scope="module")
def upstream():
    with Upstream() as u:
        yield u


@pytest.fixture(scope="module")
def edge(upstream):
    with Edge(POLICY, upstream.url, settings={"EDGE_UPSTREAM_CONNECT_TIMEOUT": "300ms"}) as e:
        yield e


def afresh(edge, upstream, target, protocol, **kwargs):
    """One request that finds no kept connection to the upstream."""
    upstream.end_kept()
    poll(lambda: kept(edge) == 0, "HAProxy has noticed")
    return fetch(edge, "GET", target, protocol=protocol, **kwargs).status


@PROTOCOLS
@pytest.mark.parametrize(
    "path, status, cause",
    [
        ("/close", 502, "reset"),
        ("/reset", 502, "reset"),
        ("/interim", 502, "reset"),
        ("/garbage", 502, "other.invalid"),
        ("/large", 502, "other.invalid"),
        ("/hasty", 504, "timeout.headers"),
    ],
)
def test_an_upstream_that_gives_no_answer_is_an_error_of_its_kind_in_the_line(edge, upstream, path, status, cause, protocol):
    target = f"{path}/{protocol}"
    assert afresh(edge, upstream, target, protocol) == status
    check_line(edge.record_of(target), status, cause)


@PROTOCOLS
def test_a_refused_connection_is_an_error_of_its_kind_in_the_line(edge, upstream, protocol):
    target = f"/refused/{protocol}"
    with upstream.refusing():
        assert afresh(edge, upstream, target, protocol) == 502
    check_line(edge.record_of(target), 502, "refused")


def test_a_connection_that_does_not_come_in_time_is_an_error_of_its_kind_in_the_line(edge, upstream):
    with upstream.blackholed():
        assert afresh(edge, upstream, "/blackhole/h1", "h1") == 504
    check_line(edge.record_of("/blackhole/h1"), 504, "timeout.connect")


def test_a_connect_timeout_without_an_answer_has_the_line_of_one_that_was_answered(edge, upstream):
    """HAProxy resets the stream, since an HTTP/2 client knows from that that it may ask again. Who counts errors must not miss these."""
    with upstream.blackholed(), pytest.raises(StreamReset, match="error 7"):
        afresh(edge, upstream, "/blackhole/h2", "h2")
    check_line(edge.record_of("/blackhole/h2"), 504, "timeout.silent")


@pytest.mark.parametrize("protocol", ["h1", "h2"])
def test_a_name_without_an_address_is_an_error_of_its_kind_in_the_line(protocol):
    with Edge(POLICY, "http://nothing.invalid:80") as e:
        assert fetch(e, "GET", "/nameless", protocol=protocol).status == 502
        check_line(e.record_of("/nameless"), 502, "dns")


def test_a_switch_to_another_protocol_is_an_error_of_its_kind_in_the_line(edge):
    with client(edge) as c:
        assert c.request("GET", "/switch/irc", request_headers(new_key())).status == 502
    check_line(edge.record_of("/switch/irc"), 502, "other.switched")


@PROTOCOLS
def test_an_upstreams_error_goes_before_a_block_that_only_logs(edge, upstream, protocol):
    target = f"/close/seen/{protocol}"
    assert afresh(edge, upstream, target, protocol) == 502
    line = edge.record_of(target)
    check_line(line, 502, "reset")
    assert line["edge.config_rules"] == ["seen"]


# --- TLS ---


class Tls(TlsUpstream):
    """handshake: what it does in the place of one, given a socket from which the client's hello was read."""

    handshake = None

    @contextlib.contextmanager
    def doing(self, handshake):
        self.handshake = handshake
        try:
            yield
        finally:
            self.handshake = None

    def serve(self, sock):
        if self.handshake is None:
            super().serve(sock)
            return
        with sock:
            sock.recv(65536)
            self.handshake(sock)


@pytest.fixture(scope="module")
def secure(authority):
    with Tls(authority.issue("edge.test")) as u:
        yield u


@pytest.fixture(scope="module")
def secure_edge(secure, authority):
    with Edge(POLICY, secure.url, settings={"SSL_CERT_FILE": authority.pem}) as e:
        yield e


@pytest.fixture
def hurried_edge(secure, authority):
    """Of its own: on a busy machine an upstream may well take so long for a handshake that it does not mean to leave unfinished."""
    settings = {"SSL_CERT_FILE": authority.pem, "EDGE_UPSTREAM_CONNECT_TIMEOUT": "300ms"}
    with Edge(POLICY, secure.url, settings=settings) as e:
        yield e


@pytest.fixture(scope="module")
def certificates(authority, tmp_path_factory):
    other = Authority(tmp_path_factory.mktemp("other"), "Another Authority")
    return {
        "expired": authority.issue("edge.test", valid=-DAY),
        "of another authority": other.issue("edge.test"),
        "for another name": authority.issue("another.test"),
        "none at all": None,
    }


@PROTOCOLS
@pytest.mark.parametrize(
    "which, cause",
    [("expired", "tls.certificate"), ("of another authority", "tls.certificate"), ("for another name", "tls.name"), ("none at all", "tls")],
)
def test_a_certificate_that_proves_nothing_is_an_error_of_its_kind_in_the_line(secure_edge, secure, certificates, which, cause, protocol):
    target = f"/certificate/{which.replace(' ', '-')}/{protocol}"
    with secure.using(certificates[which]):
        assert afresh(secure_edge, secure, target, protocol) == 502
    check_line(secure_edge.record_of(target), 502, cause)


@PROTOCOLS
def test_a_host_that_no_certificate_can_prove_is_an_error_of_its_kind_in_the_line(secure_edge, secure, protocol):
    target = f"/literal/{protocol}"
    assert afresh(secure_edge, secure, target, protocol, host="127.0.0.1") == 502
    check_line(secure_edge.record_of(target), 502, "tls.host")


@PROTOCOLS
@pytest.mark.parametrize(
    "name, handshake, cause",
    [
        ("closed", lambda sock: None, "tls.closed"),
        ("reset", reset, "tls.closed"),
        ("alert", lambda sock: sock.sendall(b"\x15\x03\x03\x00\x02\x02\x28"), "tls.alert"),
    ],
)
def test_a_handshake_that_fails_is_an_error_of_its_kind_in_the_line(secure_edge, secure, name, handshake, cause, protocol):
    """Many times over: HAProxy learns of a reset now by its read, now before it, and has another word for each."""
    for n in range(30):
        target = f"/handshake/{name}/{protocol}/{n}"
        with secure.doing(handshake):
            assert afresh(secure_edge, secure, target, protocol) == 502
        check_line(secure_edge.record_of(target), 502, cause)


def test_a_handshake_that_does_not_end_in_time_is_told_from_a_connection_that_does_not_come(hurried_edge, secure):
    done = threading.Event()
    with secure.doing(lambda sock: done.wait(15)):
        assert afresh(hurried_edge, secure, "/handshake/silent", "h1") == 504
        done.set()
    check_line(hurried_edge.record_of("/handshake/silent"), 504, "timeout.tls")


@PROTOCOLS
def test_a_refused_connection_is_no_failure_of_tls(secure_edge, secure, protocol):
    """HAProxy 3.2 gives both the same number."""
    target = f"/secure/refused/{protocol}"
    with secure.refusing():
        assert afresh(secure_edge, secure, target, protocol) == 502
    check_line(secure_edge.record_of(target), 502, "refused")


# --- no upstream errors ---


def check_answered(line, status, decision="allow"):
    assert (line["http.response.status_code"], line["edge.decision"], line["edge.upstream_answered"]) == (status, decision, True)
    assert "edge.upstream_error" not in line and "edge.upstream_error_kind" not in line


@PROTOCOLS
@pytest.mark.parametrize("status", [500, 502, 503, 504, 600, 999])
def test_the_upstreams_own_status_is_an_answer_whatever_it_is(edge, status, protocol):
    target = f"/odd/{status}/{protocol}"
    assert fetch(edge, "GET", target, protocol=protocol).status == status
    check_answered(edge.record_of(target), status)


@PROTOCOLS
def test_an_answer_that_breaks_off_was_an_answer(edge, protocol):
    target = f"/broken/{protocol}"
    with pytest.raises((Closed, StreamReset)):
        fetch(edge, "GET", target, protocol=protocol)
    check_answered(edge.record_of(target), 200)


def leave(edge, protocol, target, ready):
    """A client that asks, and resets its connection once ready(it) has returned."""
    with client(edge, protocol) as c:
        if protocol == "h1":
            c.send(render1("GET", target))
        else:
            c.send_request("GET", target)
        ready(c)
        reset(c.sock)


@PROTOCOLS
def test_a_client_that_leaves_before_the_answer_is_no_error_of_the_upstream(edge, upstream, protocol):
    target = f"/delay/15000/left/{protocol}"
    leave(edge, protocol, target, lambda c: poll(lambda: upstream.seen(target), "the upstream has it"))
    line = edge.record_of(target)
    assert (line["http.response.status_code"], line["edge.decision"], line["edge.upstream_answered"]) == (0, "allow", False)
    assert "edge.upstream_error" not in line


@PROTOCOLS
def test_a_client_that_leaves_in_the_answer_leaves_its_status(edge, protocol):
    target = f"/endless/{protocol}"
    leave(edge, protocol, target, lambda c: c.sock.recv(65536) if protocol == "h1" else poll(lambda: b"half" in c.sock.recv(65536), "its beginning"))
    check_answered(edge.record_of(target), 200)


@PROTOCOLS
def test_a_streams_life_is_no_latency(edge, protocol):
    """/stream/30 has its headers at once, and then goes on for more than half a second."""
    target = f"/stream/30/{protocol}"
    assert fetch(edge, "GET", target, [SSE], protocol=protocol).status == 200
    line = edge.record_of(target)
    check_answered(line, 200)
    assert line["duration_ms"] - line["edge.latency_ms"] >= 500, "what the upstream waited behind its headers"


# --- HAProxy's own lines ---


@PROTOCOLS
@pytest.mark.parametrize("path, cause", [("/close", "reset"), ("/garbage", "other.invalid"), ("/refused", "refused")])
def test_a_request_that_nobody_decided_has_its_upstreams_error_in_haproxys_line(upstream, path, cause, protocol):
    """Open mode, and no agent."""
    target = f"{path}/undecided/{protocol}"
    with HAProxy({"EDGE_UPSTREAM_ADDR": f"127.0.0.1:{upstream.port}", "EDGE_FAIL_OPEN": "1"}) as haproxy:
        with upstream.refusing() if path == "/refused" else contextlib.nullcontext():
            assert fetch(haproxy, "GET", target, protocol=protocol).status == 502
        check_own_line(haproxy.line_of(target), 502, cause)


def listens(pid, port):
    """Whether a process has the listening socket of a port of 127.0.0.1; one that is stopping has given it up."""
    rows = [row.split() for row in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    sockets = {f"socket:[{row[9]}]" for row in rows if row[1] == f"0100007F:{port:04X}" and row[3] == "0A"}
    return any(os.readlink(fd) in sockets for fd in Path(f"/proc/{pid}/fd").iterdir())


@PROTOCOLS
def test_a_request_that_ends_in_a_process_that_is_stopping_has_its_upstreams_error_in_its_record(upstream, protocol):
    target = f"/held/{protocol}"
    with HAProxy({"EDGE_UPSTREAM_ADDR": f"127.0.0.1:{upstream.port}"}, mock=True) as haproxy:
        upstream.released.clear()
        haproxy.agent.answers[target] = {**FORWARD, "txn.rec": FORWARD["txn.rec"] + target[1:]}
        (old,) = haproxy.workers()
        assert listens(old, haproxy.port)
        with client(haproxy, protocol) as c:
            if protocol == "h1":
                c.send(render1("GET", target))
            else:
                stream = c.send_request("GET", target)
            poll(lambda: upstream.seen(target), "the upstream has it")
            haproxy.process.send_signal(signal.SIGUSR2)
            poll(lambda: not listens(old, haproxy.port), "the process is stopping")
            upstream.released.set()
            assert (c.receive() if protocol == "h1" else c.receive(stream)).status == 502
        record = haproxy.late_record_of(haproxy.agent.answers[target]["txn.rec"].split(" ")[-1])
        assert (record[2], record[6], record[7]) == ("502", "false", "reset")


def check_own_line(line, status, cause):
    """HAProxy gives the cause's name for its text."""
    kind = CAUSES[cause][0]
    assert (line["edge.upstream_error"], line["edge.upstream_error_kind"]) == (cause, kind)
    assert (line["edge.decision"], line["http.response.status_code"]) == (DECISIONS.get(kind, "upstream_error"), status)
    assert line["edge.upstream_answered"] is False


def test_a_handshake_that_fails_is_a_record_and_a_line(cert, upstream):
    """Else the agents would take HAProxy's sentence about it for a record that is broken."""
    with HAProxy({"EDGE_UPSTREAM_ADDR": f"127.0.0.1:{upstream.port}"}, cert) as haproxy:
        with socket.create_connection(("127.0.0.1", haproxy.tls_port)) as sock:
            sock.sendall(b"GET / HTTP/1.1\r\n\r\n")
            record = poll(haproxy.records, "a record")[0]
        assert (len(record), record[0], record[1], record[2], record[14]) == (15, "4", "-", "0", "-")
        line = poll(haproxy.lines, "a line")[0]
        assert (line["edge.decision"], line["http.response.status_code"]) == ("bad_request", 0)
