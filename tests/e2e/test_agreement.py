"""`edge-spoa simulate` and live traffic agree, over HTTP/1 and HTTP/2: verdict, page, rules, headers to the upstream and to the client, locale."""

import json
import subprocess
from collections import Counter

import pytest

import agreement_rows
import exposition
from clients import fetch
from edge import BINARY, Edge
from upstream import Upstream, answer

POLICY, REQUESTS = agreement_rows.read("policy.json"), agreement_rows.read("requests.json")
ROWS = REQUESTS["written"] + REQUESTS["drawn"]
# What the front in front of the edge says of a client, by the member of a simulated request.
FRONT = {name: f"X-{name.title().replace('_', '-')}" for name in ("country", "continent", "asnum", "ja3", "ja4", "ssl", "http_version")}
PROOF = ("X-Proof", "a-secret-of-the-front")
SETTINGS = {
    "CLIENT_IP_SOURCE": "header:X-Real-IP",
    "VIEWER_HEADERS": ",".join(f"{name}={header}" for name, header in FRONT.items()),
    "TRUSTED_PROXIES": "127.0.0.1",
    "INGRESS_SECRET_HEADER": PROOF[0],
    "INGRESS_SECRET": PROOF[1],
}
ACTIONS = {rule["id"]: rule["action"] for rule in POLICY["rate_limit_rules"]}
# A request counts for five limits beside the site-wide ones, enforced ones first: these are the sixth and seventh.
BEYOND_THE_CAP = {"cap-3", "cap-5"}
# What frames a body and holds the connection: each hop's own, of which simulate tells nothing.
FRAMING = {"content-length", "transfer-encoding", "connection"}
# What these say depends on what was counted; which limits they name is compared apart.
COUNTED = {"ratelimit", "ratelimit-policy"}
UPSTREAMS_OWN = [("x-upstream", "1"), ("vary", "Accept-Encoding"), ("access-control-allow-origin", "https://old.example"), ("x-upstream", "2")]
# Kinds of the edge's answers to an upstream's faults, by the first segment of a path.
FAULTS = {"garbage": "bad_gateway", "delay": "gateway_timeout"}


class Opinionated(Upstream):
    """Its answers have headers of their own."""

    def respond(self, sock, request):
        verb, _, rest = request["target"].split("?")[0].lstrip("/").partition("/")
        if verb in FAULTS:
            return super().respond(sock, request)
        body = b"" if request["method"] == "HEAD" else json.dumps(request).encode()
        extra = b"".join(f"{name}: {value}\r\n".encode() for name, value in UPSTREAMS_OWN)
        sock.sendall(answer(int(rest.split("/")[0]) if verb == "status" else 200, body, extra))
        return True


@pytest.fixture(scope="module")
def edge():
    with Opinionated() as upstream, Edge(POLICY, upstream.url, settings=SETTINGS) as e:
        yield e


def values(value):
    return value if isinstance(value, list) else [value]


def sent_headers(request):
    return [(name, value.encode()) for name, several in request.get("headers", {}).items() for value in values(several)]


def as_seen(request, protocol):
    """The request as the edge gets it: HTTP/2 has one Cookie header."""
    headers = dict(request.get("headers", {}))
    if protocol == "h2" and isinstance(headers.get("Cookie"), list):
        headers["Cookie"] = "; ".join(headers["Cookie"])
    return {**request, "headers": headers}


