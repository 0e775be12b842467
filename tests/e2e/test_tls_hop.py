"""The hop that tells the first protocol offered: only where it is needed, and otherwise not to be noticed."""

import json
import signal
import socket
import struct
import threading

import pytest

from clients import Http1, client, fetch, render1, tls_context
from edge import Edge, poll
from policies import header_rule, policy
from proxy_header import v1, v2
from raw_tls import RawTls, alpn
from recorder import Recorder
from tls_clients import FACTS, MODES, curl, has_hop, of_hello, s_client, told


@pytest.fixture(scope="module")
def edge(upstream, cert):
    with Edge(FACTS, upstream.url, cert=cert) as e:
        yield e


def test_only_where_ja4_is_computed_is_there_a_hop(edge, upstream, cert):
    assert has_hop(edge)
    mapped = {"CLIENT_IP_SOURCE": "xff", "TRUSTED_PROXIES": "127.0.0.0/8"}
    for settings in ({"EDGE_TLS_FINGERPRINTS": "ja3"}, {"EDGE_TLS_FINGERPRINTS": "false"}, mapped):
        with Edge(policy(), upstream.url, settings, cert) as e:
            assert not has_hop(e) and fetch(e, "GET", "/", [("X-Forwarded-For", "192.0.2.1")], protocol="tls-h2").status == 200


def test_ja3_alone_needs_no_hop_and_ja4_is_unavailable_then(upstream, cert):
    rules = policy(headers=[header_rule("facts", "true", ("X-Ja3", "{{ja3}}"))])
    with Edge(rules, upstream.url, {"EDGE_TLS_FINGERPRINTS": "ja3"}, cert) as e, Recorder(e.tls_port) as recorder:
        bodies = curl(recorder.port), s_client(recorder.port)
        assert [told(body) for body in bodies] == [(of_hello(sent)[0], None, None) for sent in recorder.sent]


@pytest.mark.parametrize("protocol", ["tls-h1", "tls-h2"])
def test_behind_the_hop_the_client_is_still_the_peer(edge, protocol):
    headers = dict(fetch(edge, "GET", "/peer", protocol=protocol).json()["headers"])
    assert (headers["x-edge-client-ip"], headers["x-forwarded-proto"]) == ("127.0.0.1", "https")


