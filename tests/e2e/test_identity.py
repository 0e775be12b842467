"""Who the client is: what trusted fronts say reaches rules, limits, records and the upstream; what anybody else says reaches nobody."""

import re
import subprocess

import pytest

from clients import client, fetch
from edge import BINARY, Edge, poll
from faults import NoAgent
from policies import config_rule, limit_rule, policy, under
from shapes import FORGED, SHAPES, managed, same_name, shaped

POLICY = policy(
    config=[config_rule("not-them", f'{under("/rules/")} and ip.src in {{203.0.113.0/24}}', block="block")],
    limits=[limit_rule("one-each", under("/limits/"), limit=1, period="24h", burst=1)],
)
STRANGER = {"source": "127.0.0.2"}  # TRUSTED_PROXIES below has 127.0.0.1 only
CLIENT = "203.0.113.9"
JA4 = "t13d1516h2_8daaf6152771_02713d6af862"
SECRETS = ["first-of-two-secrets", "second-of-two-secrets"]
GENERATED = re.compile(r"[0-9a-f]{32}")

# What a deployment is told, what its front sends, and what the upstream then gets beside X-Edge-Client-IP, X-Forwarded-For and -Host.
FRONTS = {
    "remote_addr": ({}, [], "127.0.0.1", {}),
    "cloudfront": (
        {"CLIENT_IP_SOURCE": "cloudfront", "VIEWER_HEADERS": "ja4=CloudFront-Viewer-JA4-Fingerprint,continent=X-Continent"},
        [("CloudFront-Viewer-Address", f"{CLIENT}:46532"), ("CloudFront-Forwarded-Proto", "https"), ("CloudFront-Viewer-Country", "de"),
         ("CloudFront-Viewer-ASN", "3320"), ("CloudFront-Viewer-HTTP-Version", "3.0"), ("CloudFront-Viewer-JA4-Fingerprint", JA4),
         ("X-Continent", "EU")],
        CLIENT,
        {"x-forwarded-proto": "https", "x-edge-geo-country": "DE", "x-edge-geo-asn": "3320", "x-edge-tls-ja4": JA4, "x-edge-geo-continent": "EU"},
    ),
    "cloudfront-ipv6": ({"CLIENT_IP_SOURCE": "cloudfront"}, [("CloudFront-Viewer-Address", "2001:db8::9:46532")], "2001:db8::9", {}),
    "cloudfront-brackets": ({"CLIENT_IP_SOURCE": "cloudfront"}, [("CloudFront-Viewer-Address", "[2001:db8::9]:46532")], "2001:db8::9", {}),
    "cloudflare": (
        {"CLIENT_IP_SOURCE": "cloudflare"},
        [("CF-Connecting-IP", CLIENT), ("X-Forwarded-Proto", "https"), ("CF-IPCountry", "DE")],
        CLIENT,
        {"x-forwarded-proto": "https", "x-edge-geo-country": "DE"},
    ),
    "gcp": (
        {"CLIENT_IP_SOURCE": "gcp", "VIEWER_HEADERS": "asnum=X-Client-ASN"},
        [("X-Client-IP", "2001:db8::9"), ("X-Client-Encrypted", "true"), ("X-Client-Region", "US"), ("X-Client-ASN", "15169")],
        "2001:db8::9",
        {"x-forwarded-proto": "https", "x-edge-geo-country": "US", "x-edge-geo-asn": "15169"},
    ),
    "header": ({"CLIENT_IP_SOURCE": "header:X-Real-IP"}, [("X-Real-IP", CLIENT)], CLIENT, {}),
    "header_ip_port": ({"CLIENT_IP_SOURCE": "header_ip_port:X-Viewer"}, [("X-Viewer", f"{CLIENT}:80")], CLIENT, {}),
    "xff": ({"CLIENT_IP_SOURCE": "xff"}, [("X-Forwarded-For", f"10.1.1.1, {CLIENT}"), ("X-Forwarded-For", "127.0.0.1")], CLIENT, {}),
}  # fmt: skip


def twins(sent):
    """The same names as clients would write them to get past who compares names exactly, with values that lie."""
    return [(n.replace("-", "_"), "198.51.100.66") for n, _ in sent if "-" in n]


