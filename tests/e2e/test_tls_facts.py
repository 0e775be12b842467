"""Facts of our own TLS handshake: what rules and the upstream are told of a client's hello and certificate, against the hello itself."""

import hashlib
import json
import shutil
import signal
import socket
import ssl
import subprocess
import threading

import pytest

import fingerprints
from certs import make_client_certs
from clients import Http1, Http2, client, fetch
from edge import Edge, poll
from policies import header_rule, policy
from raw_tls import RawTls, alpn, extension
from recorder import Recorder

POLICY = policy(headers=[header_rule("facts", "true", ("X-Ja3", "{{ja3}}"), ("X-Ja4", "{{ja4}}"))])
CURL = ["curl", "--silent", "--show-error", "--insecure", "--max-time", "15"]
NO_CHROMIUM = pytest.mark.skipif(not shutil.which("chromium"), reason="the command `chromium` is missing: apt-get install chromium")


@pytest.fixture(scope="module")
def edge(upstream, cert):
    with Edge(POLICY, upstream.url, cert=cert) as e:
        yield e


@pytest.fixture
def recorder(edge):
    with Recorder(edge.tls_port) as r:
        yield r


def told(body):
    """(JA3 by a rule, JA4 by a rule, X-Edge-TLS-JA4) of a request as the upstream saw it; None where there is none."""
    headers = [(name.lower(), value) for name, value in json.loads(body)["headers"]]
    found = [[value for name, value in headers if name == wanted] for wanted in ("x-ja3", "x-ja4", "x-edge-tls-ja4")]
    assert all(len(values) <= 1 for values in found), found
    return tuple(values[0] if values and values[0] else None for values in found)


def of_hello(sent):
    hello = fingerprints.Hello(bytes(sent))
    return fingerprints.ja3(hello), fingerprints.ja4(hello), fingerprints.ja4(hello)


def curl(port, *options):
    done = subprocess.run([*CURL, *options, f"https://127.0.0.1:{port}/curl"], capture_output=True, check=True)
    return done.stdout


def s_client(port, *options):
    """The body of an HTTP/1 answer through `openssl s_client`."""
    request = b"GET /openssl HTTP/1.1\r\nHost: edge.test\r\nConnection: close\r\n\r\n"
    command = ["openssl", "s_client", "-quiet", "-connect", f"127.0.0.1:{port}", *options]
    done = subprocess.run(command, input=request, capture_output=True, check=False, timeout=30)
    assert b"\r\n\r\n" in done.stdout, done.stderr.decode()
    return done.stdout.partition(b"\r\n\r\n")[2]


# --- fingerprints ---


@pytest.mark.parametrize("options", [["--http1.1"], ["--http2"], ["--http2", "--tls-max", "1.2"], ["--http1.1", "--no-alpn"], ["--http1.0"]], ids=" ".join)
def test_curls_fingerprints_are_those_of_its_hello(recorder, options):
    body = curl(recorder.port, *options)
    assert told(body) == of_hello(recorder.sent[0])


@pytest.mark.parametrize(
    "options",
    [
        [],
        ["-tls1_3"],
        ["-tls1_2"],
        ["-noservername"],
        ["-alpn", "http/1.1"],
        ["-alpn", "foo/9,http/1.1"],
        ["-alpn", "http/1.1,http/1.0", "-tls1_2"],
        ["-sigalgs", "ECDSA+SHA256:RSA-PSS+SHA256", "-curves", "P-384:X25519"],
        ["-groups", "ffdhe4096:X25519"],
    ],
    ids=" ".join,
)
def test_openssls_fingerprints_are_those_of_its_first_hello(recorder, options):
    body = s_client(recorder.port, *options)
    assert told(body) == of_hello(recorder.sent[0])


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_a_resumed_session_has_the_fingerprints_of_its_own_hello(recorder, version):
    context = client_context(version)
    context.set_alpn_protocols(["http/1.1"])
    first, session, _ = get_with(context, recorder.port)
    second, _, resumed = get_with(context, recorder.port, session)
    assert resumed
    assert [told(first), told(second)] == [of_hello(recorder.sent[0]), of_hello(recorder.sent[1])]


@pytest.mark.parametrize("protocol", [Http1, Http2])
def test_every_request_of_a_connection_has_its_fingerprints(recorder, protocol):
    with protocol(recorder.port, tls=True) as c:
        bodies = [c.request("GET", f"/again/{i}").body for i in range(3)]
    assert {told(body) for body in bodies} == {of_hello(recorder.sent[0])}


