#!/usr/bin/python3
"""Makes the reference pages and vocabulary.json from the tables in schemas/: `generate.py` writes them, `generate.py --check` only says what is stale.

A page is its template with two kinds of marks filled in: a line `<!-- table: NAME -->` by the table of that name, and @NAME@ by a number of the headers
that state the limits. What a table says is said nowhere else, so a page is wrong only where its template is.
"""

import json
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCHEMAS = ROOT / "schemas"
HERE = SCHEMAS / "reference"
LIMITS_OF = ("common/expr/expr.h", "common/policy/policy.h")
PHASES = {"P_CONFIG": "config", "P_RATE": "rate_limit", "P_HEADERS": "request_headers"}
KEYS = {"HEADER": "a header name, case ignored", "COOKIE": "a cookie name", "PARAMETER": "a parameter name", "CLAIM": "a claim name"}
ABSENT = {"MISSING": "no value", "EMPTY": "the empty string", "FALSE": "false", "NEVER": "every request has it"}
TOKEN = re.compile(r'\s*(?:("(?:[^"\\]|\\.)*")|([^\s",()]+)|(.))', re.S)
TABLES = {}


# --- reading the tables ---


def rows(table, macro):
    """The arguments of each row: strings as str, everything else as the words that stand there, joined by blanks."""
    text = re.sub(r"/\*.*?\*/", "", (SCHEMAS / f"{table}.def").read_text(encoding="utf-8"), flags=re.S)
    text = "\n".join(line for line in text.splitlines() if not line.startswith("#"))
    return [arguments(text, match.end()) for match in re.finditer(rf"^{macro}\(", text, re.M)]


def arguments(text, at):
    found, current = [], []
    while True:
        match = TOKEN.match(text, at)
        at = match.end()
        string, word, sign = match.groups()
        if string is not None:
            current.append(json.loads(string))
        elif word is not None:
            current.append(word)
        else:
            found.append(" ".join(current))
            current = []
            if sign == ")":
                return found


def limits():
    found = {}
    for name in LIMITS_OF:
        for body in re.findall(r"^enum \{(.*?)\};", (ROOT / name).read_text(encoding="utf-8"), re.M | re.S):
            found.update({key: int(value) for key, value in re.findall(r"(\w+) = (\d+)", body)})
    return found


def words(bits, names):
    """["config", ...] of "P_CONFIG | P_RATE"."""
    if bits == "P_ALL":
        return list(names.values())
    return [names[bit] for bit in bits.split(" | ")]


def fields():
    sources = {identifier: name for identifier, name, _, _ in rows("sources", "SOURCE_ROW")}
    for _, name, kind, is_list, key, phases, source, client, absent, meaning in rows("fields", "FIELD_ROW"):
        yield {
            "name": name,
            "type": kind.lower(),
            "list": is_list == "1",
            "key": None if key == "NONE" else key.lower(),
            "phases": words(phases, PHASES),
            "source": sources[source],
            "client": client == "1",
            "absent": absent.lower(),
            "operators": [o["name"] for o in operators() if kind.lower() in o["types"]],
            "meaning": meaning,
        }


def operators():
    names = {f"T_{kind}": kind.lower() for kind in ("STRING", "INT", "IP", "BOOL", "SIGNAL")}
    for _, name, call, takes_set, negated, types, label in rows("operators", "OPERATOR_ROW"):
        yield {
            "name": name,
            "call": call == "1",
            "set": takes_set == "1",
            "negated": negated == "1",
            "types": words(types, names),
            "label": label,
        }


def named(table, macro, *members):
    """One object a row, its identifier left out; a member whose name ends in ? is a bool."""
    for row in rows(table, macro):
        yield {name.rstrip("?"): value == "1" if name.endswith("?") else value for name, value in zip(members, row[1:], strict=True)}


def policy_objects():
    members = {}
    for name, *rest in rows("policy", "MEMBER_ROW"):
        members.setdefault(name, []).append(dict(zip(("name", "type", "need", "default", "schema", "meaning"), rest, strict=True)))
    for identifier, title, meaning in rows("policy", "OBJECT_ROW"):
        yield {"id": identifier, "title": title, "meaning": meaning, "members": members[identifier]}


# --- tables in Markdown ---


def table(name):
    def register(function):
        TABLES[name] = function
        return function

    return register


