"""Policy as code from the shell: check, expr, fmt and diff. Exit codes, what goes to which stream, and that nothing is left behind."""

import json
import os
import re
import stat
import subprocess

import pytest

from edge import BINARY, PASSED_ON
from policies import config_rule, header_rule, limit_rule, policy, under

KNOWN = {"CLIENT_IP_SOURCE": "remote_addr"}
FINE = policy(version=3, config=[config_rule("shut", under("/shut"), block="block")], limits=[limit_rule("few", under("/few"), limit=1, period="1m", burst=1)])


def run(*args, stdin="", env=None, cwd=None):
    environment = {name: os.environ[name] for name in PASSED_ON if name in os.environ} | (KNOWN if env is None else env)
    return subprocess.run([BINARY, *map(str, args)], input=stdin, env=environment, cwd=cwd, capture_output=True, text=True, timeout=30)


@pytest.fixture
def write(tmp_path):
    def write(document, name="policy.json"):
        path = tmp_path / name
        path.write_text(document if isinstance(document, str) else json.dumps(document))
        return path

    return write


def patched(text, patch):
    """What a unified diff makes of a text whose lines it must find where it says."""
    old, new, at = text.splitlines(keepends=True), [], 0
    hunks = re.split(r"^@@ -(\d+)(?:,(\d+))? \+\d+(?:,\d+)? @@\n", patch, flags=re.M)[1:]
    for first, count, body in zip(hunks[0::3], hunks[1::3], hunks[2::3], strict=True):
        start = int(first) - (count != "0")
        new += old[at:start]
        at = start
        for line in body.replace("\n\\ No newline at end of file\n", "\0").splitlines(keepends=True):
            for part in re.findall(r"[^\0]+\0?", line):
                mark, rest = part[0], part[1:].replace("\0", "")
                if mark != "+":
                    assert old[at] == rest
                    at += 1
                if mark != "-":
                    new.append(rest)
    return "".join(new + old[at:])


def canonical(path):
    done = run("fmt", path)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


# --- every command ---

