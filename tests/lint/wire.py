#!/usr/bin/python3
"""Holds haproxy/ against the tables in schemas/: the SPOE contract has two ends and one list.

Arguments and contract number of edge.spoe.cfg, variables that haproxy.cfg and edge.lua read, statuses that the agent may
answer, the copies of the request path, the record, and what haproxy/README.md promises.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
BACKENDS = ("plain", "body", "stream", "stream_body")
# Backends that count together against one cap, and those whose requests have a body still to come.
PARTNERS = {"plain": "body", "body": "plain", "stream": "stream_body", "stream_body": "stream"}
BODY_BACKENDS = {"body", "stream_body"}
BEGIN, END = "# >>> shared by the four backends of requests", "# <<< shared by the four backends of requests"
OWN_STAGES = ("connection", "guard")
SHARED_STAGES = (
    "call", "strip", "rule operations", "edge-managed headers", "target", "forward", "answer", "undecided",
)  # fmt: skip
# The caps that the guards of the backends compare with.
CAPS = {"plain": "proc.edge.cap_ord", "body": "proc.edge.cap_ord", "stream": "proc.edge.cap_str", "stream_body": "proc.edge.cap_str"}
# Kinds whose answers HAProxy makes by itself, after the agent has let the request pass.
UPSTREAM_KINDS = {"bad_gateway", "gateway_timeout"}
# The two backends for streams share a maximum of idle connections.
SHARES = {"stream_body": "STREAM"}
ENGINES = {"edge": "decide", "edge2": "decide2"}
# Always and whatever the decision, and once more behind what the edge has added to a request that goes on without one.
STRIPS = 'http-request del-header "${EDGE_STRIP}" -m reg'
# Every request has the one id that HAProxy gave it or took over.
ID_HEADER = 'http-request add-header x-request-id "%[var(txn.id)]"'
# From here on HAProxy applies lists of headers itself.
NATIVE = ".if version_atleast(3.4.3)"
# Needs of arguments that only configurations with that flag send, in the order of their lines.
FEATURES = {"FINGERPRINTS": "EDGE_TLS_FINGERPRINTS", "CLIENT_CERT": "EDGE_TLS_CLIENT_CA"}

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
        self.args = re.findall(r'^WIRE_ARG\(\w+, "(\w+)", \w+, \d+, (\w+), "(.+)"\)$', text, re.M)
        self.variables = [f"{scope}.edge.{name}" for scope, name in re.findall(r'^WIRE_VAR\(\w+, (\w+), "(\w+)",', text, re.M)]
        self.of_request = {name for name in self.variables if name.startswith("txn.")}
        self.managed = re.findall(r'^WIRE_MANAGED\("([\w-]+)", \w+, (\w+), "(.+)"\)$', text, re.M)
        names = dict(re.findall(r'^WIRE_VAR\((\w+), txn, "(\w+)", STR,', text, re.M))
        self.response = [(name, names.get(var)) for name, var in re.findall(r'^WIRE_RESPONSE\("([\w-]+)", (\w+)\)$', text, re.M)]
        check(self.args and self.variables and self.managed and self.response, "schemas/wire.def: no rows found")
        self.has_ok = f"{{ var(txn.edge.ok) -m int {self.contract} }}"


def check_spoe(wire):
    """edge.spoe.cfg asks what wire.def lists, in both engines, and returns the names of its error variables. `native` is true exactly
    where haproxy.cfg applies lists itself."""
    text = read("haproxy/edge.spoe.cfg")
    errors = set()
    engines = re.split(r"^\[(\w+)\]$", text, flags=re.M)[1:]
    found = dict(zip(engines[::2], engines[1::2]))
    check(set(found) == set(ENGINES), f"edge.spoe.cfg: engines {sorted(found)}, not {sorted(ENGINES)}")
    of_all = " ".join(f"{name}={fetch}" for name, need, fetch in wire.args if need not in FEATURES)
    wanted = f"{NATIVE}\nargs {of_all}\n.else\nargs {of_all.replace('native=bool(true)', 'native=bool(false)')}\n.endif"
    for feature, flag in FEATURES.items():
        of_feature = " ".join(f"{name}={fetch}" for name, need, fetch in wire.args if need == feature)
        wanted += f"\n.if defined({flag})\nargs {of_feature}\n.endif"
    for engine, body in found.items():
        lines = "\n".join(config_lines(body))
        check(lines.count("args ") == 2 + len(FEATURES) and wanted in lines, f"edge.spoe.cfg: args of {engine} are not, as schemas/wire.def says:\n{wanted}")
        check(f"contract=int({wire.contract})" in body, f"edge.spoe.cfg: {engine} does not send contract {wire.contract}")
        check(re.search(r"^\s+option var-prefix edge$", body, re.M), f"edge.spoe.cfg: {engine} has another var-prefix than edge")
        check(f"spoe-group {ENGINES.get(engine)}\n" in body, f"edge.spoe.cfg: {engine} has no group {ENGINES.get(engine)}")
        errors.update("txn.edge." + name for name in re.findall(r"^\s+option set-on-error (\w+)$", body, re.M))
    return errors


def check_variables(wire, config, errors):
    """Every variable of the contract is read, none that nobody sets, and those of the process exist before an agent sets them."""
    lua, lines = read("haproxy/edge.lua"), "\n".join(config_lines(config))
    name = r"((?:proc|sess|txn|req|res)\.edge\.\w+)\b"
    kinds = set(re.findall(r"lua\.edge_page\((\w+)\)", lines)) & {kind for kind, _ in kinds_of_answers()}
    pages = {f"{scope}.edge.{part}_{kind}" for scope in ("proc", "txn") for part in ("t", "ct") for kind in kinds}
    touched = set(re.findall(name, lines)) | set(re.findall(name, lua))
    reading = r"(?:\bvar|\bsub)\(" + name
    used = set(re.findall(r"(?<!unset-)(?<!set-)" + reading, lines)) | set(re.findall(r'get_var\("' + name, lua)) | pages
    for variable in wire.variables:
        check(variable in used, f"haproxy.cfg: {variable} of schemas/wire.def is never read")
    for variable in sorted(touched - set(wire.variables) - errors):
        check(False, f"haproxy.cfg, edge.lua: {variable} is not in schemas/wire.def")
    for variable in sorted(set(re.findall(r'get_var\("' + name, lua))):
        check(f"var({variable})" in lines, f"edge.lua reads {variable}, haproxy.cfg does not ask for it")
    declared = set(re.findall(r"^set-var (proc\.edge\.\w+) ", lines, re.M))
    wanted = set(wire.variables) - wire.of_request
    check(declared == wanted, f"haproxy.cfg: `global` declares {sorted(declared)}, schemas/wire.def has {sorted(wanted)}")
    for kind in kinds:
        check(f"proc.edge.t_{kind}" in wanted, f"haproxy.cfg: schemas/wire.def has no default page for {kind}")


def check_capture(config):
    """The agent knows how much of a hello HAProxy keeps, and so what may be cut."""
    kept = re.findall(r"^ *tune.ssl.capture-buffer-size (\d+)$", config, re.M)
    known = re.search(r"\bHELLO_CAPTURE = (\d+)", read("common/net/client_hello.h"))[1]
    check(kept == [known], f"haproxy.cfg: tune.ssl.capture-buffer-size is {kept}, common/net/client_hello.h says {known}")


def kinds_of_answers():
    return re.findall(r'^KIND_ROW\(\w+, "(\w+)", (\d+),', read("schemas/kinds.def"), re.M)


def by_stage(block):
    """Maps the names of a block's stages to their lines, comments left out."""
    parts = re.split(r"^    # stage: (.+)$", block, flags=re.M)[1:]
    return {name: config_lines(text) for name, text in zip(parts[::2], parts[1::2])}