def simulated(edge, request):
    done = subprocess.run(
        [BINARY, "simulate", str(edge.policy_file)], input=json.dumps(request), env=edge.environment, capture_output=True, text=True, timeout=30
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def front_headers(request):
    """What the front adds to the client's own headers. Only TLS has fingerprints."""
    facts = {"ssl": "ja3" in request or "ja4" in request, **request}
    said = [(header, facts[name]) for name, header in FRONT.items() if name in facts]
    return [("X-Real-IP", request["ip"]), PROOF, *((n, str(v).lower() if isinstance(v, bool) else str(v)) for n, v in said)]


def ask(edge, row, protocol, request_id):
    request, body = row["request"], b"x" * row["body"] if "body" in row else None
    headers = [*sent_headers(request), *front_headers(request), ("X-Request-Id", request_id)]
    return fetch(edge, request["method"], request["path"], headers, body, host=request["host"], protocol=protocol)


def readable(value):
    """A header value as simulate tells it."""
    return value.encode("latin-1").decode("utf-8", "replace")


def grouped(pairs):
    found = {}
    for name, value in pairs:
        found.setdefault(name.lower(), []).append(value)
    return found


def told(headers):
    return {name: values(value) for name, value in headers.items()}


# What the edge answers a request with that it refuses, as the access line has it and by kind of page; it forwards all others.
REFUSALS = {
    "path": ("path", "bad_request"),
    "method": ("method", "bad_request"),
    "identity": ("bad_request", "bad_request"),
    "block": ("block", "forbidden"),
    "preflight": ("preflight", None),
}
STATUS = {"payload_too_large": 413, "bad_gateway": 502, "gateway_timeout": 504}


class Expected:
    """What the live edge has to do with a request, by what simulate says of it and by what simulate is not told: the body and the upstream.

    decision: of the access line. kind: of the edge's own page, or None. answered: whether the upstream's answer reaches the client."""

    def __init__(self, row, result):
        path = row["request"]["path"].split("?")[0]
        self.result, self.settings = result, result["settings"]
        self.answered, self.status, self.kind = False, result["status"], None
        fault = next((kind for verb, kind in FAULTS.items() if f"/{verb}/" in path), None)
        if result["rejected"]:
            self.decision, self.kind = REFUSALS[result["rejected"]]
        elif row.get("body", 0) > self.settings["body_limit"]:
            self.decision, self.kind = "body_limit", "payload_too_large"
        elif fault:
            self.decision, self.kind = ("upstream_timeout" if fault == "gateway_timeout" else "upstream_error"), fault
        else:
            self.decision = "would_block" if self.settings["block"] == "log" else "allow"
            self.answered, self.status = True, int(path.split("/")[2]) if path.startswith("/status/") else 200
        if not self.answered and not result["rejected"]:
            self.status = STATUS[self.kind]
        self.page = self.settings["responses"][self.kind] if self.kind else None

    def answer_headers(self):
        """Those of the edge, and those of the upstream, which CORS takes its own from."""
        wanted = told(self.result["response_headers"])
        if self.kind and not self.result["rejected"]:
            content_type = POLICY["global"]["responses"][self.page]["content_type"]
            wanted |= {"cache-control": ["no-store"], "x-content-type-options": ["nosniff"], "content-type": [content_type]}
        if self.answered:
            for name, value in [("content-type", "application/json"), *UPSTREAMS_OWN]:
                if not (self.settings["cors_policy"] and name.startswith("access-control-")):
                    wanted.setdefault(name, []).append(value)
        return {name: sorted(found) for name, found in wanted.items()}

    def limits_told(self):
        """Limits that RateLimit-Policy names: those that are enforced. A body is looked at behind them."""
        if not self.settings["ratelimit_headers"]:
            return []
        return [rule for rule in self.result["rate_limit_rules"] if ACTIONS[rule] == "block"]


def host_of(request, protocol):
    """HAProxy leaves out the port that the scheme of an HTTP/2 request means anyway."""
    return request["host"].removesuffix(":80") if protocol == "h2" else request["host"]


def upstream_parts(request, protocol, result, response, request_id, address):
    """What the upstream got, against what simulate says, and against what it leaves out."""
    received = grouped(response.json()["headers"])
    proto = "https" if request.get("ssl", "ja3" in request or "ja4" in request) else "http"
    managed = {"x-request-id": request_id, "x-edge-client-ip": address, "x-forwarded-for": address, "x-forwarded-proto": proto}
    managed |= {"x-forwarded-host": host_of(request, protocol), "host": host_of(request, protocol)}
    known = {name: [readable(v) for v in found] for name, found in received.items() if name not in set(managed) | FRAMING}
    return {
        "upstream's headers": (told(result["upstream_headers"]), known),
        "upstream's headers that are left out": (managed, {name: ", ".join(found) for name, found in received.items() if name in managed}),
        "locale": (result["locale"], received.get("x-edge-locale", [None])[0]),
    }


def differences(edge, row, protocol, request_id, result):
    """Every part in which the live request came out otherwise than simulate says: {part: (simulated, live)}."""
    expected, response = Expected(row, result), ask(edge, row, protocol, request_id)
    if row.get("by_haproxy"):
        return {} if response.status == expected.status else {"status": (expected.status, response.status)}
    record = edge.record(request_id=request_id)
    answers = grouped(response.headers)
    policies = [item.split(";")[0].strip(' "') for value in answers.get("ratelimit-policy", []) for item in value.split(",")]
    parts = {
        "status": (expected.status, response.status),
        "decision": (expected.decision, record["edge.decision"]),
        "config rules": (result["config_rules"], record.get("edge.config_rules", [])),
        # A body that is too large is refused ahead of them.
        "header rules": (result["request_header_rules"] if expected.decision != "body_limit" else [], record.get("edge.request_header_rules", [])),
        "answer's headers": (expected.answer_headers(), {n: sorted(found) for n, found in answers.items() if n not in FRAMING | COUNTED}),
        "limits that are told": (expected.limits_told(), policies),
    }
    if row["request"]["method"] == "HEAD":
        assert response.body == b""
    elif expected.page:
        parts["page"] = (f"{expected.page} {request_id}", response.body.decode().strip('"'))
    elif expected.answered:
        parts |= upstream_parts(row["request"], protocol, result, response, request_id, record["client.address"])
    else:
        parts["body of a preflight's answer"] = (b"", response.body)
    return {part: pair for part, pair in parts.items() if pair[0] != pair[1]}


class Sums:
    """What the edge has to have counted, by simulate's word; rows: those that were asked."""

    def __init__(self):
        self.limits, self.rows = Counter(), 0


@pytest.fixture(scope="module")
def sums():
    return Sums()


@pytest.mark.parametrize("row", [pytest.param(row, id=row["name"]) for row in ROWS])
def test_simulate_says_what_live_traffic_gets(edge, sums, row):
    for protocol in row.get("protocols", ["h1", "h2"]):
        result = simulated(edge, as_seen(row["request"], protocol))
        sums.rows += 1
        sums.limits.update(result["rate_limit_rules"])
        found = differences(edge, row, protocol, f"agree-{sums.rows}", result)
        assert not found, f"{protocol}: {json.dumps(found, indent=1, default=str)}\n{json.dumps(row['request'])}"


def test_every_limit_has_counted_as_many_requests_as_simulate_says(edge, sums):
    """Shadow limits, too, of which no header tells. Behind the test above, which asks."""
    if sums.rows < len(ROWS):
        pytest.skip("only some of the requests were asked")
    families = edge.settled()
    live = {rule: exposition.value(families, "edge_ratelimit_rule_total", rule=rule, outcome="checked") for rule in sums.limits}
    assert live == sums.limits
    for rule in set(ACTIONS) - set(sums.limits):
        with pytest.raises(KeyError):
            exposition.value(families, "edge_ratelimit_rule_total", rule=rule, outcome="checked")


def test_the_drawn_requests_are_those_of_the_seed():
    assert REQUESTS["drawn"] == agreement_rows.draw()
    assert (agreement_rows.FOLDER / "requests.json").read_text(encoding="utf-8") == agreement_rows.render(REQUESTS)


def test_every_rule_in_force_is_met_by_some_requests_and_not_by_others(edge):
    """Else it would prove nothing. Of the requests that are not refused, `site` and its shadow meet all."""
    results = [simulated(edge, as_seen(row["request"], "h1")) for row in ROWS]
    for phase in ("config_rules", "rate_limit_rules", "request_header_rules"):
        met = Counter(rule for result in results for rule in result[phase])
        in_force = {rule["id"] for rule in POLICY[phase] if rule.get("enabled", True)} - BEYOND_THE_CAP
        assert set(met) == in_force and all(n < len(ROWS) for n in met.values()), (phase, met)
