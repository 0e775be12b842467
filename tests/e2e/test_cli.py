"""The commands that need no edge: check, simulate, --help, --version; and how run and serve refuse their settings."""

import fcntl
import json
import os
import re
import signal
import struct
import subprocess
import termios

import pytest

from edge import BINARY, HAPROXY, PASSED_ON, ROOT, poll
from policies import config_rule, header_rule, limit_rule, policy, under

FINE = policy(
    version=3,
    config=[config_rule("shut", under("/shut"), block="block")],
    limits=[limit_rule("few", under("/few"), limit=1, period="1m", burst=1)],
    headers=[header_rule("mark", under("/mark"), ("X-Mark", "1"))],
)
RUN = {"UPSTREAM_URL": "http://127.0.0.1:9", "POLICY_FILE": "/nonexistent", "CLIENT_IP_SOURCE": "remote_addr", "EDGE_HAPROXY": HAPROXY}


def run(*args, stdin="", env=None):
    environment = {name: os.environ[name] for name in PASSED_ON if name in os.environ} | (env or {})
    return subprocess.run([BINARY, *map(str, args)], input=stdin, env=environment, capture_output=True, text=True, timeout=30)


@pytest.fixture
def policy_file(tmp_path):
    def write(document):
        path = tmp_path / "policy.json"
        path.write_text(document if isinstance(document, str) else json.dumps(document))
        return path

    return write


# --- check ---


# A deployment that is known: without one, check warns that it is not.
KNOWN = {"CLIENT_IP_SOURCE": "remote_addr"}


def test_check_of_a_valid_policy(policy_file):
    done = run("check", policy_file(FINE), env=KNOWN)
    assert (done.returncode, done.stderr) == (0, "")
    assert "schema 4, version 3" in done.stdout


def test_check_of_a_valid_policy_as_json(policy_file):
    done = run("check", policy_file(FINE), "--json", env=KNOWN)
    assert done.returncode == 0
    assert json.loads(done.stdout) == {"errors": [], "warnings": []}


FAULTS = [
    (config_rule("a", 'http.request.uri.pth eq "/"', block="block"), "expr_unknown_field", "/config_rules/0/expression"),
    (config_rule("a", "http.host eq", block="block"), "expr_syntax", "/config_rules/0/expression"),
    (config_rule("a", "true", blok="block"), "unknown_member", "/config_rules/0/settings/blok"),
    (config_rule("a", "true", block="maybe"), "bad_value", "/config_rules/0/settings/block"),
    (config_rule("a", "true", responses={"forbidden": "nowhere"}), "unknown_reference", "/config_rules/0/settings/responses/forbidden"),
    (config_rule("a", "true", cors_policy="web"), "unknown_reference", "/config_rules/0/settings/cors_policy"),
]


@pytest.mark.parametrize("rule, code, path", FAULTS)
def test_check_names_code_and_place_of_a_fault(policy_file, rule, code, path):
    done = run("check", policy_file(policy(config=[rule])), "--json")
    assert done.returncode == 1
    assert [(e["code"], e["path"]) for e in json.loads(done.stdout)["errors"]] == [(code, path)]
    text = run("check", policy_file(policy(config=[rule])))
    assert (text.returncode, text.stdout) == (1, "")
    assert code in text.stderr and path in text.stderr


def test_check_reports_all_faults_at_once(policy_file):
    document = policy(
        config=[config_rule("a", "http.hots eq \"x\"", block="block"), config_rule("a", "true", block="x")],
        headers=[header_rule("h", "true", ("X-Edge-Mine", "1"))],
    )
    found = {(e["code"], e["path"]) for e in json.loads(run("check", policy_file(document), "--json").stdout)["errors"]}
    assert {
        ("expr_unknown_field", "/config_rules/0/expression"),
        ("bad_value", "/config_rules/1/settings/block"),
        ("reserved", "/request_header_rules/0/ops/0/name"),
    } <= found


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "null", '{"schema":4}', '{"schema":99,"version":1}', '{"a":1,"a":2}', "[" * 100_000], ids=range(8)
)
def test_check_of_what_is_no_policy_fails(policy_file, text):
    done = run("check", policy_file(text), "--json")
    assert done.returncode in (1, 2)
    assert len(json.loads(done.stdout)["errors"]) >= 1