def check_forward(wire, stages):
    """The one `allow` wants the contract's number and no answer; nothing of an answer without `ok` is used before it."""
    for name, lines in stages.items():
        for line in lines:
            if re.match(r"http-request (allow|accept)\b", line):
                good = name == "forward" and wire.has_ok in line and "!{ var(txn.edge.status) -m found }" in line and "||" not in line
                check(good, f"haproxy.cfg: forwards without a decision: {line}")
            if re.search(r"-headers-bin|lua\.edge_request_headers|set-pathq", line):
                check(line.endswith(wire.has_ok) and "||" not in line, f"haproxy.cfg: does not look at `ok`: {line}")
    numbers = re.findall(r"var\(txn\.edge\.ok\) -m int (\d+)", "\n".join(sum(stages.values(), [])))
    check(set(numbers) == {str(wire.contract)}, f"haproxy.cfg: `ok` is compared with {numbers}, the contract is {wire.contract}")


def check_servers(config):
    """Each of the four backends has the one upstream, with a maximum of idle connections of its own."""
    found = sections(config, {"global", "defaults", "frontend", "backend", "ring", "log-profile", "resolvers"})
    for name in BACKENDS:
        wanted = f'server upstream "${{EDGE_UPSTREAM_ADDR}}" pool-max-conn "${{EDGE_UPSTREAM_IDLE_{SHARES.get(name, name.upper())}}}"'
        servers = [line.strip() for line in found.get(("backend", name), []) if line.split()[:1] == ["server"]]
        check(servers == [wanted], f"haproxy.cfg: backend {name} has the servers {servers}, not {wanted}")