@pytest.fixture(scope="module", params=FRONTS)
def front(request, upstream, cert):
    """An edge behind that front, what the front sends, the client it means, and what the upstream is to get."""
    settings, sent, address, known = FRONTS[request.param]
    settings = {"TRUSTED_PROXIES": "127.0.0.1", **settings}
    if sent:
        settings |= {"INGRESS_SECRET_HEADER": "X-Front.Proof", "INGRESS_SECRET": ", ".join(SECRETS)}
    tls = cert if request.param in ("cloudfront", "xff") else None
    with Edge(POLICY, upstream.url, settings=settings, cert=tls) as e:
        e.sent, e.address, e.known, e.protocols = sent, address, known, ["h1", "h2"] + (["tls-h1", "tls-h2"] if tls else [])
        e.proof = [("X-Front.Proof", SECRETS[0])] if sent else []
        yield e


def refusals(edge):
    return {reason: edge.metric("edge_identity_refused_total", reason=reason) for reason in REASONS}


REASONS = ("secret", "untrusted_peer", "missing", "several", "malformed", "no_peer")


@pytest.mark.parametrize("shape", SHAPES)
def test_what_a_trusted_front_says_is_all_that_the_upstream_gets_to_know(front, shape):
    for protocol in front.protocols:
        target = f"/known/{protocol}/{shape}"
        headers = front.sent + front.proof + twins(front.sent) + [("X-Edge-Geo-Country", "ZZ"), ("x_edge_tls_ja4", "evil"), ("Forwarded", "for=evil")]
        response = fetch(front, "POST", target, protocol=protocol, **shaped(shape, headers))
        assert response.status == 200, response.body
        record = front.record_of(target)
        assert record["client.address"] == front.address
        wanted = {"x-edge-client-ip": front.address, "x-forwarded-for": front.address, "x-forwarded-host": "edge.test", "x-forwarded-proto": "http"}
        assert managed(response.json()) == sorted({**wanted, **front.known, "x-request-id": record["request_id"]}.items())
        own = {same_name(n) for n, _ in front.sent + front.proof if not n.lower().startswith("x-forwarded")}
        assert not own & {same_name(n) for n, _ in response.json()["headers"]}


@pytest.mark.parametrize("protocol", ["h1", "h2"])
def test_what_a_stranger_says_is_refused_and_counted_and_reaches_nobody(front, upstream, protocol):
    if not front.sent:
        pytest.skip("the peer of the connection is the client: nobody is a stranger")
    before, target = refusals(front), f"/stranger/{protocol}"
    response = fetch(front, "GET", target, front.sent + front.proof, protocol=protocol, peer=STRANGER)
    record = front.record_of(target)
    assert (response.status, response.get("cache-control"), response.json()["kind"]) == (400, "no-store", "bad_request")
    assert response.json()["request_id"] == record["request_id"]
    assert (record["edge.decision"], record["client.address"]) == ("identity", "127.0.0.2")
    assert refusals(front) == {**before, "untrusted_peer": before["untrusted_peer"] + 1}
    assert upstream.seen(target) == []


# What is wrong with what the front sent, by what is done to its headers.
WRONGS = {
    "secret": lambda sent, proof: sent + [("X-Front.Proof", SECRETS[0] + "x")],
    "secret-twin": lambda sent, proof: sent + [("x_front.proof", SECRETS[0])],
    "secret-twice": lambda sent, proof: sent + proof + proof,
    "secret-none": lambda sent, proof: sent,
    "missing": lambda sent, proof: sent[1:] + proof,
    "missing-twin": lambda sent, proof: twins(sent[:1]) + proof,
    "missing-empty": lambda sent, proof: [(sent[0][0], "")] + proof,
    "several": lambda sent, proof: sent[:1] + sent + proof,
    "malformed": lambda sent, proof: [(sent[0][0], "unknown")] + proof,
    "malformed-zone": lambda sent, proof: [(sent[0][0], "[fe80::1%eth0]:1")] + proof,
}


@pytest.mark.parametrize("protocol", ["h1", "h2"])
@pytest.mark.parametrize("wrong", WRONGS)
def test_a_client_that_cannot_be_told_is_refused_for_its_reason_and_never_taken_for_its_peer(upstream, gcp, wrong, protocol):
    before, target, reason = refusals(gcp), f"/wrong/{wrong}/{protocol}", wrong.split("-")[0]
    response = fetch(gcp, "GET", target, WRONGS[wrong](gcp.sent, gcp.proof), protocol=protocol)
    record = gcp.record_of(target)
    assert (response.status, response.get("cache-control"), response.json()["kind"]) == (400, "no-store", "bad_request")
    assert (record["edge.decision"], record["client.address"]) == ("identity", "127.0.0.1")
    assert refusals(gcp) == {**before, reason: before[reason] + 1}
    assert upstream.seen(target) == []


