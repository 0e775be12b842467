"""The examples of the reference pages: every policy compiles, every expression is what it is said to be, every command prints what is shown.

Fenced blocks of the templates (schemas/reference/templates) by their first line:
  ```json NAME           a file of that name, for all pages' commands; policy.json must be valid and canonical
  ```json-part MEMBER    what policy.json may have as that member; MEMBER.MEMBER: in addition to what it has there
  ```expr                valid expressions, one a line; ```expr-refused: such as are not
  ```env NAME            settings that run and check accept, <...> being what a deployment puts there; test_client_ip.py sends requests to such an edge
  ```console             "$ command" lines, each followed by all that it prints

Run by itself, this file writes what the commands print now into the templates.
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import pytest

from edge import BINARY, PASSED_ON, ROOT

TEMPLATES = sorted((ROOT / "schemas/reference/templates").glob("*.md"))
BLOCK = re.compile(r"^```([\w-]+)(?: (\S+))?\n(.*?)^```$", re.M | re.S)


def blocks(kind):
    """(page, name, text) of each block of that kind."""
    return [(t.stem, m[2], m[3]) for t in TEMPLATES for m in BLOCK.finditer(t.read_text()) if m[1] == kind]


def lines(kind):
    return [line for _, _, text in blocks(kind) for line in text.splitlines()]


def run(command, folder, **environment):
    env = {name: os.environ[name] for name in PASSED_ON if name in os.environ} | environment
    env["PATH"] = f"{pathlib.Path(BINARY).resolve().parent}:{env['PATH']}"
    return subprocess.run(command, cwd=folder, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60)


def shell(command, folder):
    return run(["bash", "-c", command], folder).stdout


def write_files(folder):
    for _, name, text in blocks("json"):
        (folder / name).write_text(text)


def played(text, folder):
    """The block with what its commands print now."""
    commands = [line for line in text.splitlines() if line.startswith("$ ")]
    return "".join(f"{command}\n{shell(command[2:], folder)}" for command in commands)


@pytest.fixture
def folder(tmp_path):
    write_files(tmp_path)
    return tmp_path


def test_the_pages_have_examples_of_every_kind():
    for kind in ("json", "json-part", "expr", "expr-refused", "env", "console"):
        assert blocks(kind), kind


def numbered(kind):
    """The blocks of a kind as parameters with short names."""
    return [pytest.param(*block, id=f"{block[0]}-{i}") for i, block in enumerate(blocks(kind))]


@pytest.mark.parametrize("page, name, text", numbered("console"))
def test_a_command_of_a_page_prints_what_is_shown(page, name, text, folder):
    assert played(text, folder) == text


@pytest.mark.parametrize("text", lines("expr"))
def test_an_expression_of_a_page_is_valid(text, folder):
    done = run([BINARY, "expr", text, "--json"], folder)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("text", lines("expr-refused"))
def test_a_mistake_of_a_page_is_refused(text, folder):
    done = run([BINARY, "expr", text, "--json"], folder)
    assert done.returncode == 1 and json.loads(done.stdout)["errors"], done.stdout


@pytest.mark.parametrize("page, member, text", numbered("json-part"))
def test_a_part_of_a_page_is_valid_within_the_complete_policy(page, member, text, folder):
    policy = json.loads((folder / "policy.json").read_text())
    outer, _, inner = member.partition(".")
    part = {**policy[outer], inner: {**policy[outer][inner], **json.loads(text)}} if inner else json.loads(text)
    (folder / "policy.json").write_text(json.dumps({**policy, outer: part}))
    done = run([BINARY, "check", "policy.json"], folder, CLIENT_IP_SOURCE="remote_addr")
    assert done.returncode == 0, done.stdout


def settings_of(text):
    """The settings of an env block as a dict."""
    return dict(line.split("=", 1) for line in text.splitlines())


@pytest.mark.parametrize("page, name, text", numbered("env"))
def test_the_settings_of_an_example_are_accepted_without_a_warning(page, name, text, folder):
    filled = {key: "192.0.2.0/24" if value.startswith("<") else value for key, value in settings_of(text).items()}
    done = run([BINARY, "check", "policy.json", "--strict"], folder, **filled)
    assert (done.returncode, "warning:" in done.stdout) == (0, False), done.stdout


def test_the_complete_policy_is_valid_without_warnings_and_canonical(folder):
    assert run([BINARY, "check", "policy.json", "--strict"], folder, CLIENT_IP_SOURCE="remote_addr").returncode == 0
    assert run([BINARY, "fmt", "policy.json", "--check"], folder).returncode == 0


def test_the_vocabulary_is_the_binarys():
    vocabulary = json.loads((ROOT / "schemas/vocabulary.json").read_text())
    done = run([BINARY, "expr", "--fields", "--json"], ROOT, ALLOW_REGEX="true")
    told = json.loads(done.stdout)
    for field in told["fields"]:
        del field["available"]
    assert (told["fields"], told["operators"]) == (vocabulary["fields"], vocabulary["operators"])


def update():
    for template in TEMPLATES:
        with tempfile.TemporaryDirectory() as name:
            write_files(pathlib.Path(name))
            replace = lambda m: f"```console\n{played(m[3], pathlib.Path(name))}```" if m[1] == "console" else m[0]
            template.write_text(BLOCK.sub(replace, template.read_text()))


if __name__ == "__main__":
    sys.exit(update())