def test_check_of_a_file_that_cannot_be_read_is_a_usage_error(tmp_path):
    for path in (tmp_path / "absent.json", tmp_path):
        done = run("check", path)
        assert done.returncode == 2
        assert str(path) in done.stderr


@pytest.mark.parametrize("args", [["check"], ["check", "a", "b"], ["check", "--jsn", "a"], ["simulate"], ["nothing"], [], ["run", "x"]])
def test_wrong_usage_exits_with_2_and_says_so(args):
    done = run(*args)
    assert (done.returncode, done.stdout) == (2, "")
    assert "edge-spoa" in done.stderr


def test_the_demo_policy_is_valid_and_without_warnings():
    done = run("check", ROOT / "compose/demo/policy.json", "--json", env=KNOWN)
    assert (done.returncode, json.loads(done.stdout)) == (0, {"errors": [], "warnings": []})


# --- simulate ---

REQUEST = {"method": "GET", "host": "edge.test", "path": "/mark/1?x=1", "ip": "192.0.2.1", "headers": {"accept": "*/*", "x-two": ["a", "b"]}}


def simulate(policy_path, request, *args):
    done = run("simulate", policy_path, *args, stdin=json.dumps(request))
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)


def test_simulate_has_all_members_whatever_happens(policy_file):
    path = policy_file(FINE)
    members = {
        "rejected", "status", "config_rules", "settings", "rate_limit_rules", "request_header_rules", "upstream_headers",
        "response_headers", "locale",
    }  # fmt: skip
    for target in ("/", "/mark/1", "/shut", "/few", "/a/../b"):
        assert set(simulate(path, {**REQUEST, "path": target})) == members


def test_simulate_of_a_passed_request(policy_file):
    result = simulate(policy_file(FINE), REQUEST)
    assert (result["rejected"], result["status"]) == (None, 0)
    assert result["request_header_rules"] == ["mark"]
    assert result["upstream_headers"]["x-mark"] == "1"
    assert result["upstream_headers"]["x-two"] == ["a", "b"]


@pytest.mark.parametrize("target, rejected, status", [("/shut/1", "block", 403), ("/a/%2e%2e/b", "path", 400), ("/%73hut/", "block", 403)])
def test_simulate_of_a_refused_request(policy_file, target, rejected, status):
    result = simulate(policy_file(FINE), {**REQUEST, "path": target})
    assert (result["rejected"], result["status"], result["upstream_headers"]) == (rejected, status, {})


def test_simulate_names_the_limits_that_would_be_charged(policy_file):
    assert simulate(policy_file(FINE), {**REQUEST, "path": "/few/1"})["rate_limit_rules"] == ["few"]


def test_simulate_reads_a_request_from_a_file(policy_file, tmp_path):
    request = tmp_path / "request.json"
    request.write_text(json.dumps(REQUEST))
    done = run("simulate", policy_file(FINE), "--request", request)
    assert done.returncode == 0 and json.loads(done.stdout)["request_header_rules"] == ["mark"]


@pytest.mark.parametrize("request_text, status", [('{"method":"GET"}', 1), ("{", 1), ('{"method":1,"host":"a","path":"/"}', 1)])
def test_simulate_refuses_a_faulty_request(policy_file, request_text, status):
    done = run("simulate", policy_file(FINE), stdin=request_text)
    assert (done.returncode, done.stdout) == (status, "")
    assert done.stderr != ""


# --- help, version, settings ---


def table_settings():
    """(name, readers) of the rows of schemas/settings.def."""
    rows = re.findall(r'^SETTING_ROW\(\w+, "(\w+)",.*?, ([A-Z_ |]+), "', (ROOT / "schemas/settings.def").read_text(), re.M)
    assert len(rows) > 20
    return rows


