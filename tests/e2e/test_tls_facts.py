"""Fingerprints of our own TLS handshakes: what rules and the upstream are told, against the hello that the client really sent."""

import json
import shutil
import ssl
import subprocess

import pytest

from clients import Http1, Http2, tls_context
from edge import Edge, poll
from raw_tls import RawTls, alpn, extension
from recorder import Recorder
from tls_clients import FACTS, curl, get_with, of_hello, s_client, told

NO_CHROMIUM = pytest.mark.skipif(not shutil.which("chromium"), reason="the command `chromium` is missing: apt-get install chromium")


@pytest.fixture(scope="module")
def edge(upstream, cert):
    with Edge(FACTS, upstream.url, cert=cert) as e:
        yield e


@pytest.fixture
def recorder(edge):
    with Recorder(edge.tls_port) as r:
        yield r


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
    context = tls_context(version=version)
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


@pytest.mark.parametrize("name", [b"a", b"\xab", b"\xab\xcd", b"0\xab", b"a,b", b"\0", b"x" * 255], ids=repr)
def test_the_first_protocol_may_be_any_bytes(recorder, name):
    with RawTls(recorder.port, ciphers=GREASE, extensions=extension(0x2A2A) + alpn(name, b"http/1.1")) as c:
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