def check_managed(wire, stages):
    """A HAProxy that applies no lists itself adds wire.def's headers one by one. What the edge adds was stripped before, under its own
    name and its look-alikes, and in open mode is stripped again."""
    stripped = re.findall(r'^STRIPPED_(HEADER|PREFIX)\("([^"]+)"\)$', read("schemas/stripped_headers.def"), re.M)
    check(stages["strip"] == [STRIPS], f"haproxy.cfg: the stage `strip` is {stages['strip']}, not {STRIPS}")
    always = [f'http-request add-header {name} "{value}"' for name, when, value in wire.managed if when == "ALWAYS"]
    known, viewer = (
        [f'http-request add-header {name} "{value}" if {{ {value[2:-1]} -m found }}' for name, when, value in wire.managed if when == wanted]
        for wanted in ("KNOWN", "VIEWER")
    )
    wanted = [NATIVE.replace(".if ", ".if !"), *always, ".if defined(EDGE_VIEWER)", *viewer, ".endif", *known, ".endif", ID_HEADER]
    check(stages["edge-managed headers"] == wanted, f"haproxy.cfg: edge-managed headers are not {wanted}")
    check(stages["rule operations"][0] == NATIVE, "haproxy.cfg: edge.spoe.cfg calls another version native than `rule operations`")
    for name in ["x-request-id", *(name for name, _, _ in wire.managed)]:
        is_stripped = any(name == text or (kind == "PREFIX" and name.startswith(text)) for kind, text in stripped)
        check(is_stripped, f"haproxy.cfg: nothing strips {name} of a client")


def check_response(wire, config):
    """What a HAProxy without lists adds to responses one by one stands behind its lists, and what the upstream says of CORS is gone by then."""
    lines = config_lines("\n".join(sections(config, {"global", "defaults", "frontend", "backend", "ring"}).get(("frontend", "edge"), [])))
    forget = "http-after-response del-header access-control- -m beg if { var(txn.edge.cors) -m found }"
    native = [f"http-after-response {verb}-headers-bin var(txn.edge.res_{verb})" for verb in ("del", "add")]
    by_lua = "http-after-response lua.edge_response_headers if { var(txn.edge.res_del) -m found } || { var(txn.edge.res_add) -m found }"
    usual = [f'http-after-response add-header {name} "%[var(txn.edge.{var})]" if {{ var(txn.edge.{var}) -m found }}' for name, var in wire.response]
    wanted = [forget, NATIVE, *native, ".else", by_lua, *usual, ".endif"]
    at = lines.index(forget) if forget in lines else 0
    check(lines[at : at + len(wanted)] == wanted, "haproxy.cfg: frontend edge does not change responses by:\n" + "\n".join(wanted))


