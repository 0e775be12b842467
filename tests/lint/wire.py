#!/usr/bin/python3
"""Holds haproxy/ against the tables in schemas/: the SPOE contract has two ends and one list.

Arguments and contract number of edge.spoe.cfg, variables that haproxy.cfg and edge.lua read, statuses that the agent may
answer, the three copies of the request path, the record, and what haproxy/README.md promises.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
BACKENDS = ("plain", "body", "stream")
BEGIN, END = "# >>> shared by plain, body and stream", "# <<< shared by plain, body and stream"
STAGES = ("guard", "strip before", "call", "gate", "answer", "strip after", "rule operations", "edge-managed headers", "target")
# Kinds whose answers HAProxy makes by itself, after the agent has let the request pass.
UPSTREAM_KINDS = {"bad_gateway", "gateway_timeout"}
ENGINES = {"edge": "decide", "edge2": "decide2"}

faults = []


def check(good, text):
    if not good:
        faults.append(text)


def read(name):
    return (ROOT / name).read_text(encoding="utf-8")


def config_lines(text):
    """Lines without comments, indentation and blank lines."""
    lines = (line.strip() for line in text.splitlines())
    return [line for line in lines if line and not line.startswith("#")]


def sections(text, keywords):
    """Maps (keyword, name) to the lines of that section."""
    found, current = {}, []
    for line in text.splitlines():
        words = line.split()
        if words and line[0] not in " \t#." and words[0] in keywords:
            current = found.setdefault((words[0], words[1] if len(words) > 1 else ""), [])
        else:
            current.append(line)
    return found


class Wire:
    """schemas/wire.def."""

    def __init__(self):
        text = read("schemas/wire.def")
        self.contract = int(re.search(r"^WIRE_CONTRACT\((\d+)\)", text, re.M)[1])
        self.args = re.findall(r'^WIRE_ARG\(\w+, "(\w+)", .*, "(.+)"\)$', text, re.M)
        self.variables = [f"{scope}.edge.{name}" for scope, name in re.findall(r'^WIRE_VAR\(\w+, (\w+), "(\w+)",', text, re.M)]
        check(self.args and self.variables, "schemas/wire.def: no rows found")


def check_spoe(wire):
    """edge.spoe.cfg asks what wire.def lists, in both engines, and returns the names of its error variables."""
    text = read("haproxy/edge.spoe.cfg")
    errors = set()
    engines = re.split(r"^\[(\w+)\]$", text, flags=re.M)[1:]
    found = dict(zip(engines[::2], engines[1::2]))
    check(set(found) == set(ENGINES), f"edge.spoe.cfg: engines {sorted(found)}, not {sorted(ENGINES)}")
    wanted = [f"{name}={fetch}" for name, fetch in wire.args]
    for engine, body in found.items():
        args = re.findall(r"^\s+args (.+)$", body, re.M)
        same = len(args) == 1 and args[0].split() == wanted
        check(same, f"edge.spoe.cfg: args of {engine} differ from schemas/wire.def: {' '.join(wanted)}")
        check(f"contract=int({wire.contract})" in body, f"edge.spoe.cfg: {engine} does not send contract {wire.contract}")
        check(re.search(r"^\s+option var-prefix edge$", body, re.M), f"edge.spoe.cfg: {engine} has another var-prefix than edge")
        check(f"spoe-group {ENGINES.get(engine)}\n" in body, f"edge.spoe.cfg: {engine} has no group {ENGINES.get(engine)}")
        errors.update("txn.edge." + name for name in re.findall(r"^\s+option set-on-error (\w+)$", body, re.M))
    return errors


def check_variables(wire, config, errors):
    """Every variable of the contract is read, and none that nobody sets."""
    lua = read("haproxy/edge.lua")
    declared = set(re.findall(r"^set-var (proc\.edge\.\w+) ", "\n".join(config_lines(config)), re.M))
    name = r"((?:proc|sess|txn|req|res)\.edge\.\w+)"
    touched = set(re.findall(name, "\n".join(config_lines(config)))) | set(re.findall(name, lua))
    read_in_config = set(re.findall(r"(?<!set-)\bvar\(" + name, config)) | set(re.findall(r'get_var\("' + name, lua))
    for variable in wire.variables:
        check(variable in read_in_config, f"haproxy.cfg: {variable} of schemas/wire.def is never read")
    for variable in sorted(touched - set(wire.variables) - errors - declared):
        check(False, f"haproxy.cfg, edge.lua: {variable} is not in schemas/wire.def")
    for variable in sorted(set(re.findall(name, lua))):
        check(f"var({variable})" in config, f"edge.lua reads {variable}, haproxy.cfg does not")
    return declared


def check_gate(wire, block):
    """Nothing passes on another contract; nothing of an answer without `ok` is used; every status has its rule."""
    numbers = re.findall(r"var\(txn\.edge\.ok\) -m int (\d+)", block)
    same = numbers and all(int(n) == wire.contract for n in numbers)
    check(same, f"haproxy.cfg: `ok` is compared with {numbers}, the contract is {wire.contract}")
    dropped = set(re.findall(r"^\s+http-request unset-var\((\S+)\) if \{ var\(txn\.undecided\) -m bool \}$", block, re.M))
    check(dropped == set(wire.variables), f"haproxy.cfg: undecided requests keep {sorted(set(wire.variables) - dropped)}")
    kinds = re.findall(r'^KIND_ROW\(\w+, "(\w+)", (\d+)\)', read("schemas/kinds.def"), re.M)
    wanted = {status for kind, status in kinds if kind not in UPSTREAM_KINDS}
    body = r'content-type text/plain lf-string "%\[var\(txn\.edge\.body\)\]"'
    rules = re.findall(r"http-request return status (\d+) " + body + r" if \{ var\(txn\.edge\.status\) -m int (\d+) \}", block)
    check({a for a, b in rules if a == b} == wanted and len(rules) == len(wanted),
          f"haproxy.cfg: return rules for {sorted(rules)}, schemas/kinds.def has {sorted(wanted)}")


def shared_block(lines, backend):
    text = "\n".join(lines)
    once = text.count(BEGIN) == 1 and text.count(END) == 1
    check(once, f"haproxy.cfg: backend {backend} does not have both comment lines of the shared block once")
    return text.partition(BEGIN)[2].partition(END)[0]


def check_blocks(wire, config):
    """The shared block is equal, byte for byte, in its three backends and goes through its stages in order."""
    found = sections(config, {"global", "defaults", "frontend", "backend", "ring", "log-profile", "resolvers"})
    blocks = {name: shared_block(found.get(("backend", name), []), name) for name in BACKENDS}
    for name in BACKENDS[1:]:
        check(blocks[name] == blocks["plain"], f"haproxy.cfg: the shared block of {name} differs from plain's")
    stages = tuple(re.findall(r"^    # stage: (.+)$", blocks["plain"], re.M))
    check(stages == STAGES, f"haproxy.cfg: stages of the shared block are {list(stages)}, not {list(STAGES)}")
    for name in BACKENDS:
        rules = "\n".join(found.get(("backend", name), []))
        check(re.search(r"set-var\(txn\.excess\) be_conn\(" + name + r"\)", rules), f"haproxy.cfg: {name} does not count its own requests")
    for engine, group in ENGINES.items():
        check(f"filter spoe engine {engine} " in blocks["plain"], f"haproxy.cfg: no filter for engine {engine}")
        check(f"send-spoe-group {engine} {group}" in blocks["plain"], f"haproxy.cfg: group {group} of {engine} is never sent")
    check_gate(wire, blocks["plain"])
    return stages


def table(text, heading):
    """First cells of the table below that heading of a Markdown file."""
    part = text.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    cells = re.findall(r"^\| *(.+?) *\|", part, re.M)
    return cells[2:]


def check_readme(config, stages, n_fields):
    """haproxy/README.md lists the environment, the stages and the fields of a record as they are."""
    text = read("haproxy/README.md")
    used = set(re.findall(r"\$\{(\w+)", config + read("haproxy/edge.spoe.cfg"))) | set(re.findall(r"defined\((\w+)\)", config))
    listed = {name for cell in table(text, "Environment") for name in re.findall(r"`(\w+)`", cell)}
    check(used == listed, f"haproxy/README.md: Environment misses {sorted(used - listed)} and has too many {sorted(listed - used)}")
    check(tuple(table(text, "Stages")) == stages, f"haproxy/README.md: Stages are not {list(stages)}")
    listed = [int(cell) for cell in table(text, "Record") if cell.isdigit()]
    check(listed == list(range(1, n_fields + 1)), f"haproxy/README.md: Record does not number the {n_fields} fields of a record")


def check_record(config):
    """The log-format is schemas/record.def, one tab between fields; returns their number."""
    fields = re.search(r'^    log-format "(.*)"$', config, re.M)[1].replace('\\"', '"').split(r"\t")
    rows = re.findall(r'^RECORD_ROW\(\w+, "((?:[^"\\]|\\.)*)",', read("schemas/record.def"), re.M)
    wanted = [row.replace('\\"', '"') for row in rows]
    check(fields == wanted, f"haproxy.cfg: the log-format is {fields}, schemas/record.def has {wanted}")
    return len(wanted)


def main():
    wire = Wire()
    config = read("haproxy/haproxy.cfg")
    check_variables(wire, config, check_spoe(wire))
    check_readme(config, check_blocks(wire, config), check_record(config))
    for fault in faults:
        print(fault)
    print(f"lint wire: {len(faults)} fault(s)" if faults else "lint wire: ok")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