def test_ja4_has_the_first_protocol_offered_not_the_one_agreed_upon(recorder, monkeypatch):
    real = ssl.SSLContext.set_alpn_protocols
    monkeypatch.setattr(ssl.SSLContext, "set_alpn_protocols", lambda context, unused: real(context, ["http/1.1", "h2"]))
    with Http2(recorder.port, tls=True) as c:
        ja3, by_rule, managed = told(c.request("GET", "/offered").body)
    assert (ja3, by_rule, managed) == of_hello(recorder.sent[0])
    assert by_rule[8:10] == "h1"


@NO_CHROMIUM
def test_chromiums_fingerprints_are_those_of_its_hello(recorder, upstream, tmp_path):
    command = ["chromium", "--headless=new", "--no-sandbox", "--disable-gpu", "--ignore-certificate-errors", f"--user-data-dir={tmp_path}"]
    subprocess.run([*command, "--dump-dom", f"https://127.0.0.1:{recorder.port}/chromium"], capture_output=True, timeout=120, check=False)
    requests = poll(lambda: upstream.seen("/chromium"), "Chromium asks")
    sent = [of_hello(data) for data in recorder.sent if data]
    assert told(json.dumps(requests[0])) in sent
    assert all(ja4.startswith("t13i") and ja4[8:10] == "h2" for _, ja4, _ in sent)


GREASE = (0x0A0A, 0xFAFA)


@pytest.mark.parametrize("name", [b"h2", b"a", b"\xab", b"\xab\xcd", b"0\xab", b"a,b", b"\0", b"x" * 255], ids=repr)
def test_the_first_protocol_may_be_any_bytes(recorder, name):
    with RawTls(recorder.port, ciphers=GREASE, extensions=extension(0x2A2A) + alpn(name, b"http/1.1")) as c:
        if name == b"h2":
            c.handshake()
            return  # agreed upon, so that HTTP/1 can't be asked
        body = c.handshake().get("/raw")
    assert told(body) == of_hello(recorder.sent[0])


def test_a_hello_byte_by_byte_has_its_fingerprints(edge):
    with RawTls(edge.tls_port, extensions=alpn(b"http/1.1")) as c:
        records, c.records = c.records, b""
        for i in range(len(records)):
            c.sock.sendall(records[i : i + 1])
        body = c.handshake().get("/slow")
    assert told(body) == of_hello(records)


def test_a_hello_in_several_records_has_no_ja4_rather_than_a_wrong_one(recorder):
    with RawTls(recorder.port, extensions=alpn(b"http/1.1"), pieces=[60]) as c:
        body = c.handshake().get("/records")
    assert told(body) == (of_hello(recorder.sent[0])[0], None, None)


@pytest.mark.parametrize("n", [100, 430, 505, 509, 510, 511, 512, 513, 600, 3000])
def test_a_hello_beyond_the_capture_has_no_fingerprint_rather_than_that_of_a_part(recorder, n):
    with RawTls(recorder.port, ciphers=range(0x2000, 0x2000 + n), extensions=alpn(b"http/1.1")) as c:
        seen = told(c.handshake().get("/large"))
    whole = of_hello(recorder.sent[0])
    assert seen == whole if n <= 430 else seen in (whole, (None, None, None))
    assert seen == (None, None, None) or n < 512


