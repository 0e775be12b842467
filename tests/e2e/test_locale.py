"""The locale of a request: chosen where it is on, the same for everything that reads it, the edge's word towards the upstream."""

import itertools
import signal

import pytest

from clients import PROTOCOLS, fetch
from edge import Edge
from policies import config_rule, header_rule, limit_rule, policy, under
from streams import Events, PlayedUpstream, WebSocket

SERIAL = itertools.count(1)
CLEAR = pytest.mark.parametrize("protocol", ["h1", "h2"])
SUPPORTED = ["en", "de-CH", "pt-BR", "pt-PT", "zh-Hant"]


def locale_policy(enabled, supported=(*SUPPORTED,), default="en", **parts):
    document = policy(
        config=[
            config_rule("on", under("/on"), locale=True),
            config_rule("off", under("/off"), locale=False),
            config_rule("shut", under("/shut"), block="block"),
        ],
        limits=[limit_rule("few", 'edge.locale eq "pt-BR" and starts_with(http.request.uri.path, "/limit")', 1, "1h", 1)],
        headers=[
            header_rule("placeholder", "true", ("X-Placeholder", "<{{locale}}>")),
            header_rule("german", 'edge.locale eq "de-CH"', ("X-Expression", "german")),
            header_rule("none", 'edge.locale eq ""', ("X-Expression", "none")),
        ],
        **parts,
    )
    document["global"]["locale"] = {"enabled": enabled, "supported": list(supported), "default": default}
    return document


@pytest.fixture(scope="module")
def edge(upstream, cert):
    with Edge(locale_policy(True), upstream.url, cert=cert) as e:
        yield e


@pytest.fixture(scope="module")
def off(upstream):
    with Edge(locale_policy(False), upstream.url) as e:
        yield e


def headers_at_upstream(edge, path, languages=(), protocol="h1", sent=()):
    response = fetch(edge, "GET", f"{path}/{next(SERIAL)}", [*(("Accept-Language", value) for value in languages), *sent], protocol=protocol)
    assert response.status == 200
    return response.json()["headers"]


def told(edge, path, *languages, protocol="h1"):
    """What the upstream hears: (X-Edge-Locale or None, what rules made of the placeholder and of expressions)."""
    found = headers_at_upstream(edge, path, languages, protocol)
    values = {name: [v for n, v in found if n == name] for name in ("x-edge-locale", "x-placeholder", "x-expression")}
    assert all(len(v) <= 1 for v in values.values()), values
    return tuple((v or [None])[0] for v in values.values())


@pytest.mark.parametrize("protocol", list(PROTOCOLS))
def test_the_upstream_and_the_rules_see_the_locale_that_was_chosen(edge, protocol):
    for _ in range(2):  # matched, then remembered
        assert told(edge, "/a", "de-AT,de;q=0.9,en;q=0.5", protocol=protocol) == ("de-CH", "<de-CH>", "german")
    assert told(edge, "/a", "fr", protocol=protocol) == ("en", "<en>", None)


@CLEAR
def test_the_tag_is_spelled_as_the_policy_spells_it(edge, protocol):
    assert told(edge, "/a", "ZH-tw", protocol=protocol)[0] == "zh-Hant"
    assert told(edge, "/a", "PT_br", protocol=protocol)[0] == "pt-BR"


@CLEAR
def test_a_rule_turns_it_off_where_it_is_on_for_all(edge, protocol):
    assert told(edge, "/off", "de", protocol=protocol) == (None, "<>", "none")


@CLEAR
def test_off_for_all_it_is_on_where_a_rule_says_so(off, protocol):
    assert told(off, "/a", "de", protocol=protocol) == (None, "<>", "none")
    assert told(off, "/on", "de", protocol=protocol) == ("de-CH", "<de-CH>", "german")


def limit_statuses(edge, path, language, protocol):
    return [fetch(edge, "GET", f"{path}/{i}", [("Accept-Language", language)], protocol=protocol).status for i in range(3)]


@pytest.fixture
def fresh(upstream):
    """Limits that nobody has counted on."""
    with Edge(locale_policy(True), upstream.url) as e:
        yield e


@CLEAR
def test_a_limit_s_expression_reads_it(fresh, protocol):
    assert limit_statuses(fresh, "/limit", "de", protocol) == [200] * 3
    assert limit_statuses(fresh, "/limit", "pt", protocol) == [200, 429, 429]


@CLEAR
def test_several_lines_count_as_one_list(edge, protocol):
    assert told(edge, "/a", "fr, en;q=0.2", "de;q=0.3", protocol=protocol)[0] == "de-CH"
    assert told(edge, "/a", "pt-PT;q=0.4", "de;q=0.3", protocol=protocol)[0] == "pt-PT"


@CLEAR
def test_without_the_header_or_with_an_empty_one_it_is_the_default(edge, protocol):
    assert told(edge, "/a", protocol=protocol)[0] == "en"
    assert told(edge, "/a", "", protocol=protocol)[0] == "en"


@CLEAR
def test_more_than_256_bytes_are_the_default_however_they_are_spread_over_lines(edge, protocol):
    longest = "de" + ",xx" * 84 + ",y"
    assert len(longest) == 256
    assert told(edge, "/a", longest, protocol=protocol)[0] == "de-CH"
    assert told(edge, "/a", longest + "y", protocol=protocol)[0] == "en"
    assert told(edge, "/a", longest[:200], "x" * 60, protocol=protocol)[0] == "en"
    assert told(edge, "/a", *["de"] * 80, protocol=protocol)[0] == "en"