def plain(text):
    """Angle brackets outside of code would be taken for HTML."""
    return "`".join(part if i % 2 else part.replace("<", "&lt;") for i, part in enumerate(str(text).split("`")))


def cell(text):
    return plain(text).replace("|", "\\|").replace("\n", " ")


def markdown(head, body):
    lines = [head, ["---"] * len(head), *body]
    return "\n".join("| " + " | ".join(cell(c) for c in line) + " |" for line in lines)


def code(text):
    return f"`{text}`" if text else ""


def field_form(field):
    return code(field["name"] + ('["..."]' if field["key"] else ""))


@table("fields")
def field_table():
    def body(field):
        kind = ("list of " if field["list"] else "") + field["type"]
        phases = "all" if len(field["phases"]) == len(PHASES) else ", ".join(field["phases"])
        return (field_form(field), kind, phases, field["source"], ABSENT[field["absent"].upper()], field["meaning"])

    return markdown(("field", "type", "phases", "source", "when absent", "what it is"), map(body, fields()))


@table("client-fields")
def client_field_table():
    return ", ".join(field_form(field) for field in fields() if field["client"]) + "."


@table("keys")
def key_table():
    return markdown(("field", "key"), ((field_form(f), KEYS[f["key"].upper()]) for f in fields() if f["key"]))


@table("operators")
def operator_table():
    def form(operator):
        name = operator["name"]
        return f"{name}(field, value)" if operator["call"] else f"field {name} {{value value}}" if operator["set"] else f"field {name} value"

    return markdown(
        ("operator", "written", "types", "true when the field", "without a value"),
        ((code(o["name"]), code(form(o)), ", ".join(o["types"]), o["label"], "true" if o["negated"] else "false") for o in operators()),
    )


@table("sources")
def source_table():
    body = ((code(name), "by the deployment" if viewer == "1" else "always there", meaning) for _, name, viewer, meaning in rows("sources", "SOURCE_ROW"))
    return markdown(("source", "there", "what it is"), body)


@table("signals")
def signal_table():
    sources = {identifier: name for identifier, name, _, _ in rows("sources", "SOURCE_ROW")}
    return markdown(("signal", "needs", "holds for"), ((code(n), sources[s], m) for _, n, s, m in rows("signals", "SIGNAL_ROW")))


@table("path-refusals")
def refusal_table():
    return markdown(("name", "the path has"), ((code(n), m) for _, n, m in rows("path_refusals", "PATH_REFUSAL_ROW")))


@table("key-parts")
def part_table():
    def body(part):
        form = part["name"] + (":<n>" if part["named"] else "")
        return code(form), part["meaning"], "yes" if part["client"] else "", "yes" if part["distinct"] else ""

    parts = named("key_parts", "KEY_PART_ROW", "name", "named?", "source", "client?", "distinct?", "meaning")
    return markdown(("key part", "what it is", "the client chooses it", "in distinct_of"), map(body, parts))


@table("placeholders")
def placeholder_table():
    def body(placeholder):
        return code("{{" + placeholder["name"] + (":<n>" if placeholder["named"] else "") + "}}"), placeholder["meaning"]

    return markdown(("placeholder", "what stands there then"), map(body, named("placeholders", "PLACEHOLDER_ROW", "name", "named?", "source", "meaning")))


@table("reserved-headers")
def reserved_table():
    exact = [code(name) for (name,) in rows("reserved_headers", "RESERVED_HEADER")]
    prefixes = [code(name + "*") for (name,) in rows("reserved_headers", "RESERVED_PREFIX")]
    return ", ".join(exact + prefixes) + "."


@table("kinds")
def kind_table():
    return markdown(("kind", "status"), ((code(name), status) for _, name, status in rows("kinds", "KIND_ROW")))


@table("decisions")
def decision_table():
    return ", ".join(code(name) for _, name in rows("decisions", "DECISION_ROW")) + "."


@table("errors")
def error_table():
    body = ((code(n), "warning" if status == "200" else "error", m.removeprefix("a warning: "), r) for _, n, status, m, r in rows("errors", "ERROR_ROW"))
    return markdown(("code", "", "what it says", "what to do"), body)


NEEDS = {"REQUIRED": "required", "OPTIONAL": "", "DEPENDS": "see there"}