def check_identity(wire, config):
    """The frontend takes an id over only from trusted peers, once and of the contract's form, and nothing else names a request. Whom a balancer
    names is the peer before anybody asks whether the peer is trusted."""
    lines = config_lines("\n".join(sections(config, {"global", "defaults", "frontend", "backend", "ring"}).get(("frontend", "edge"), [])))
    maximum = re.search(r'^WIRE_ARG\(UNIQUE_ID, "id", STR, (\d+), REQUIRED, "var\(txn\.id\)"\)$', read("schemas/wire.def"), re.M)
    check(maximum, "schemas/wire.def: the id of a request is not var(txn.id)")
    taken = [
        "http-request set-var(txn.id) req.fhdr(x-request-id) if { var(sess.trusted) -m found } { req.fhdr_cnt(x-request-id) eq 1 } "
        f"{{ req.fhdr(x-request-id) -m reg '^[A-Za-z0-9._-]{{1,{maximum and maximum[1]}}}$' }}"
    ]
    check([line for line in lines if "fhdr(x-request-id)" in line] == taken, f"haproxy.cfg: ids of others are not taken by: {taken[0]}")
    check("%ID" not in config and "unique-id" not in "\n".join(config_lines(config)), "haproxy.cfg: a unique-id, which is cut to 127 bytes, names requests")
    order = ["expect-proxy", "set-var(sess.trusted)", "set-var(txn.id)"]
    first = [next((i for i, line in enumerate(lines) if word in line), -1) for word in order]
    check(-1 not in first and first == sorted(first), f"haproxy.cfg: frontend edge does not have, in this order: {order}")
    rejects = [line for line in lines if line.startswith("tcp-request connection reject ")]
    good = len(rejects) == 1 and rejects[0].endswith('!{ src -f "${EDGE_PROXY_PROTOCOL-unset}" }') and lines.index(rejects[0]) < first[0]
    check(good, f"haproxy.cfg: who is no balancer is not rejected before its header is read: {rejects}")


def check_answers(wire, lines):
    """Every status has its rule, another one is a 503, and all of them want `ok`."""
    wanted = {status for kind, status in kinds_of_answers() if kind not in UPSTREAM_KINDS}
    body = r'http-request return status (\d+) content-type text/plain lf-string "%\[var\(txn\.edge\.body\)\]" if '
    rules = [re.match(body + r"\{ var\(txn\.edge\.status\) -m int (\d+) \} ", line) for line in lines]
    pairs = [rule.groups() for rule in rules if rule]
    good = {a for a, b in pairs if a == b} == wanted and len(pairs) == len(wanted)
    check(good, f"haproxy.cfg: return rules for {pairs}, schemas/kinds.def has {sorted(wanted)}")
    preflight = f"http-request return status 204 if {{ var(txn.edge.status) -m int 204 }} {wire.has_ok}"
    check(lines.count(preflight) == 1, f"haproxy.cfg: a preflight is not answered by: {preflight}")
    returns = [line for line in lines if " return " in line]
    check(all(line.endswith(wire.has_ok) and "||" not in line for line in returns), "haproxy.cfg: an answer does not look at `ok`")
    last = re.match(body, lines[-1])
    good = last and last[1] == "503" and lines[-1].endswith(f" if {wire.has_ok}")
    check(good, f"haproxy.cfg: the last answer does not take every other status: {lines[-1]}")


def check_undecided(wire, lines):
    """Without a decision all variables are dropped first; then there is an answer, or in open mode no header of the edge's."""
    n = len(wire.of_request)
    dropped = {f"http-request unset-var({name})" for name in wire.of_request}
    check(set(lines[:n]) == dropped, f"haproxy.cfg: undecided requests keep {sorted(dropped - set(lines[:n]))}")
    opened, _, closed = "\n".join(lines).partition("\n.if defined(EDGE_FAIL_OPEN)\n")[2].partition("\n.else\n")
    good = re.fullmatch(r"http-request return status 503 [^{}]*\n\.endif", closed)
    check(good, f"haproxy.cfg: closed mode does not end with an answer to all: {closed}")
    check(opened.endswith(f"\n{STRIPS}\n{ID_HEADER}"), f"haproxy.cfg: open mode forwards what the edge has added, or no id: {opened}")


def shared_block(lines, backend):
    text = "\n".join(lines)
    once = text.count(BEGIN) == 1 and text.count(END) == 1
    check(once, f"haproxy.cfg: backend {backend} does not have both comment lines of the shared block once")
    return text.partition(BEGIN)[2].partition(END)[0]