@pytest.mark.parametrize("sent", [b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", b"\0" * 100])
def test_what_is_no_hello_is_closed_at_once(edge, sent):
    with socket.create_connection(("127.0.0.1", edge.tls_port), 5) as sock:
        sock.sendall(sent)
        assert sock.recv(100) == b""


def worker_of(edge):
    """The process that answers on the stats socket."""
    return next(line for line in edge.haproxy_command("show info").splitlines() if line.startswith("Pid:"))


@pytest.mark.parametrize("protocol", ["tls-h1", "tls-h2"])
def test_a_reload_resets_no_connection_behind_the_hop(edge, protocol):
    with client(edge, protocol) as c:
        assert c.request("GET", "/before").status == 200
        worker = worker_of(edge)
        edge.signal(signal.SIGUSR2)
        poll(lambda: worker_of(edge) != worker, "a new worker")
        assert c.request("GET", "/after").status == 200
    assert fetch(edge, "GET", "/new", protocol=protocol).status == 200


def test_a_client_that_goes_away_ends_its_connection_behind_the_hop(upstream, cert):
    with Edge(FACTS, upstream.url, cert=cert) as e:  # its own, for after a reload two workers would count

        def open_now():
            now = e.stat("FRONTEND", "scur")
            return int(now["tls"]), int(now["edge"])

        with Http1(e.tls_port, tls=True) as c:
            assert c.request("GET", "/here").status == 200
            assert open_now() == (1, 1)
        poll(lambda: open_now() == (0, 0), "the connection is gone")


@pytest.mark.parametrize("protocol", ["tls-h1", "tls-h2"])
def test_a_drain_lets_requests_behind_the_hop_end(upstream, cert, protocol):
    with Edge(FACTS, upstream.url, cert=cert) as e:
        answers = []
        asking = threading.Thread(target=lambda: answers.append(fetch(e, "GET", "/delay/1500", protocol=protocol).status))
        asking.start()
        poll(lambda: upstream.seen("/delay/1500"), "the upstream is asked")
        e.signal(signal.SIGTERM)
        assert e.wait_exit() == 0
        asking.join()
    with upstream.lock:
        upstream.requests[:] = [r for r in upstream.requests if "/delay/1500" not in r["target"]]
    assert answers == [200]


def test_a_request_whose_client_has_gone_is_given_up_behind_the_hop(edge, upstream):
    with Http1(edge.tls_port, tls=True) as c:
        c.send(b"GET /delay/60000/gone HTTP/1.1\r\nHost: edge.test\r\n\r\n")
        poll(lambda: upstream.seen("/gone"), "the upstream is asked")
    assert edge.record_of("/delay/60000/gone")["edge.decision"] == "allow"


# --- a PROXY header in front of the handshake ---


@pytest.fixture(scope="module", params=MODES)
def balanced(request, upstream, cert):
    with Edge(policy(), upstream.url, {"EDGE_PROXY_PROTOCOL": "127.0.0.0/8", **MODES[request.param]}, cert) as e:
        yield e


FORGED = b"\xe0\x00\x04666f"  # the TLV in which the hop tells the first protocol


@pytest.mark.parametrize("header", [v1("192.0.2.7"), v2("192.0.2.7", extra=FORGED)], ids=["v1", "v2"])
def test_the_client_is_whom_the_proxy_header_names_and_its_facts_are_its_own(balanced, header):
    with RawTls(balanced.tls_port, extensions=alpn(b"http/1.1")) as c:
        c.sock.sendall(header)
        body = c.handshake().get("/proxied")
        ja4 = of_hello(c.records)[1]
    headers = dict(json.loads(body)["headers"])
    assert headers["x-edge-client-ip"] == "192.0.2.7"
    assert told(body)[2] == (ja4 if has_hop(balanced) else None)


def test_without_the_proxy_header_there_is_no_handshake(balanced):
    with RawTls(balanced.tls_port) as c, pytest.raises((AssertionError, ConnectionResetError)):
        c.handshake()


@pytest.mark.parametrize("mode", MODES)
def test_a_proxy_header_of_a_foreign_peer_is_not_listened_to(upstream, cert, mode):
    with Edge(policy(), upstream.url, {"EDGE_PROXY_PROTOCOL": "192.0.2.1", **MODES[mode]}, cert) as e:
        with pytest.raises((AssertionError, ConnectionResetError, BrokenPipeError)), RawTls(e.tls_port) as c:
            c.sock.sendall(b"PROXY TCP4 192.0.2.7 192.0.2.1 5000 443\r\n")
            c.handshake()


def through_process(edge, pid):
    """A TLS connection to the socket behind the hop, as the hop of that process makes it."""
    said = str(pid).encode()
    sock = socket.socket(socket.AF_UNIX)
    sock.settimeout(20)
    sock.connect(str(edge.run_dir / "tls.sock"))
    sock.sendall(v2("192.0.2.7", extra=b"\xe1" + struct.pack("!H", len(said)) + said))
    return tls_context("http/1.1").wrap_socket(sock, server_hostname="edge.test")


@pytest.mark.parametrize("ends", [True, False], ids=["other", "same"])
def test_a_connection_that_came_through_another_process_ends_with_its_response(edge, ends):
    """It would keep that process alive for as long as its client comes back: two share the socket while HAProxy reloads."""
    (own,) = edge.haproxy_pids()[1]
    with through_process(edge, own + ends) as sock:
        sock.sendall(render1("GET", "/passing"))
        head = b""
        while b"\r\n\r\n" not in head:
            head += sock.recv(65536)
    assert head.startswith(b"HTTP/1.1 200") and (b"connection: close" in head.partition(b"\r\n\r\n")[0]) == ends