@pytest.mark.parametrize("split", range(0, 16))
def test_a_capture_that_is_full_in_any_list_is_noticed(recorder, split):
    with RawTls(
        recorder.port,
        ciphers=range(0x2000, 0x2000 + 400),
        extensions=b"".join(extension(0x3000 + i) for i in range(60)) + extension(11, b"\x01\0") + alpn(b"http/1.1"),
        groups=[29, *range(0x4000, 0x4000 + 10 + split // 2)],
        signatures=[0x0403, 0x0804, *range(0x5000, 0x5000 + 16 + (split + 1) // 2)],
    ) as c:
        seen = told(c.handshake().get("/full"))
    assert seen in (of_hello(recorder.sent[0]), (None, None, None))


# --- client certificates ---


@pytest.fixture(scope="module")
def clients(tmp_path_factory):
    return make_client_certs(tmp_path_factory.mktemp("clients"))


def client_context(version=None, pem=None):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    if version:
        context.minimum_version = context.maximum_version = version
    if pem:
        context.load_cert_chain(pem)
    return context


def get_with(context, port, session=None):
    """One HTTP/1 request on a connection of its own: (body, session, whether an older session was resumed)."""
    sock = socket.create_connection(("127.0.0.1", port), 15)
    with context.wrap_socket(sock, server_hostname="edge.test", session=session) as secure:
        secure.sendall(b"GET /python HTTP/1.1\r\nHost: edge.test\r\nConnection: close\r\n\r\n")
        answer = b"".join(iter(lambda: secure.recv(65536), b""))
        told_by_ssl = secure.session, secure.session_reused
    assert answer.startswith(b"HTTP/1.1 200"), answer[:200]
    return answer.partition(b"\r\n\r\n")[2], *told_by_ssl


CERT_FIELDS = ("present", "verified", "subject", "issuer", "serial", "sha256")
DN = "CN=Zo\\C3\\AB  client,O=Acme\\, Inc. \\\"x\\\"+OU=a,C=AT"


def facts_of(folder, name):
    """What rules are to see of a certificate, as they write it."""
    der = ssl.PEM_cert_to_DER_cert((folder / f"{name}.crt").read_text())
    digest = hashlib.sha256(der).hexdigest()
    if name == "self":
        serial = subprocess.run(["openssl", "x509", "-noout", "-serial", "-in", folder / "self.crt"], capture_output=True, check=True, text=True)
        return {"subject": "CN=self", "issuer": "CN=self", "serial": serial.stdout.strip()[7:], "sha256": digest}
    return {"subject": DN, "issuer": "CN=Clients", "serial": "A1B2C3D4", "sha256": digest}


def quoted(text):
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def cert_policy(folder):
    """A header for each fact of each certificate that holds: X-<field>: names of the certificates with that value."""
    rules = [header_rule(f"is-{field}", f"tls.client.cert.{field} eq true", (f"X-Is-{field}", "true")) for field in CERT_FIELDS[:2]]
    for name in ("good", "self", "stranger", "expired"):
        for field, value in facts_of(folder, name).items():
            rules.append(header_rule(f"{name}-{field}", f"tls.client.cert.{field} eq {quoted(value)}", (f"X-{name}-{field}", "is")))
    rules += [header_rule(f"no-{field}", f'tls.client.cert.{field} eq ""', (f"X-No-{field}", "is")) for field in CERT_FIELDS[2:]]
    return policy(headers=rules)


def cert_facts(body):
    """Names of the headers that cert_policy's rules set."""
    names = {name.lower() for name, _ in json.loads(body)["headers"]}
    prefixes = ("x-is-", "x-no-", "x-good-", "x-self-", "x-stranger-", "x-expired-")
    return {name for name in names if name.startswith(prefixes)}


def wanted(name, verified):
    return {"x-is-present", *(["x-is-verified"] if verified else []), *(f"x-{name}-{field}" for field in CERT_FIELDS[2:])}


NONE = {f"x-no-{field}" for field in CERT_FIELDS[2:]}
MODES = {"direct": {"EDGE_TLS_FINGERPRINTS": "false"}, "hop": {}}


@pytest.fixture(scope="module", params=MODES)
def optional(request, upstream, cert, clients):
    with Edge(cert_policy(clients), upstream.url, {"EDGE_TLS_CLIENT_CA": clients / "ca.crt", **MODES[request.param]}, cert) as e:
        yield e


@pytest.fixture(scope="module", params=MODES)
def required(request, upstream, cert, clients):
    settings = {"EDGE_TLS_CLIENT_CA": clients / "ca.crt", "EDGE_TLS_CLIENT_AUTH": "required", **MODES[request.param]}
    with Edge(cert_policy(clients), upstream.url, settings, cert) as e:
        yield e


def only_its_own(facts, name):
    """Certificates of one subject and issuer share those facts."""
    return {fact for fact in facts if fact.startswith(("x-is-", "x-no-", f"x-{name}-"))}


@pytest.mark.parametrize("http", ["--http1.1", "--http2"])
@pytest.mark.parametrize("name, verified", [("good", True), ("self", False), ("stranger", False), ("expired", False)])
def test_rules_see_a_certificate_and_whether_it_is_verified(optional, clients, name, verified, http):
    body = curl(optional.tls_port, http, "--cert", clients / f"{name}.pem")
    assert only_its_own(cert_facts(body), name) == wanted(name, verified)


@pytest.mark.parametrize("protocol", ["tls-h1", "tls-h2", "h1", "h2"])
def test_without_a_certificate_there_is_nothing_to_see(optional, protocol):
    assert cert_facts(fetch(optional, "GET", "/none", protocol=protocol).body) == NONE


@pytest.mark.parametrize("name, verified", [("good", True), ("self", False)])
@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_a_resumed_session_keeps_its_certificate(optional, clients, version, name, verified):
    context = client_context(version, clients / f"{name}.pem")
    first, session, _ = get_with(context, optional.tls_port)
    second, _, resumed = get_with(context, optional.tls_port, session)
    assert resumed and [only_its_own(cert_facts(body), name) for body in (first, second)] == [wanted(name, verified)] * 2


def test_every_request_of_a_connection_has_its_certificate(optional, clients):
    done = curl(optional.tls_port, "--cert", clients / "good.pem", f"https://127.0.0.1:{optional.tls_port}/second")
    first, second = done.replace(b"}{", b"}\n{").splitlines()
    assert only_its_own(cert_facts(first), "good") == only_its_own(cert_facts(second), "good") == wanted("good", True)


@pytest.mark.parametrize("http", ["--http1.1", "--http2"])
def test_where_certificates_are_required_a_verified_one_is_let_in(required, clients, http):
    assert only_its_own(cert_facts(curl(required.tls_port, http, "--cert", clients / "good.pem")), "good") == wanted("good", True)


@pytest.mark.parametrize("name", ["self", "stranger", "expired", None])
@pytest.mark.parametrize("tls", ["1.2", "1.3"])
def test_where_certificates_are_required_nothing_else_gets_through_the_handshake(required, upstream, clients, name, tls):
    """Security: a request without a verified certificate never exists."""
    before = len(upstream.requests)
    with pytest.raises(subprocess.CalledProcessError):
        curl(required.tls_port, "--tls-max", tls, *(["--cert", clients / f"{name}.pem"] if name else []))
    assert len(upstream.requests) == before


# --- the hop that tells the first protocol offered ---


def has_hop(edge):
    return (edge.run_dir / "tls.sock").exists()


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


@pytest.mark.parametrize("protocol", ["tls-h1", "tls-h2"])
def test_a_reload_resets_no_connection_behind_the_hop(edge, protocol):
    with client(edge, protocol) as c:
        assert c.request("GET", "/before").status == 200
        workers = edge.haproxy_pids()[1]
        edge.signal(signal.SIGUSR2)
        poll(lambda: set(edge.haproxy_pids()[1]) - set(workers), "a new worker")
        assert c.request("GET", "/after").status == 200
    assert fetch(edge, "GET", "/new", protocol=protocol).status == 200


def test_a_client_that_goes_away_ends_its_connection_behind_the_hop(edge):
    def open_now():
        rows = [line.split(",") for line in edge.haproxy_command("show stat").splitlines()]
        return {row[0]: int(row[4]) for row in rows if row[1:2] == ["FRONTEND"]}

    poll(lambda: open_now()["tls"] == 0, "earlier connections are gone")
    with Http1(edge.tls_port, tls=True) as c:
        assert c.request("GET", "/here").status == 200
        assert open_now()["tls"] == 1
    poll(lambda: open_now()["tls"] == 0, "the connection is gone")


@pytest.mark.parametrize("protocol", ["tls-h1", "tls-h2"])
def test_a_drain_lets_requests_behind_the_hop_end(upstream, cert, protocol):
    with Edge(POLICY, upstream.url, cert=cert) as e:
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


def v2(source, destination):
    addresses = socket.inet_aton(source) + socket.inet_aton(destination) + (5000).to_bytes(2, "big") + (443).to_bytes(2, "big")
    forged = b"\xe0\x00\x04666f"  # the TLV in which the hop tells the first protocol
    return b"\r\n\r\n\0\r\nQUIT\n\x21\x11" + (len(addresses) + len(forged)).to_bytes(2, "big") + addresses + forged


@pytest.mark.parametrize("header", [b"PROXY TCP4 192.0.2.7 192.0.2.1 5000 443\r\n", v2("192.0.2.7", "192.0.2.1")], ids=["v1", "v2"])
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
