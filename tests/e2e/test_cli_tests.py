"""Policies asked offline: edge-spoa simulate with --explain and --against, and edge-spoa test."""

import json
import os
import subprocess
import xml.etree.ElementTree as ElementTree

import pytest

from edge import BINARY, PASSED_ON
from policies import config_rule, header_rule, limit_rule, policy, under

POLICY = policy(
    config=[config_rule("shut", under("/shut"), block="block"), config_rule("watch", under("/watch"), block="log")],
    limits=[limit_rule("few", under("/few"), limit=1, period="1m", burst=1)],
    headers=[header_rule("mark", under("/mark"), ("X-Mark", "1"))],
)
REQUEST = {"method": "GET", "host": "edge.test", "path": "/mark/1?x=1", "ip": "192.0.2.1"}


def case(name, path, **expect):
    return {"name": name, "request": {**REQUEST, "path": path}, "expect": expect}


RIGHT = case("a shut door", "/shut/1", rejected="block", status=403)
WRONG = case("a limit <&> \"names\"", "/mark", rate_limit_rules=["few"])


@pytest.fixture
def write(tmp_path):
    def write_file(name, document):
        path = tmp_path / name
        path.write_text(document if isinstance(document, str) else json.dumps(document))
        return path

    return write_file


@pytest.fixture
def tested(write):
    return lambda *tests: write("tested.json", {"envelope": POLICY, "tests": list(tests)})


def run(*args, stdin="", env=None):
    environment = {name: os.environ[name] for name in PASSED_ON if name in os.environ} | (env or {})
    return subprocess.run([BINARY, *map(str, args)], input=stdin, env=environment, capture_output=True, text=True, timeout=30)


# --- simulate ---


def test_an_explanation_adds_one_key_and_changes_no_other(write):
    path = write("policy.json", POLICY)
    bare = json.loads(run("simulate", path, stdin=json.dumps(REQUEST)).stdout)
    explained = json.loads(run("simulate", path, "--explain", stdin=json.dumps(REQUEST)).stdout)
    explanation = explained.pop("explain")
    assert explained == bare
    shut = explanation["config_rules"][0]
    assert (shut["id"], shut["result"], shut["condition"]["value"]) == ("shut", False, "/mark/1")
    assert explanation["rate_limit_rules"][0]["reason"] == "no_match"
    assert explanation["set_by"]["block"] is None


def test_a_policy_in_an_envelope_is_explained_too(write):
    path = write("envelope.json", {"active": POLICY})
    explained = json.loads(run("simulate", path, "--explain", stdin=json.dumps({**REQUEST, "path": "/watch"})).stdout)
    assert explained["explain"]["set_by"]["block"] == "watch"


def test_two_policies_are_held_against_each_other(write):
    other = policy(config=[config_rule("shut", under("/mark"), block="block")])
    old, new = write("old.json", POLICY), write("new.json", other)
    done = run("simulate", old, "--against", new, stdin=json.dumps(REQUEST))
    assert done.returncode == 1
    report = json.loads(done.stdout)
    assert report["same"] is False
    assert {"path": "/status", "a": 0, "b": 403} in report["differences"]
    same = run("simulate", old, "--against", old, stdin=json.dumps(REQUEST))
    assert (same.returncode, json.loads(same.stdout)) == (0, {"same": True, "differences": []})


def test_faults_of_the_other_policy_name_its_file(write):
    done = run("simulate", write("old.json", POLICY), "--against", write("new.json", {"schema": 6}), stdin=json.dumps(REQUEST))
    assert (done.returncode, done.stdout) == (1, "")
    assert "new.json" in done.stderr and "old.json" not in done.stderr


def test_a_request_that_cannot_be_read_is_a_usage_error(write, tmp_path):
    done = run("simulate", write("policy.json", POLICY), "--request", tmp_path / "absent.json")
    assert (done.returncode, done.stdout) == (2, "")
    assert "absent.json" in done.stderr


def test_faults_of_a_request_have_their_place(write):
    done = run("simulate", write("policy.json", POLICY), stdin='{"method": "GET",\n "host": "a", "path": "/", "ip": "x"}')
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("standard input:2:") and "/ip" in done.stderr


def test_explain_and_against_exclude_each_other(write):
    path = write("policy.json", POLICY)
    assert run("simulate", path, "--explain", "--against", path).returncode == 2


# --- test ---


def test_passing_tests(tested):
    done = run("test", tested(RIGHT))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith("1 test: 1 passed, 0 failed\n")


def test_a_failing_test_is_one_line_with_expected_actual_and_the_rule_that_decided(tested):
    done = run("test", tested(RIGHT, WRONG))
    assert (done.returncode, done.stderr) == (1, "")
    line, summary = done.stdout.splitlines()
    assert line.startswith('FAIL: a limit <&> "names": /rate_limit_rules: expected ["few"], got []; few: it does not match: ')
    assert line.endswith('is false: the request has "/mark"')
    assert summary.endswith("2 tests: 1 passed, 1 failed")


def test_results_as_json(tested):
    done = run("test", tested(RIGHT, WRONG), "--json")
    report = json.loads(done.stdout)
    assert done.returncode == 1
    assert set(report) == {"passed", "failed", "results", "uncovered_rules"}
    assert (report["passed"], report["failed"]) == (1, 1)
    assert report["results"][0] == {"name": "a shut door", "ok": True, "failures": []}
    failure = report["results"][1]["failures"][0]
    assert (failure["path"], failure["want"], failure["got"]) == ("/rate_limit_rules", ["few"], [])
    assert report["uncovered_rules"] == ["watch", "few"]


def test_tests_in_a_file_of_their_own(write):
    path, tests = write("policy.json", {"active": POLICY}), write("tests.json", {"tests": [RIGHT]})
    assert run("test", path, "--tests", tests).returncode == 0