@pytest.fixture(scope="module")
def gcp(upstream):
    settings, sent, address, _ = FRONTS["gcp"]
    settings = {**settings, "TRUSTED_PROXIES": "127.0.0.1", "INGRESS_SECRET_HEADER": "X-Front.Proof", "INGRESS_SECRET": ",".join(SECRETS)}
    with Edge(POLICY, upstream.url, settings={**settings, "EDGE_ON_AGENT_FAILURE": "open"}) as e:
        e.sent, e.address, e.proof = sent, address, [("X-Front.Proof", SECRETS[0])]
        yield e


@pytest.mark.parametrize("secret", SECRETS)
def test_each_secret_passes_while_it_is_exchanged_and_none_is_told_to_anybody(gcp, secret):
    response = fetch(gcp, "GET", "/secret", gcp.sent + [("X-Front.Proof", secret)])
    assert response.status == 200 and secret not in response.body.decode()
    master, workers = gcp.haproxy_pids()
    environments = {p.pid: p.environ() for p in gcp.processes()}
    for pid in (master, *workers):
        assert "EDGE_STRIP" in environments[pid] and secret not in str(environments[pid])
    assert any(secret in str(environments[pid]) for pid in gcp.agent_pids().values()), "only agents compare it"
    help_text = subprocess.run([BINARY, "--help"], env=gcp.environment, capture_output=True, check=True).stdout.decode()
    assert secret not in help_text and secret not in "".join(line["text"] for line in gcp.lines)
    assert all(secret not in gcp.internal(page)[1] for page in ("/metrics", "/readyz"))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("protocol", ["h1", "h2"])
def test_open_mode_without_an_agent_tells_nobody_who_the_client_is(gcp, protocol, shape):
    target = f"/open/{protocol}/{shape}"
    headers = gcp.sent + gcp.proof + twins(gcp.sent) + twins(gcp.proof) + [(n, "evil") for n in FORGED if same_name(n) != "x-request-id"]
    with NoAgent(gcp, gcp.sent + gcp.proof):
        response = fetch(gcp, "POST", target, protocol=protocol, **shaped(shape, headers + [("X-Request-Id", "given-by.the_front")]))
    assert response.status == 200
    assert managed(response.json()) == [("x-request-id", "given-by.the_front")]
    assert gcp.record_of(target)["request_id"] == "given-by.the_front"
    own = {same_name(n) for n, _ in gcp.sent + gcp.proof}
    assert not own & {same_name(n) for n, _ in response.json()["headers"]}


@pytest.mark.parametrize("protocol", ["h1", "h2"])
def test_rules_and_limits_mean_the_trusted_client(gcp, protocol):
    def ask(target, address):
        return fetch(gcp, "GET", target, [("X-Client-IP", address)] + gcp.proof, protocol=protocol).status

    assert ask("/rules/a", CLIENT) == 403
    assert ask("/rules/a", "198.51.100.9") == 200
    one, other = (f"198.51.100.{n}" for n in ((10, 11) if protocol == "h1" else (12, 13)))
    assert [ask("/limits/a", one), ask("/limits/a", one), ask("/limits/a", other)] == [200, 429, 200]


# --- The request's id ---

GOOD_IDS = ["a", "A-Z_0.9", "." * 127, "x" * 128]
BAD_IDS = ["", "x" * 129, "x" * 5000, "a b", "a,b", "a/b", "a\tb", "{{request_id}}", "<b>", "%0d", "\xc3\xa9", "a\x01"]


@pytest.fixture(scope="module")
def ids(upstream, cert):
    """A front that is trusted with ids, for clients that are its peers."""
    with Edge(POLICY, upstream.url, settings={"TRUSTED_PROXIES": "127.0.0.1"}, cert=cert) as e:
        yield e


def id_of(edge, response, target):
    """The id of a forwarded request, which the upstream got once."""
    values = [v for n, v in response.json()["headers"] if same_name(n) == "x-request-id"]
    assert values == [edge.record_of(target)["request_id"]]
    return values[0]


@pytest.mark.parametrize("protocol", ["h1", "h2", "tls-h1", "tls-h2"])
def test_an_id_of_a_trusted_peer_is_the_requests_everywhere(ids, protocol):
    for i, given in enumerate(GOOD_IDS):
        for shape in SHAPES:
            target = f"/id/{protocol}/{i}/{shape}"
            response = fetch(ids, "GET", target, protocol=protocol, **shaped(shape, [("X-Request-Id", given)]))
            assert id_of(ids, response, target) == given
        target = f"/rules/../{protocol}/{i}"
        assert fetch(ids, "GET", target, [("X-Request-Id", given)], protocol=protocol).json()["request_id"] == given
        assert ids.record_of(target)["request_id"] == given