def check_guard(lines, backend):
    """A backend counts its own requests, plain and body those of the other as well, and compares with its cap."""
    other = PARTNERS[backend]
    check(f"http-request set-var(txn.other) be_conn({other})" in lines, f"haproxy.cfg: {backend} does not count {other}'s requests")
    rule = f"http-request set-var(txn.decision) str(overloaded) if {{ be_conn({backend}),add(txn.other),sub({CAPS[backend]}) gt 0 }}"
    check(rule in lines, f"haproxy.cfg: the guard of {backend} is not: {rule}")


def check_blocks(wire, config):
    """The shared block is equal, byte for byte, in its backends, and goes through its stages in order."""
    found = sections(config, {"global", "defaults", "frontend", "backend", "ring", "log-profile", "resolvers"})
    blocks = {name: shared_block(found.get(("backend", name), []), name) for name in BACKENDS}
    for name in BACKENDS:
        check(blocks[name] == blocks["plain"], f"haproxy.cfg: the shared block of {name} differs from plain's")
        own = by_stage("\n".join(found.get(("backend", name), [])).partition(BEGIN)[0])
        check(tuple(own) == OWN_STAGES, f"haproxy.cfg: stages of {name} before the shared block are {list(own)}, not {list(OWN_STAGES)}")
        check_guard(own.get("guard", []), name)
        has_filter = "filter lua.edge_body" in config_lines("\n".join(found.get(("backend", name), [])))
        check(has_filter == (name in BODY_BACKENDS), f"haproxy.cfg: {name} {'has' if has_filter else 'lacks'} the filter that bounds bodies")
    stages = by_stage(blocks["plain"])
    check(tuple(stages) == SHARED_STAGES, f"haproxy.cfg: stages of the shared block are {list(stages)}, not {list(SHARED_STAGES)}")
    for engine, group in ENGINES.items():
        check(f"filter spoe engine {engine} " in blocks["plain"], f"haproxy.cfg: no filter for engine {engine}")
        check(f"send-spoe-group {engine} {group}" in blocks["plain"], f"haproxy.cfg: group {group} of {engine} is never sent")
    if not faults:
        check_forward(wire, stages)
        check_managed(wire, stages)
        check_answers(wire, stages["answer"])
        check_undecided(wire, stages["undecided"])
    upgrades = set(re.findall(r"req\.fhdr\(upgrade\) -i -m reg (\S+'(?= \}))", config))
    check(len(upgrades) == 1, f"haproxy.cfg: frontend and stream know different upgrades: {sorted(upgrades)}")
    return OWN_STAGES + SHARED_STAGES


def table(text, heading):
    """First cells of the table below that heading of a Markdown file."""
    part = text.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    cells = re.findall(r"^\| *(.+?) *\|", part, re.M)
    return cells[2:]


def check_launcher(listed):
    """`run` gives HAProxy exactly these variables, some as what it passes on of its own environment."""
    source, settings = read("spoa/launcher/environment.c"), read("schemas/settings.def")
    given = set(re.findall(r'\bput(?:_u64|_binds)?\(&?l, "(\w+)"', source.partition("bool environment_agent(")[0]))
    passed = set(re.findall(r'^SETTING_PASSED\("(\w+)", .*BY_HAPROXY', settings, re.M))
    check(len(given) > 20 and passed, "environment.c, settings.def: no variables for HAProxy found")
    check(given <= listed, f"haproxy.cfg reads no {sorted(given - listed)}, which spoa/launcher/environment.c gives it")
    check(listed <= given | passed, f"haproxy.cfg reads {sorted(listed - given - passed)}, which spoa/launcher/environment.c does not give it")


def check_readme(config, stages, n_fields):
    """haproxy/README.md lists the environment, the stages and the fields of a record as they are."""
    text = read("haproxy/README.md")
    used = set(re.findall(r"\$\{(\w+)|\bdefined\((\w+)\)", config + read("haproxy/edge.spoe.cfg")))
    used = {name for pair in used for name in pair if name}
    listed = {name for cell in table(text, "Environment") for name in re.findall(r"`(\w+)`", cell)}
    check(used == listed, f"haproxy/README.md: Environment misses {sorted(used - listed)} and has too many {sorted(listed - used)}")
    check_launcher(listed)
    check(tuple(table(text, "Stages")) == stages, f"haproxy/README.md: Stages are not {list(stages)}")
    listed = [int(cell) for cell in table(text, "Record") if cell.isdigit()]
    check(listed == list(range(1, n_fields + 1)), f"haproxy/README.md: Record does not number the {n_fields} fields of a record")