def test_a_pattern_chooses_tests_by_name(tested):
    assert run("test", tested(RIGHT, WRONG), "--run", "a shut*").returncode == 0
    assert "2 tests" in run("test", tested(RIGHT, WRONG), "--run=a *").stdout


def test_no_test_at_all_is_fine_unless_it_must_not_be(tested):
    path = tested(RIGHT)
    assert run("test", path, "--run", "none").returncode == 0
    done = run("test", path, "--run", "none", "--fail-on-empty")
    assert done.returncode == 1 and "no test ran" in done.stderr
    assert run("test", path, "--fail-on-empty").returncode == 0


def test_coverage_is_told(tested):
    path = tested(RIGHT, case("a mark", "/mark", upstream_headers={"X-Mark": "1"}))
    done = run("test", path, "--coverage")
    assert done.returncode == 0
    assert "not covered: watch\nnot covered: few\n" in done.stdout and "2 of 4 enabled rules covered (50 %)" in done.stdout
    report = json.loads(run("test", path, "--coverage", "--json").stdout)
    assert report["coverage"] == {"rules": 4, "covered": 2, "percent": 50}


@pytest.mark.parametrize("percent, status", [("0", 0), ("50", 0), ("51", 1), ("100", 1), ("101", 2), ("x", 2), ("-1", 2)])
def test_too_little_coverage_fails(tested, percent, status):
    path = tested(RIGHT, case("a mark", "/mark", upstream_headers={"X-Mark": "1"}))
    done = run("test", path, "--fail-under", percent)
    assert done.returncode == status
    assert (done.stderr != "") == (status != 0)


def test_junit_xml_is_well_formed_whatever_names_hold(tested, tmp_path):
    out = tmp_path / "junit.xml"
    done = run("test", tested(RIGHT, WRONG, case("\ufffe \U0001f600 ]]> '", "/", status=1)), "--junit", out)
    assert done.returncode == 1
    suite = ElementTree.parse(out).getroot().find("testsuite")
    assert (suite.get("tests"), suite.get("failures")) == ("3", "2")
    names = [each.get("name") for each in suite.findall("testcase")]
    assert names == ["a shut door", 'a limit <&> "names"', "? \U0001f600 ]]> '"]
    assert [len(each.findall("failure")) for each in suite.findall("testcase")] == [0, 1, 1]
    assert 'expected ["few"]' in suite.findall("testcase")[1].find("failure").get("message")


def test_junit_xml_on_standard_output_stands_alone(tested):
    done = run("test", tested(RIGHT), "--junit", "-")
    assert done.returncode == 0
    assert ElementTree.fromstring(done.stdout).tag == "testsuites"
    assert "1 passed" in done.stderr


def test_a_junit_file_that_cannot_be_written_is_said(tested, tmp_path):
    done = run("test", tested(RIGHT), "--junit", tmp_path / "absent" / "junit.xml")
    assert done.returncode == 2 and "cannot be written" in done.stderr


def test_json_and_junit_do_not_share_standard_output(tested):
    assert run("test", tested(RIGHT), "--json", "--junit", "-").returncode == 2


def test_nothing_is_written_but_what_is_asked_for(tested, tmp_path):
    path = tested(RIGHT)
    before = sorted(tmp_path.iterdir())
    run("test", path, "--coverage")
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize(
    "document, place",
    [
        ({"envelope": {"schema": 6}, "tests": []}, "/envelope/version"),
        ({"envelope": {"active": {"schema": 6}}, "tests": []}, "/envelope/active/version"),
        ({"envelope": POLICY, "tests": [], "test": []}, "/test"),
        ({"envelope": POLICY}, "/tests"),
        ({"envelope": POLICY, "tests": {}}, "/tests"),
        ({"envelope": POLICY, "tests": [{**RIGHT, "expect": {}}]}, "/tests/0/expect"),
        ({"envelope": POLICY, "tests": [{**RIGHT, "request": {**REQUEST, "ip": 1}}]}, "/tests/0/request/ip"),
        ({**POLICY, "tests": [RIGHT]}, "/tests"),
    ],
)
def test_faults_have_their_place_and_nothing_runs(write, document, place):
    path = write("tested.json", document)
    done = run("test", path)
    assert (done.returncode, done.stdout) == (1, "")
    assert f" {place}: " in done.stderr
    done = run("test", path, "--json")
    assert done.returncode == 1
    assert place in [error["path"] for error in json.loads(done.stdout)["errors"]]


def test_faults_of_a_tests_file_name_that_file(write):
    done = run("test", write("policy.json", POLICY), "--tests", write("tests.json", {"tests": [RIGHT, RIGHT], "more": 1}))
    assert done.returncode == 1
    assert "tests.json" in done.stderr and "policy.json" not in done.stderr and "/more" in done.stderr


def test_a_policy_without_tests_is_a_usage_error(write):
    done = run("test", write("policy.json", POLICY))
    assert done.returncode == 2 and "--tests" in done.stderr


def test_tests_given_twice_are_a_usage_error(tested, write):
    assert run("test", tested(RIGHT), "--tests", write("tests.json", {"tests": [RIGHT]})).returncode == 2


def test_a_file_that_cannot_be_read_is_a_usage_error(tmp_path, write):
    assert run("test", tmp_path / "absent.json").returncode == 2
    assert run("test", write("policy.json", POLICY), "--tests", tmp_path / "absent.json").returncode == 2


@pytest.mark.parametrize("args", [["test"], ["test", "a", "b"], ["test", "--jsn", "a"], ["test", "a", "--tests"]])
def test_wrong_usage_of_test_exits_with_2(args):
    done = run(*args)
    assert (done.returncode, done.stdout) == (2, "")