@pytest.mark.parametrize("protocol", ["h1", "h2"])
def test_an_id_that_is_none_is_replaced_as_a_whole(ids, protocol):
    for i, given in enumerate(BAD_IDS):
        target = f"/bad-id/{protocol}/{i}"
        response = fetch(ids, "GET", target, [("X-Request-Id", given)], protocol=protocol)
        if response.status == 200:
            assert GENERATED.fullmatch(id_of(ids, response, target)), given
        else:
            assert response.status == 400 and GENERATED.fullmatch(ids.record_of(target)["request_id"]), given


@pytest.mark.parametrize("protocol", ["h1", "h2"])
@pytest.mark.parametrize("headers", [[("X-Request-Id", "a"), ("X-Request-Id", "a")], [("X_Request_Id", "a")], [("X-Request_ID", "a")], []])
def test_an_id_that_is_there_twice_or_under_another_name_is_none(ids, protocol, headers):
    target = f"/no-id/{protocol}/{len(headers)}{headers[0][0] if headers else ''}"
    assert GENERATED.fullmatch(id_of(ids, fetch(ids, "GET", target, headers, protocol=protocol), target))


@pytest.mark.parametrize("protocol", ["h1", "h2", "tls-h2"])
def test_a_strangers_id_is_none_and_each_request_of_a_connection_has_its_own(ids, protocol):
    seen = []
    with client(ids, protocol, **STRANGER) as c:
        for i in range(3):
            target = f"/strange-id/{protocol}/{i}"
            seen.append(id_of(ids, c.request("GET", target, [("X-Request-Id", "mine")]), target))
    assert all(GENERATED.fullmatch(i) for i in seen) and len(set(seen)) == 3


@pytest.mark.parametrize("protocol", ["h1", "h2"])
def test_haproxys_own_pages_and_lines_have_the_id_too(upstream, protocol):
    """The upstream talks nonsense, then there is no agent."""

    def has_pages():
        fetch(e, "GET", "/early")
        return all("kind" in e.haproxy_command(f"get var proc.edge.t_{kind}") for kind in ("bad_gateway", "unavailable"))

    with Edge(POLICY, upstream.url, settings={"TRUSTED_PROXIES": "127.0.0.1", "EDGE_AGENT_TIMEOUT": "60s"}) as e:
        poll(has_pages, "HAProxy has the policy's pages")
        response = fetch(e, "GET", "/garbage", [("X-Request-Id", "i" * 128)], protocol=protocol)
        assert (response.status, response.json()["request_id"]) == (502, "i" * 128)
        assert e.record_of("/garbage")["request_id"] == "i" * 128
        with NoAgent(e):
            response = fetch(e, "GET", "/nobody", [("X-Request-Id", "j.j")], protocol=protocol)
        assert (response.status, response.json()["request_id"]) == (503, "j.j")
        assert e.record_of("/nobody")["request_id"] == "j.j"


def test_without_trusted_proxies_every_id_is_the_edges(upstream):
    with Edge(POLICY, upstream.url) as e:
        for protocol in ("h1", "h2"):
            target = f"/id/{protocol}"
            assert GENERATED.fullmatch(id_of(e, fetch(e, "GET", target, [("X-Request-Id", "mine")], protocol=protocol), target))


def test_a_peer_is_trusted_whatever_socket_it_came_in_on(upstream):
    """A socket of both families gives IPv4 peers as mapped addresses."""
    settings = {"TRUSTED_PROXIES": "127.0.0.1", "CLIENT_IP_SOURCE": "header:X-Real-IP"}
    headers = [("X-Real-IP", "::ffff:203.0.113.9"), ("X-Request-Id", "mine")]
    with Edge(POLICY, upstream.url, settings=settings).listen_everywhere() as e:
        for protocol in ("h1", "h2"):
            target = f"/mapped/{protocol}"
            response = fetch(e, "GET", target, headers, protocol=protocol)
            assert response.status == 200 and id_of(e, response, target) == "mine"
            assert e.record_of(target)["client.address"] == CLIENT
            assert fetch(e, "GET", "/mapped/stranger", headers, protocol=protocol, peer=STRANGER).status == 400
        assert e.metric("edge_identity_refused_total", reason="untrusted_peer") == 2