def test_help_lists_every_setting_that_a_person_gives():
    done = run("--help")
    assert done.returncode == 0
    for name, readers in table_settings():
        assert (re.search(rf"^ +{name} ", done.stdout, re.M) is not None) == ("FROM_LAUNCHER" not in readers), name


def test_help_names_the_words_that_a_setting_takes():
    told = run("--help").stdout
    for words in re.findall(r'^SETTING_ENUM\(\w+, "(.*)"\)', (ROOT / "schemas/settings.def").read_text(), re.M):
        assert re.search(rf"^  [A-Z_]+ .* {re.escape(words)} ", told, re.M), words


def test_help_fits_a_hundred_columns():
    assert [line for line in run("--help").stdout.splitlines() if len(line) > 100] == []


@pytest.mark.parametrize(
    "name, facts",
    [
        ("EDGE_AGENT_TIMEOUT", "1500ms  duration, 300ms to 1m0s  agent,haproxy"),
        ("MAX_HEADER_BYTES", "60KiB  size, 1KiB to 60KiB  haproxy"),
        ("EDGE_AGENTS", "2  number, 1 to 2  haproxy,run"),
        ("ALLOW_REGEX", "false  false|true  agent,check"),
        ("TRUSTED_PROXIES", "-  comma list, may be empty  agent,haproxy,run,check"),
        ("INGRESS_SECRET", "-  secret  agent"),
    ],
)
def test_help_tells_default_unit_and_readers_of_a_setting(name, facts):
    line = re.search(rf"^  {name} .*$", run("--help").stdout, re.M)[0]
    assert re.split(r"  +", line.strip())[1:] == facts.split("  ")


def test_the_vocabulary_says_of_settings_what_help_does():
    told = run("--help").stdout
    vocabulary = json.loads((ROOT / "schemas/vocabulary.json").read_text())["settings"]
    assert {name for name, _ in table_settings()} == {s["name"] for s in vocabulary}
    for s in (s for s in vocabulary if not s["from_run"]):
        assert re.search(rf"^  {s['name']} +{re.escape(s['default'] or '-')} +{re.escape(s['value'])} +{','.join(s['read_by'])}$", told, re.M), s


SECRET = "hunter2-hunter2-hunter2"
SECRET_FAULTS = [
    {},
    {"INGRESS_SECRET_HEADER": "Cookie"},
    {"INGRESS_SECRET_HEADER": SECRET + ":"},
    {"INGRESS_SECRET_HEADER": "X-Ingress-Secret", "INGRESS_SECRET": f"{SECRET} {SECRET}"},
    {"INGRESS_SECRET_HEADER": "X-Ingress-Secret", "INGRESS_SECRET": SECRET * 12},
    {"INGRESS_SECRET_HEADER": "X-Ingress-Secret", "INGRESS_SECRET": f"{SECRET}\n"},
    {"INGRESS_SECRET_HEADER": "X-Ingress-Secret", "INGRESS_SECRET": ",".join([SECRET] * 9)},
    {"INGRESS_SECRET_HEADER": "X-Ingress-Secret", "INGRESS_SECRET": f"{SECRET},"},
]


@pytest.mark.parametrize("command", [["run"], ["serve"], ["check", "/nonexistent"], ["doctor"], ["--help"], ["run", "--help"]])
@pytest.mark.parametrize("settings", SECRET_FAULTS)
def test_no_command_shows_the_ingress_secret(command, settings):
    """Security: people copy what a command says into tickets."""
    done = run(*command, env={**RUN, "EDGE_RUN_DIR": "/nonexistent", "INGRESS_SECRET": SECRET, **settings})
    assert SECRET not in done.stdout + done.stderr


@pytest.mark.parametrize("settings", SECRET_FAULTS)
def test_a_fault_of_the_ingress_secret_names_its_setting(settings):
    done = run("run", env={**RUN, "INGRESS_SECRET": SECRET, **settings})
    assert done.returncode == 2
    assert "INGRESS_SECRET" in done.stdout + done.stderr