@CLEAR
@pytest.mark.parametrize(
    "value", [b"\xff\xfe", b"\x80" * 256, b"de\xc3\xa9", b"*" * 200, b",;=" * 80, b"de;q=-1", b"de;q=1e0", b"q=1;de", b"%0d%0aX-Edge-Locale: xx"], ids=repr
)
def test_bytes_that_are_no_list_of_languages_are_the_default(edge, value, protocol):
    assert told(edge, "/a", value, protocol=protocol)[0] == "en"


@CLEAR
def test_what_is_no_range_leaves_the_others_standing(edge, protocol):
    assert told(edge, "/a", b"\xff, de;q=0.1, en;q=high", protocol=protocol)[0] == "de-CH"


@CLEAR
@pytest.mark.parametrize("name", ["X-Edge-Locale", "X_Edge_Locale", "x-edge_locale"])
@pytest.mark.parametrize("path", ["/a", "/off"])
def test_no_client_chooses_it_by_the_edge_s_own_header(edge, name, path, protocol):
    found = headers_at_upstream(edge, path, ["de"], protocol, sent=[(name, "forged"), (name, "twice")])
    assert [v for n, v in found if n.replace("_", "-") == "x-edge-locale"] == (["de-CH"] if path == "/a" else [])


def test_without_any_locale_in_the_policy_a_forged_one_is_taken_away(upstream):
    with Edge(policy(), upstream.url) as e:
        found = headers_at_upstream(e, "/a", ["de"], sent=[("X-Edge-Locale", "forged"), ("X_Edge_Locale", "forged")])
    assert [v for n, v in found if n.replace("_", "-") == "x-edge-locale"] == []


def count(edge, name):
    return edge.metric(f"edge_locale_{name}_total")


def test_a_header_that_was_seen_is_not_matched_again(edge):
    before = count(edge, "misses"), count(edge, "hits")
    for _ in range(5):
        told(edge, "/a", "en;q=0.123, de;q=0.321")
    assert (count(edge, "misses") - before[0], count(edge, "hits") - before[1]) == (1, 4)


def test_nothing_is_chosen_for_a_request_that_nobody_reads_it_of(edge):
    before = count(edge, "misses"), count(edge, "hits")
    told(edge, "/off", "de")
    assert fetch(edge, "GET", "/shut", [("Accept-Language", "de")]).status == 403
    assert (count(edge, "misses"), count(edge, "hits")) == before


def publish(edge, document):
    n = len(edge.matching(event="policy_loaded"))
    edge.write_policy(document)
    edge.signal(signal.SIGHUP)
    edge.wait_lines(n + 2, event="policy_loaded")


def test_another_list_of_locales_takes_effect_at_once_for_headers_that_were_seen(upstream):
    with Edge(locale_policy(True), upstream.url, settings={"EDGE_AGENTS": "2"}) as e:
        assert told(e, "/a", "de")[0] == "de-CH"
        publish(e, locale_policy(True, supported=["de", "fr"], default="fr", version=2))
        assert told(e, "/a", "de")[0] == "de"
        assert told(e, "/a", "en")[0] == "fr"
        publish(e, locale_policy(True, supported=["de", "fr"], default="de", version=3))
        assert told(e, "/a", "en")[0] == "de"
        publish(e, locale_policy(True, supported=["DE", "fr"], default="DE", version=4))
        assert told(e, "/a", "de")[0] == "DE"
        publish(e, locale_policy(False, supported=["DE", "fr"], default="DE", version=5))
        assert told(e, "/a", "de")[0] is None


def test_what_was_seen_is_remembered_across_a_policy_that_leaves_the_locales_alone(upstream):
    with Edge(locale_policy(True), upstream.url, settings={"EDGE_AGENTS": "2"}) as e:
        told(e, "/a", "de")
        publish(e, locale_policy(True, version=2))
        before = count(e, "misses")
        assert told(e, "/a", "de")[0] == "de-CH"
        assert count(e, "misses") == before


@pytest.fixture(scope="module")
def streaming():
    with PlayedUpstream() as upstream, Edge(locale_policy(True), upstream.url) as e:
        yield e, upstream


@CLEAR
def test_a_websocket_s_handshake_brings_it(streaming, protocol):
    edge, upstream = streaming
    target = f"/play/socket/{protocol}"
    with WebSocket(edge, protocol, target, ("Accept-Language", "de"), ("X-Edge-Locale", "forged")) as client:
        played = upstream.play(target)
        played.switch()
        assert client.is_open()
        assert played.header("x-edge-locale") == "de-CH"
        played.end()


@CLEAR
def test_a_stream_of_events_is_asked_for_with_it(streaming, protocol):
    edge, upstream = streaming
    target = f"/play/events/{protocol}"
    with Events(edge, protocol, target, ("Accept-Language", "pt"), ("X-Edge-Locale", "forged")) as client:
        played = upstream.play(target)
        played.begin_events(b"Connection: close\r\n")  # no later request comes over it
        assert client.open().status == 200
        assert played.header("x-edge-locale") == "pt-BR"
        played.end_events()
        assert client.ended()
        played.end()