def check_bounds(config):
    """What is added to responses finds the room that haproxy.cfg keeps. The agent leaves out an upstream timeout that is haproxy.cfg's own, and the pause in a body begins as the policy's default."""
    room = re.search(r"\bRESPONSE_ROOM_BYTES = (\d+)", read("common/http/response_edit.h"))
    check(f"\n    tune.maxrewrite {room and room[1]}\n" in config, "haproxy.cfg: tune.maxrewrite is not RESPONSE_ROOM_BYTES of common/http/response_edit.h")
    own = re.search(r"^    timeout server (\d+)s$", "\n".join(sections(config, {"defaults"})[("defaults", "upstream")]), re.M)
    agent = re.search(r"\bUPSTREAM_TIMEOUT_MS = (\d+)", read("spoa/request/reply.c"))
    policy = re.search(r"\bTIMEOUT_DEFAULT_MS = (\d+) \* 1000", read("common/policy/compile_global.c"))
    idle = re.search(r"set-var proc\.edge\.body_idle int\((\d+)\)", config)
    good = own and agent and int(agent[1]) == int(own[1]) * 1000
    check(good, "haproxy.cfg: `timeout server` of `upstream` is not UPSTREAM_TIMEOUT_MS of spoa/request/reply.c")
    good = policy and idle and int(idle[1]) == int(policy[1]) * 1000
    check(good, "haproxy.cfg: proc.edge.body_idle does not begin as TIMEOUT_DEFAULT_MS of common/policy/compile_global.c")


def check_record(config):
    """The log-format is schemas/record.def, one tab between fields; returns their number."""
    record = re.search(r'^    log-format "(.*)"$', config, re.M)[1]
    check(f'\n    error-log-format "{record}"\n' in config, "haproxy.cfg: the error-log-format is another one than the log-format")
    fields = record.replace('\\"', '"').split(r"\t")
    rows = re.findall(r'^RECORD_ROW\(\w+, "((?:[^"\\]|\\.)*)",', read("schemas/record.def"), re.M)
    wanted = [row.replace('\\"', '"') for row in rows]
    check(fields == wanted, f"haproxy.cfg: the log-format is {fields}, schemas/record.def has {wanted}")
    return len(wanted)


def check_causes():
    """edge.lua and the table know the same causes, but for the one that HAProxy has no answer to, and a cause is of the kind that its name begins with."""
    rows = re.findall(r'^UPSTREAM_CAUSE_ROW\(\w+, "([^"]+)", (\w+), ', read("schemas/upstream_causes.def"), re.M)
    wrong = [name for name, kind in rows if name.partition(".")[0] != kind.lower()]
    check(not wrong, f"schemas/upstream_causes.def: of another kind than their names say: {wrong}")
    source = read("haproxy/edge.lua")
    causes = source[source.index("-- Why no TLS connection came about.") : source.index("local UNANSWERED")]
    said = set(re.findall(r'"((?:dns|refused|reset|tls|timeout|other)(?:\.\w+)?)"', causes))
    known = {name for name, _ in rows} - {"timeout.silent"}
    check(said == known, f"edge.lua: causes it never says {sorted(known - said)}, and ones that the table lacks {sorted(said - known)}")


def check_counted():
    """What the launcher counts as requests while the edge ends is every backend of requests."""
    rows = re.search(r"counted\[\] = \{(.*?)\};", read("spoa/launcher/open_requests.c"), re.S)[1]
    counted = re.findall(r'"(\w+),BACKEND,"', rows)
    check(sorted(counted) == sorted(BACKENDS), f"open_requests.c counts {counted}, haproxy.cfg has {list(BACKENDS)}")


def main():
    wire = Wire()
    config = read("haproxy/haproxy.cfg")
    check_capture(config)
    check_variables(wire, config, check_spoe(wire))
    check_response(wire, config)
    check_identity(wire, config)
    check_bounds(config)
    check_servers(config)
    check_readme(config, check_blocks(wire, config), check_record(config))
    check_causes()
    check_counted()
    for fault in faults:
        print(fault)
    print(f"lint wire: {len(faults)} fault(s)" if faults else "lint wire: ok")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
