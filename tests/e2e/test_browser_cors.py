"""What a real browser lets pages of other origins do and read through the edge, over HTTP/1 in the clear and HTTP/2 over TLS. The rows
stand in cors_cases.py; the browser visits the page of each origin in turn and keeps one cache."""

import contextlib
import copy
import json
from collections import Counter

import pytest

import browser
import exposition
from cors_cases import CASES, LISTED, MORE, STRANGER, document
from cors_page import CorsUpstream, PageServer
from edge import Edge, Ports, poll
from haproxy_alone import HAProxy
from mock_agent import FORWARD, additions

pytestmark = pytest.mark.skipif(browser.CHROMIUM is None, reason=browser.MISSING)

PAGES = (LISTED, MORE, STRANGER)
CASE_IDS = {name: name.replace(" ", "-") for name in CASES}
# An answer as the agent would make it of a request whose token is missing; this edge has no such step.
UNAUTHORIZED = {
    **FORWARD,
    "txn.status": 401,
    "txn.body": '{"kind":"unauthorized"}',
    "txn.ctype": "application/json",
}


def unauthorized(origin):
    cors = additions(("access-control-allow-origin", origin), ("access-control-expose-headers", "x-shown"), ("x-shown", "shown"), ("vary", "Origin"))
    return {**UNAUTHORIZED, "txn.res_add": cors}


def flooded(plain):
    made = copy.deepcopy(plain)
    made["global"]["backstop"] = {"limit": 1, "period": "1h", "burst": 1}
    return made


class Run:
    """The visits of all pages: what they report, and what both sides saw."""

    def __init__(self, protocol, cert):
        self.protocol, self.is_tls = protocol, protocol == "h2"
        with contextlib.ExitStack() as stack:
            self.pages = {page: stack.enter_context(PageServer(cert if self.is_tls else None)) for page in PAGES}
            self.upstream = stack.enter_context(CorsUpstream())
            self.edges = self.start_edges(stack, cert)
            self.origins = {at: self.origin_of(edge) for at, edge in self.edges.items()}
            self.origins |= {page: server.origin for page, server in self.pages.items()}
            self.visit(cert)
            self.records = {at: edge.matching(msg="access") for at, edge in self.edges.items() if isinstance(edge, Edge)}

    def start_edges(self, stack, cert):
        plain = document(self.pages[LISTED].origin, self.pages[MORE].origin)
        nobody = stack.enter_context(contextlib.closing(Ports()))
        upstreams = {
            "edge": (plain, self.upstream.url),
            "no_upstream": (plain, f"http://127.0.0.1:{nobody.first}"),
            "flooded": (flooded(plain), self.upstream.url),
        }
        edges = {at: stack.enter_context(Edge(made, url, cert=cert)) for at, (made, url) in upstreams.items()}
        edges["mock"] = stack.enter_context(HAProxy(cert=cert, mock=True))
        edges["mock"].agent.answers["/list/token"] = unauthorized(self.pages[LISTED].origin)
        return edges

    def origin_of(self, edge):
        return f"https://127.0.0.1:{edge.tls_port}" if self.is_tls else f"http://127.0.0.1:{edge.port}"

    def url_of(self, case):
        names = {**self.origins, "page": self.origins[case.page]}
        return case.target.format(**names) if case.target.startswith("{") else self.origins[case.at] + case.target.format(**names)

    def visit(self, cert):
        for page, server in self.pages.items():
            mine = {name: case for name, case in CASES.items() if case.page == page}
            server.plan = [{"name": name, "way": case.way, "url": self.url_of(case), "options": case.options} for name, case in mine.items()]
        for page, after in zip(PAGES, PAGES[1:]):
            self.pages[page].next = f"{self.origins[after]}/page"
        self.reports = {}
        with browser.Browser(f"{self.origins[PAGES[0]]}/page", cert) as chromium:
            for server in self.pages.values():
                poll(lambda: chromium.alive() and not server.reports.empty(), f"the page of {server.origin} reports", deadline=90)
                self.reports |= server.reports.get()
        for edge in self.edges.values():
            if isinstance(edge, Edge):
                asked = exposition.value(edge.settled(), "edge_spop_notifies_total")
                edge.wait_lines(int(asked), msg="access")

    def decided(self, case):
        path = case.target.split("?")[0]
        return Counter(record["edge.decision"] for record in self.records[case.at] if record.get("url.path") == path)

    def reached(self, case):
        return len([r for r in self.upstream.seen(case.target) if r["target"] == case.target])


@pytest.fixture(scope="module", params=["http/1.1", "h2"])
def run(request, cert):
    return Run(request.param, cert)


def check_headers(run, seen, wanted):
    expected = dict(wanted.get("headers", {}))
    if "allowed" in wanted:
        expected["access-control-allow-origin"] = run.origins.get(wanted["allowed"], wanted["allowed"])
    assert {name: seen["headers"].get(name) for name in expected} == expected
    assert [name for name in wanted.get("hidden", ()) if name in seen["headers"]] == []
    assert [name for name in wanted.get("shown", ()) if name not in seen["headers"]] == []


def check_request(seen, wanted):
    request = json.loads(seen["body"])
    had = {"method": request["method"], **{name.lower(): value for name, value in request["headers"]}}
    assert {name: had.get(name) for name in wanted} == wanted


@pytest.mark.parametrize("name", CASES, ids=CASE_IDS.get)
def test_a_page_of_another_origin(run, name):
    case, seen = CASES[name], run.reports[name]
    said = {member: case.wanted[member] for member in ("status", "type", "redirected", "body", "error", "event", "echo") if member in case.wanted}
    assert {member: seen.get(member) for member in said} == said, seen
    if "error" not in case.wanted and case.way == "fetched":
        assert "error" not in seen, seen
        check_headers(run, seen, case.wanted)
    if "kind" in case.wanted:
        assert json.loads(seen["body"])["kind"] == case.wanted["kind"]
    if "request" in case.wanted:
        check_request(seen, case.wanted["request"])
    if "reached" in case.wanted:
        assert run.reached(case) == case.wanted["reached"]
    decided = run.decided(case) if "decided" in case.wanted else {}
    assert {decision: decided[decision] for decision in case.wanted.get("decided", {})} == case.wanted.get("decided", {})


def test_the_browser_speaks_the_protocol_that_is_tested(run):
    spoken = {seen["protocol"] for seen in run.reports.values() if seen.get("protocol") and not seen["redirected"]}
    assert spoken == {run.protocol}


def test_every_page_did_all_of_its_plan(run):
    assert set(run.reports) == set(CASES)


def test_no_preflight_reaches_the_upstream_where_a_policy_applies(run):
    assert [r["target"] for r in run.upstream.seen("/") if r["method"] == "OPTIONS" and not r["target"].startswith("/none/")] == []


def test_each_preflight_is_recorded_as_answered_by_the_edge(run):
    found = [r for r in run.records["edge"] if r["edge.decision"] == "preflight"]
    assert {(r["http.request.method"], r["http.response.status_code"], r["edge.upstream_answered"]) for r in found} == {("OPTIONS", 204, False)}