def object_tables(wanted):
    text = []
    for o in policy_objects():
        if not wanted(o["id"]):
            continue
        body = (
            (code(m["name"]), cell_type(m["type"]), NEEDS[m["need"]], code(m["default"]), m["schema"] if m["schema"] != "1" else "", m["meaning"])
            for m in o["members"]
        )
        text.append(f"### {plain(o['title'])}\n\n{plain(o['meaning'][0].upper() + o['meaning'][1:])}.\n")
        text.append(markdown(("member", "type", "", "default", "schema", "meaning"), body) + "\n")
    return "\n".join(text).rstrip()


def cell_type(text):
    """Names of objects become the titles that the page has."""
    titles = {o["id"]: o["title"] for o in policy_objects()}
    return re.sub(r"\b[A-Z][A-Z_]+\b", lambda m: titles.get(m[0], m[0]), text)


OF_TESTS = ("TESTED", "TEST", "TEST_REQUEST", "TEST_CERT", "TEST_EXPECT")
OF_SNAPSHOTS = ("ENVELOPE", "KEYS", "VERIFIED_BOTS")
TABLES["policy-objects"] = lambda: object_tables(lambda o: o not in OF_TESTS + OF_SNAPSHOTS)
TABLES["snapshot-objects"] = lambda: object_tables(lambda o: o in OF_SNAPSHOTS)
TABLES["test-objects"] = lambda: object_tables(lambda o: o in OF_TESTS)
TABLES["op-object"] = lambda: object_tables(lambda o: o in ("HEADER_RULE", "OP", "FORWARD"))


# --- the files ---


def page(template):
    known = limits()
    text = template.read_text(encoding="utf-8")
    text = re.sub(r"^<!-- table: ([\w-]+) -->$", lambda m: TABLES[m[1]](), text, flags=re.M)
    text = re.sub(r"@([A-Z][A-Z_]+)@", lambda m: str(known[m[1]]), text)
    title, _, rest = text.partition("\n")
    return f"{title}\n\n<!-- Made from templates/{template.name} and the tables in schemas/ by `make reference`. -->\n{rest}"


def vocabulary():
    vocabulary = {
        "phases": list(PHASES.values()),
        "limits": limits(),
        "fields": list(fields()),
        "operators": list(operators()),
        "sources": list(named("sources", "SOURCE_ROW", "name", "viewer?", "meaning")),
        "signals": list(named("signals", "SIGNAL_ROW", "name", "source", "meaning")),
        "key_parts": list(named("key_parts", "KEY_PART_ROW", "name", "named?", "source", "client?", "distinct?", "meaning")),
        "placeholders": list(named("placeholders", "PLACEHOLDER_ROW", "name", "named?", "source", "meaning")),
        "kinds": [{"name": name, "status": int(status)} for _, name, status in rows("kinds", "KIND_ROW")],
        "decisions": [name for _, name in rows("decisions", "DECISION_ROW")],
        "algorithms": [name for _, name in rows("jws_algorithms", "ALGORITHM_ROW")],
        "reserved_headers": [name for (name,) in rows("reserved_headers", "RESERVED_HEADER")],
        "reserved_prefixes": [name for (name,) in rows("reserved_headers", "RESERVED_PREFIX")],
        "path_refusals": list(named("path_refusals", "PATH_REFUSAL_ROW", "name", "meaning")),
        "errors": [{"code": n, "status": int(s), "meaning": m, "remedy": r} for _, n, s, m, r in rows("errors", "ERROR_ROW")],
        "objects": list(policy_objects()),
    }
    sources = {identifier: name for identifier, name, _, _ in rows("sources", "SOURCE_ROW")}
    for part in ("signals", "key_parts", "placeholders"):
        for row in vocabulary[part]:
            row["source"] = sources[row["source"]]
    return json.dumps(vocabulary, indent=1, ensure_ascii=False) + "\n"


def main():
    files = {HERE / t.name: page(t) for t in sorted((HERE / "templates").glob("*.md"))} | {SCHEMAS / "vocabulary.json": vocabulary()}
    stale = [f for f, text in files.items() if not f.exists() or f.read_text(encoding="utf-8") != text]
    if "--check" in sys.argv[1:]:
        for f in stale:
            print(f"{f.relative_to(ROOT)}: not what the tables and its template say: run `make reference`")
        return 1 if stale else 0
    for f in stale:
        f.write_text(files[f], encoding="utf-8")
        print(f"wrote {f.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
