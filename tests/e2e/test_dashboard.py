"""What watches an edge asks for what an agent really says: the dashboard and the alert rules of compose/, held against schemas/metrics.def, which
test_metrics.py holds against a running agent."""

import json
import re
import shutil
import subprocess
import sys

import pytest

from edge import ROOT

sys.path.insert(0, str(ROOT / "schemas/reference"))
import tables  # noqa: E402

PROMETHEUS = ROOT / "compose/prometheus"
DASHBOARD = json.loads((ROOT / "compose/grafana/edge.json").read_text())
ALERTS = (PROMETHEUS / "alerts.yml").read_text()
OF_SCRAPES = {"job", "instance", "edge"}  # compose/prometheus/prometheus.yml gives these
OF_HISTOGRAMS = ("_bucket", "_count")
METRIC = re.compile(r"\b((?:edge|up)(?:_\w+)?)\b(?:\{([^}]*)\})?")
MATCHER = re.compile(r'(\w+)\s*(=~|!~|!=|=)\s*"((?:[^"\\]|\\.)*)"')
GROUPING = re.compile(r"\b(?:by|without|on|ignoring)\s*\(([^)]*)\)")
FAMILIES = {m["name"]: m for m in tables.metrics()}


def promtool(*args, folder=PROMETHEUS):
    """Its output, once it has said yes."""
    if shutil.which("promtool") is None:
        pytest.skip("there is no promtool (Debian's package prometheus)")
    done = subprocess.run(["promtool", *args], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60)
    assert done.returncode == 0, done.stdout
    return done.stdout


def panels():
    return [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]


def targets():
    """(title, expression, legend) of every query of the dashboard."""
    found = [(panel["title"], target["expr"], target["legendFormat"]) for panel in panels() for target in panel["targets"]]
    return found + [(a["name"], a["expr"], a["titleFormat"]) for a in DASHBOARD["annotations"]["list"]]


def alerts():
    """(name, expression, the rest) of every alert."""
    found = []
    for text in re.split(r"^      - alert: ", ALERTS, flags=re.M)[1:]:
        name, _, body = text.partition("\n")
        expression = re.search(r"^        expr: (?:\|-\n((?: {10}.*\n)+)|(.*)\n)", body, re.M)
        found.append((name, expression[1] or expression[2], body[expression.end() :]))
    return found


def asked(expression):
    """[(family, {label: (operator, value)})] of an expression."""
    found = []
    for name, inside in METRIC.findall(GROUPING.sub("", expression)):
        if name == "edge":
            continue
        for suffix in OF_HISTOGRAMS:
            bare = name.removesuffix(suffix)
            name = bare if FAMILIES.get(bare, {}).get("type") == "histogram" else name
        found.append((name, {label: (sign, value) for label, sign, value in MATCHER.findall(inside)}))
    assert found, f"no metric in {expression}"
    return found


def values():
    """{(family, label): the values that a series may have}, for those that a table lists."""
    outcomes = {}
    for phase, _, _, name, _ in tables.rows("rule_counts", "RULE_COUNT_ROW"):
        outcomes.setdefault(phase, set()).add(name)
    return {
        ("edge_responses_total", "origin"): {"edge", "upstream"},
        ("edge_decisions_total", "decision"): {name for _, name, _ in tables.rows("decisions", "DECISION_ROW")},
        ("edge_upstream_errors_total", "cause"): {name for _, name, _, _ in tables.rows("upstream_errors", "UPSTREAM_ERROR_ROW")},
        ("edge_config_rule_total", "outcome"): outcomes["CONFIG"],
        ("edge_ratelimit_rule_total", "outcome"): outcomes["RATE"],
        ("edge_header_rule_total", "outcome"): outcomes["HEADER"],
    }


def check(expression, more_labels):
    known, of_all = values(), set()
    for name, matchers in asked(expression):
        labels = set(FAMILIES[name]["labels"]) if name != "up" else set()
        of_all |= labels
        assert set(matchers) <= labels | OF_SCRAPES, f"{name} has no label {set(matchers) - labels - OF_SCRAPES}"
        for label, (sign, value) in matchers.items():
            if sign in ("=", "!=") and (name, label) in known:
                assert value in known[name, label], f'{name} never has {label}="{value}"'
    grouped = {label.strip() for group in GROUPING.findall(expression) for label in group.split(",")}
    assert grouped | more_labels <= of_all | OF_SCRAPES, f"{(grouped | more_labels) - of_all - OF_SCRAPES} are labels of nothing in {expression}"


@pytest.mark.parametrize("title, expression, legend", targets())
def test_a_query_of_the_dashboard_asks_for_what_agents_say(title, expression, legend):
    check(expression, set(re.findall(r"{{(\w+)}}", legend)))


@pytest.mark.parametrize("name, expression, rest", alerts(), ids=lambda v: v if re.fullmatch(r"\w+", v) else "")
def test_an_alert_asks_for_what_agents_say_and_says_what_to_look_at(name, expression, rest):
    check(expression, set(re.findall(r"\$labels\.(\w+)", rest)))
    assert re.search(r"^          severity: (page|ticket)$", rest, re.M), "no severity"
    for text in ("summary", "description"):
        assert re.search(rf"^          {text}: \S", rest, re.M), f"no {text}"
    for family in re.findall(r"\bedge_\w+", rest):
        assert family in FAMILIES, f"the description names {family}, which no agent says"


def test_every_query_of_the_dashboard_can_be_parsed(tmp_path):
    rules = "".join(
        f"      - record: q{i}\n        expr: {json.dumps(expr.replace('$__rate_interval', '1m').replace('$edge', 'a'))}\n" for i, (_, expr, _) in enumerate(targets())
    )
    (tmp_path / "rules.yml").write_text(f"groups:\n  - name: dashboard\n    rules:\n{rules}")
    assert f"{len(targets())} rules found" in promtool("check", "rules", "rules.yml", folder=tmp_path)


def test_each_alert_fires_when_it_must_and_not_otherwise():
    promtool("test", "rules", "alerts_test.yml")
    cases = (PROMETHEUS / "alerts_test.yml").read_text()
    for name, _, _ in alerts():
        assert f'alertname="{name}"' in cases, f"{name} has no case"


def test_the_configuration_of_prometheus_is_one():
    assert f"{len(alerts())} rules found" in promtool("check", "rules", "alerts.yml")
    promtool("check", "config", "prometheus.yml")


def test_the_dashboard_is_one_that_grafana_loads():
    ids = [panel["id"] for panel in DASHBOARD["panels"]]
    assert len(ids) == len(set(ids)) and len(panels()) >= 20
    taken = set()
    for panel in DASHBOARD["panels"]:
        at = panel["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert at["x"] + at["w"] <= 24 and not cells & taken, f"{panel['title']} lies over another panel"
        taken |= cells
    for panel in panels():
        assert panel["targets"], panel["title"]
        assert panel["datasource"]["uid"] == "${datasource}", panel["title"]
