"""Certificates that clients show: what rules see of them, and who gets through the handshake."""

import hashlib
import json
import ssl
import subprocess

import pytest

from certs import make_client_certs
from clients import fetch, tls_context
from edge import Edge
from policies import header_rule, policy
from tls_clients import MODES, curl, get_with


@pytest.fixture(scope="module")
def clients(tmp_path_factory):
    return make_client_certs(tmp_path_factory.mktemp("clients"))


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
    context = tls_context(version=version, pem=clients / f"{name}.pem")
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