def test_every_faulty_setting_that_a_command_reads_is_named_at_once():
    wrong = {"CLIENT_IP_SOURCE": "x", "TRUSTED_PROXIES": "10.0.0.0/33", "VIEWER_HEADERS": "x=y", "ALLOW_REGEX": "x", "INGRESS_SECRET_HEADER": "Cookie"}
    for command in (["check", "/nonexistent"], ["expr", "true"]):
        done = run(*command, env=wrong)
        assert (done.returncode, done.stdout) == (2, "")
        assert [name for name in wrong if f"{name}: " not in done.stderr] == []


def test_check_says_that_a_deployment_would_refuse_every_request(tmp_path):
    file = tmp_path / "policy.json"
    file.write_text(json.dumps(FINE))
    done = run("check", file, env={"CLIENT_IP_SOURCE": "cloudfront"})
    assert done.returncode == 0
    assert re.search("warning: TRUSTED_PROXIES: .*every request is refused", done.stderr)
    assert run("check", file, env={"CLIENT_IP_SOURCE": "cloudfront", "TRUSTED_PROXIES": "192.0.2.1"}).stderr == ""


@pytest.mark.parametrize("command", ["run", "serve"])
def test_help_behind_a_daemon_is_the_settings(command):
    done = run(command, "--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == run("--help").stdout == run("help", command).stdout == run("help").stdout


def test_help_about_no_command_suggests_one():
    done = run("help", "chek")
    assert (done.returncode, done.stdout) == (2, "")
    assert 'there is no command "chek"; did you mean check?' in done.stderr


def test_version_is_one_line():
    done = run("--version")
    assert (done.returncode, done.stderr) == (0, "")
    assert re.match(r"edge-spoa \S+\n\Z", done.stdout)


@pytest.mark.parametrize("command", ["run", "serve"])
def test_an_unknown_setting_of_ours_is_refused_with_a_suggestion(command):
    done = run(command, env={**RUN, "EDGE_RUN_DIR": "/nonexistent", "EDGE_LISTN": ":80"})
    assert done.returncode == 2
    assert "EDGE_LISTN" in done.stdout + done.stderr
    assert "EDGE_LISTEN" in done.stdout + done.stderr


def test_all_faulty_settings_are_named_at_once():
    wrong = {"UPSTREAM_URL": "ftp://x", "EDGE_AGENTS": "7", "EDGE_AGENT_TIMEOUT": "soon", "EDGE_ON_AGENT_FAILURE": "maybe", "VALKEY_URL": "x"}
    done = run("run", env={**RUN, **wrong})
    assert done.returncode == 2
    for name in wrong:
        assert name in done.stdout + done.stderr, name


def test_what_is_required_is_asked_for():
    done = run("run")
    assert done.returncode == 2
    for name in ("UPSTREAM_URL", "POLICY_FILE", "CLIENT_IP_SOURCE"):
        assert name in done.stdout + done.stderr, name


def test_a_haproxy_that_is_missing_or_too_old_is_named():
    for binary in ("/nonexistent/haproxy", "/bin/true"):
        done = run("run", env={**RUN, "EDGE_HAPROXY": binary})
        assert done.returncode in (1, 2)
        assert binary in done.stdout + done.stderr


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2, signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("command", ["run", "serve"])
def test_a_signal_before_anyone_listens_does_not_kill(command, number):
    """More faults than a small pipe holds keep the process where no loop listens yet, until they are read."""
    faults = {f"EDGE_{'X' * 100}{i}": "1" for i in range(60)}
    reader, writer = os.pipe()
    try:
        fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 4096)
        process = subprocess.Popen([BINARY, command], env=faults, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=writer)
        os.close(writer)
        waiting = lambda: struct.unpack("i", fcntl.ioctl(reader, termios.FIONREAD, b"\0" * 4))[0] > 0
        poll(waiting, "the first fault is said")
        process.send_signal(number)
        while os.read(reader, 65536):
            pass
        assert process.wait(20) == 2
    finally:
        os.close(reader)