COMMANDS = ("check", "fmt", "diff", "test", "expr", "simulate", "doctor")


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_its_own_help(command):
    done = run(command, "--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"Usage: edge-spoa {command} ")
    assert run("help", command).stdout == done.stdout


@pytest.mark.parametrize(
    "args",
    [("check",), ("check", "a", "b"), ("check", "--stritc", "a"), ("check", "a", "--json=1"), ("fmt",), ("diff", "a"), ("diff", "a", "b", "c"), ("expr",),
     ("expr", "true", "--phase"), ("expr", "true", "--phase", "nothing"), ("expr", "-", "--request", "-"), ("check", "--json", "--json", "a"), ("fmt", "-x", "a")],
)  # fmt: skip
def test_wrong_usage_says_what_is_right_on_standard_error(args):
    done = run(*args)
    assert (done.returncode, done.stdout) == (2, "")
    assert f"Usage: edge-spoa {args[0]} " in done.stderr


def test_a_mistyped_option_and_command_are_guessed():
    assert "did you mean --strict?" in run("check", "--stritc", "a").stderr
    assert "did you mean check?" in run("chekc", "a").stderr


@pytest.mark.parametrize("name, value", [("VIEWER_HEADERS", "cloudflare"), ("ALLOW_REGEX", "yes"), ("CLIENT_IP_SOURCE", "somewhere")])
@pytest.mark.parametrize("args", [("check", "x.json"), ("fmt", "x.json"), ("diff", "x.json", "x.json"), ("expr", "true")])
def test_a_wrong_deployment_setting_ends_every_command(args, name, value):
    done = run(*args, env={name: value})
    assert (done.returncode, done.stdout) == (2, "")
    assert name in done.stderr


@pytest.mark.parametrize("command", ["check", "fmt", "diff", "expr"])
def test_a_command_leaves_no_file_and_changes_none(command, write, tmp_path):
    path = write(FINE)
    before = (path.stat().st_mtime_ns, path.read_bytes())
    done = run(command, *{"diff": (path, path), "expr": ("true",)}.get(command, (path,)), cwd=tmp_path)
    assert done.returncode == 0
    assert os.listdir(tmp_path) == [path.name]
    assert (path.stat().st_mtime_ns, path.read_bytes()) == before


# --- check ---


def faults(path, **kwargs):
    done = run("check", path, "--json", **kwargs)
    return done.returncode, json.loads(done.stdout)


def test_a_fault_has_its_line_and_column_in_the_file(write):
    text = json.dumps(FINE, indent=2).replace('"block": "block"', '"block": "maybe"')
    code, report = faults(write(text))
    [fault] = report["errors"]
    line = text.splitlines()[fault["line"] - 1]
    assert (code, fault["path"]) == (1, "/config_rules/0/settings/block")
    assert line[fault["column"] - 1 :].startswith('"maybe"')


@pytest.mark.parametrize("before", ["", "é", "\\u00e9", "\\n", '\\"', "😀"])
def test_a_fault_in_an_expression_is_found_behind_escapes(write, before):
    document = {**FINE, "config_rules": [config_rule("a", "@", block="log")]}
    text = json.dumps(document, ensure_ascii=False).replace('"@"', f'"http.host eq \\"{before}\\" and http.hots eq \\"x\\""')
    if before == '\\"':
        text = text.replace('\\"\\"\\"', '\\"\\\\\\"\\"')
    code, report = faults(write(text))
    [fault] = [e for e in report["errors"] if e["code"] == "expr_unknown_field"]
    raw = text.encode().splitlines()[fault["line"] - 1]
    assert code == 1
    assert raw[fault["column"] - 1 :].startswith(b"http.hots")
    assert fault["expression"]["column"] > 0


def test_what_is_missing_is_shown_at_what_it_is_missing_from(write):
    text = '{\n "schema": 4,\n "version": 1,\n "global": {"defaults":\n   {"responses": {}}}\n}'
    _, report = faults(write(text))
    assert {(e["line"], e["column"]) for e in report["errors"] if e["code"] == "missing"} == {(5, 18)}


def test_an_unknown_member_is_shown_at_its_name(write):
    text = '{"schema": 4, "version": 1, "golbal": {}, ' + json.dumps(FINE)[1:].replace('"schema": 4, "version": 3, ', "")
    _, report = faults(write(text))
    [fault] = report["errors"]
    assert (fault["code"], fault["line"], fault["column"]) == ("unknown_member", 1, 1 + text.index('"golbal"'))


def test_text_has_place_path_message_and_code_in_the_order_of_the_file(write):
    rules = [config_rule("a", "http.host equals \"x\"", block="log"), config_rule("b", "true", blok="log")]
    path = write({**FINE, "config_rules": rules, "request_header_rules": [header_rule("h", "true", ("X-Edge-Mine", "1"))]})
    done = run("check", path)
    assert (done.returncode, done.stdout) == (1, "")
    *places, summary = done.stderr.splitlines()
    assert places[0].startswith(f"{path}:1:") and ": error: /config_rules/0/expression: " in places[0] and places[0].endswith("[expr_unknown_operator]")
    assert places[1] == '    http.host equals "x"' and places[2] == "              ^ column 11"
    assert "/config_rules/1/settings/blok" in places[3] and "/request_header_rules/0/ops/0/name" in places[4]
    assert summary == f"{path}: not valid: 3 errors, 0 warnings"


def test_a_document_that_is_no_json_has_its_place(write):
    code, report = faults(write('{\n "schema": 4,,\n}'))
    [fault] = report["errors"]
    assert (code, fault["code"], fault["line"]) == (1, "syntax", 2)
    assert 'policy.json:2:' in run("check", write('{\n "schema": 4,,\n}')).stderr


def test_yaml_gets_a_hint(write):
    assert "YAML" in run("check", write("schema: 4\nversion: 1\n")).stderr


@pytest.mark.parametrize("wrap", [lambda p: {**p, "tests": []}, lambda p: {"envelope": {"active": p}, "tests": []}])
def test_tests_in_a_policy_are_refused_with_a_hint(write, wrap):
    done = run("check", write(wrap(FINE)))
    assert done.returncode == 1
    assert "edge-spoa test" in done.stderr


def test_an_unknown_deployment_is_a_warning_that_strict_counts(write):
    path = write(FINE)
    code, report = faults(path, env={})
    assert (code, [w["code"] for w in report["warnings"]]) == (0, ["deployment_unknown"])
    strict = run("check", path, "--strict", env={})
    assert (strict.returncode, strict.stdout.rpartition("; ")[2]) == (1, "1 warning, a fault with --strict\n")
    assert run("check", path, "--strict").returncode == 0
    assert faults(path)[1]["warnings"] == []


def test_a_field_that_the_deployment_lacks_is_refused_there_only(write):
    path = write({**FINE, "config_rules": [config_rule("a", 'ip.src.country eq "DE"', block="log")]})
    assert run("check", path, env={}).returncode == 0
    code, report = faults(path)
    assert (code, [e["code"] for e in report["errors"]]) == (1, ["expr_field_unavailable"])


def test_a_regular_expression_needs_allow_regex(write):
    path = write({**FINE, "config_rules": [config_rule("a", 'http.host matches "^a"', block="log")]})
    for env in ({}, KNOWN):
        assert [e["code"] for e in faults(path, env=env)[1]["errors"]] == ["expr_regex"]
        assert run("check", path, env={**env, "ALLOW_REGEX": "true"}).returncode == 0


# --- expr ---


def test_expr_prints_text_and_tree():
    done = run("expr", '  http.host   eq "a.example"', "--json")
    assert (done.returncode, done.stderr) == (0, "")
    tree = {"field": "http.host", "operator": "eq", "value": "a.example"}
    assert json.loads(done.stdout) == {"text": 'http.host eq "a.example"', "ast": tree}


def test_expr_shows_a_person_the_place_and_a_program_the_codes():
    done = run("expr", 'http.host eq "a" and http.hots eq "b"')
    [error] = json.loads(done.stdout)["errors"]
    assert done.returncode == 1
    assert (error["code"], error["line"], error["column"]) == ("expr_unknown_field", 1, 22)
    assert done.stderr.splitlines()[1:] == ['    http.host eq "a" and http.hots eq "b"', " " * 25 + "^ column 22"]
    assert run("expr", 'http.host eq "a" and http.hots eq "b"', "--json").stderr == ""


@pytest.mark.parametrize("request_ip, wanted", [("10.1.2.3", True), ("192.0.2.1", False), (None, False)])
def test_expr_decides_for_a_request(request_ip, wanted):
    request = {"method": "GET", "host": "a.example", "path": "/"} | ({"ip": request_ip} if request_ip else {})
    done = run("expr", "ip.src in {10.0.0.0/8}", "--request", "-", "--json", stdin=json.dumps(request))
    assert (done.returncode, json.loads(done.stdout)["result"]) == (0, wanted)


def test_expr_tells_an_error_from_no():
    request = {"method": "GET", "host": "a.example", "path": "/", "headers": {"x": "a" * 60 + "b"}}
    text = 'http.request.headers["x"] matches "^(a|aa)+$"'
    done = run("expr", text, "--request", "-", "--json", stdin=json.dumps(request), env={"ALLOW_REGEX": "true"})
    assert (done.returncode, json.loads(done.stdout)["result"]) == (0, "error")


@pytest.mark.parametrize("request_text, code", [("{", 1), ('{"method": "GET"}', 1), ('{"method": 1, "host": "a", "path": "/"}', 1)])
def test_expr_refuses_a_faulty_request(request_text, code):
    done = run("expr", "true", "--request", "-", stdin=request_text)
    assert (done.returncode, done.stdout) == (code, "")
    assert done.stderr != ""


def test_expr_of_a_request_that_is_not_there_is_a_usage_error():
    assert run("expr", "true", "--request", "/nonexistent").returncode == 2


def test_expr_asks_for_the_fields_of_a_phase():
    text = 'http.request.jwt.claims["sub"] eq "a"'
    assert run("expr", text).returncode == 0
    assert run("expr", text, "--phase", "rate_limit").returncode == 0
    done = run("expr", text, "--phase", "config", "--json")
    assert (done.returncode, json.loads(done.stdout)["errors"][0]["code"]) == (1, "expr_field_unavailable")


def test_expr_reads_standard_input_and_refuses_what_is_too_long():
    assert json.loads(run("expr", "-", stdin="true\n").stdout)["text"] == "true"
    done = run("expr", "-", "--json", stdin='http.host eq "' + "a" * 5000 + '"')
    assert (done.returncode, json.loads(done.stdout)["errors"][0]["code"]) == (1, "limit_exceeded")


def test_expr_says_what_an_expression_costs():
    text = 'http.host eq "a" and (http.host eq "a" or ip.src in {10.0.0.0/8})'
    cost = json.loads(run("expr", text, "--cost", "--json").stdout)["cost"]
    assert cost == {"conditions": 3, "conditions_max": 32, "predicates": 2, "text_bytes": len(text), "text_bytes_max": 4096, "indexed": True}
    assert json.loads(run("expr", "ip.src in {10.0.0.0/8}", "--cost", "--json").stdout)["cost"]["indexed"] is False
    assert "3 of 32" in run("expr", text, "--cost").stderr


def test_expr_lists_fields_with_what_the_deployment_has():
    def available(env):
        return {f["name"]: f["available"] for f in json.loads(run("expr", "--fields", "--json", env=env).stdout)["fields"]}

    assert all(available({}).values())
    here = available(KNOWN)
    assert here["http.host"] and here["ip.src"] and not here["ip.src.country"]
    text = run("expr", "--fields").stdout
    assert all(name in text for name in here)
    assert "ip.src.country  string  NOT AVAILABLE HERE" in text


# --- fmt ---


def test_fmt_is_its_own_result_and_changes_no_meaning(write, tmp_path):
    path = write(FINE)
    text = canonical(path)
    again = write(text, "again.json")
    assert canonical(again) == text
    assert json.loads(text) == FINE
    assert run("diff", path, again).returncode == 0


def test_fmt_keeps_each_expression_in_its_form(write):
    tree = {"field": "http.host", "operator": "eq", "value": "a"}
    document = policy(config=[config_rule("text", 'http.host   eq "a"', block="log"), config_rule("tree", tree, block="log")])
    rules = json.loads(canonical(write(document)))["config_rules"]
    assert [r["expression"] for r in rules] == ['http.host eq "a"', tree]


def test_fmt_check_names_the_file_that_is_not_canonical(write):
    path = write(FINE)
    done = run("fmt", "--check", path)
    assert (done.returncode, done.stdout) == (1, f"{path}\n")
    good = write(canonical(path), "good.json")
    done = run("fmt", "--check", good)
    assert (done.returncode, done.stdout) == (0, "")


def test_fmt_d_is_a_patch(write, tmp_path):
    path = write(json.dumps(FINE, indent=4))
    done = run("fmt", "-d", path)
    assert done.returncode == 0 and done.stdout.startswith(f"--- {path}\n+++ ")
    assert patched(path.read_text(), done.stdout) == canonical(path)
    assert run("fmt", "-d", write(canonical(path), "good.json")).stdout == ""


def test_fmt_d_of_thousands_of_lines_is_a_patch_too(write):
    document = {**FINE, "config_rules": [config_rule(f"r{i}", under(f"/{i}"), block="log") for i in range(200)]}
    for path in (write(json.dumps(document, indent=4)), write(json.dumps(document, indent=2).replace('"id"', '"id" '))):
        assert patched(path.read_text(), run("fmt", "-d", path).stdout) == canonical(path)


def test_fmt_w_rewrites_in_one_step_and_keeps_mode_and_link(write, tmp_path):
    path = write(FINE)
    path.chmod(0o640)
    link = tmp_path / "link.json"
    link.symlink_to(path)
    wanted, inode = canonical(path), path.stat().st_ino
    done = run("fmt", "-w", link)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert path.read_text() == wanted and link.is_symlink()
    assert stat.S_IMODE(path.stat().st_mode) == 0o640 and path.stat().st_ino != inode
    assert sorted(os.listdir(tmp_path)) == ["link.json", "policy.json"]
    inode = path.stat().st_ino
    assert run("fmt", "-w", path).returncode == 0
    assert path.stat().st_ino == inode


def test_fmt_refuses_what_is_no_policy_and_leaves_it(write):
    path = write({**FINE, "schema": "four"})
    before = path.read_bytes()
    done = run("fmt", "-w", path)
    assert (done.returncode, done.stdout) == (1, "")
    assert "/schema" in done.stderr and path.read_bytes() == before
    assert run("fmt", "/nonexistent").returncode == 2


# --- diff ---


def test_diff_says_what_changes_rule_by_rule(write):
    first, second, fifth, third = (config_rule(name, under(f"/{name}"), block="log") for name in "abec")
    old = write({**FINE, "config_rules": [first, second, fifth, third]}, "old.json")
    changed = config_rule("a", under("/a"), block="block")
    new = write({**FINE, "version": 4, "config_rules": [third, changed, fifth, config_rule("d", "true", block="none")]}, "new.json")
    done = run("diff", old, new)
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout.splitlines() == [
        "~ version: 3 -> 4",
        '~ config_rules "a" settings.block: "log" -> "block"',
        '- config_rules "b"',
        '    expression: starts_with(http.request.uri.path, "/b")',
        '    settings: {"block": "log"}',
        '+ config_rules "d"',
        '    expression: true',
        '    settings: {"block": "none"}',
        '> config_rules "c" moved from place 4 to 1, the first',
    ]
    report = json.loads(run("diff", old, new, "--json").stdout)
    assert (report["same"], [c["change"] for c in report["changes"]]) == (False, ["changed", "changed", "removed", "added", "moved"])


def test_diff_tells_a_rule_that_others_went_round_from_one_that_changed_its_place(write):
    rules = [config_rule(name, under(f"/{name}"), block="log") for name in "abc"]
    done = run("diff", write({**FINE, "config_rules": rules}, "old.json"), write({**FINE, "config_rules": rules[::-1]}, "new.json"))
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout.splitlines() == [
        '> config_rules "b" moved among its neighbours at place 2, behind "c"',
        '> config_rules "a" moved from place 1 to 3, behind "b"',
    ]


def test_diff_of_the_same_policy_in_another_form_is_none(write):
    old = write(FINE, "old.json")
    done = run("diff", old, write({"exported_at": "2026-01-01T00:00:00Z", "active": json.loads(canonical(old))}, "new.json"), "--json")
    assert (done.returncode, json.loads(done.stdout)) == (0, {"same": True, "changes": []})


def test_diff_refuses_what_is_no_policy(write):
    good, bad = write(FINE, "good.json"), write({**FINE, "schema": "four"}, "bad.json")
    for pair in ((good, bad), (bad, good), (good, "/nonexistent")):
        done = run("diff", *pair)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr != ""
