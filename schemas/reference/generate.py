#!/usr/bin/python3
"""Makes the reference pages and vocabulary.json from the tables in schemas/: `generate.py` writes them, `generate.py --check` only says what is stale.

A page is its template with two kinds of marks filled in: a line `<!-- table: NAME -->` by the table of that name, and @NAME@ by a number of the headers
that state the limits. What a table says is said nowhere else, so a page is wrong only where its template is.
"""

import json
import re
import sys

import tables
from tables import PHASES, READERS, ROOT, SCHEMAS, rows

HERE = SCHEMAS / "reference"
KEYS = {"HEADER": "a header name, case ignored", "COOKIE": "a cookie name", "PARAMETER": "a parameter name", "CLAIM": "a claim name"}
ABSENT = {"MISSING": "no value", "EMPTY": "the empty string", "FALSE": "false", "NEVER": "every request has it"}
TABLES = {}


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

    return markdown(("field", "type", "phases", "source", "when absent", "what it is"), map(body, tables.fields()))


@table("client-fields")
def client_field_table():
    return ", ".join(field_form(field) for field in tables.fields() if field["client"]) + "."


@table("keys")
def key_table():
    return markdown(("field", "key"), ((field_form(f), KEYS[f["key"].upper()]) for f in tables.fields() if f["key"]))


@table("operators")
def operator_table():
    def form(operator):
        name = operator["name"]
        return f"{name}(field, value)" if operator["call"] else f"field {name} {{value value}}" if operator["set"] else f"field {name} value"

    return markdown(
        ("operator", "written", "types", "true when the field", "without a value"),
        ((code(o["name"]), code(form(o)), ", ".join(o["types"]), o["label"], "true" if o["negated"] else "false") for o in tables.operators()),
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

    parts = tables.named("key_parts", "KEY_PART_ROW", "name", "named?", "source", "client?", "distinct?", "meaning")
    return markdown(("key part", "what it is", "the client chooses it", "in distinct_of"), map(body, parts))


@table("placeholders")
def placeholder_table():
    def body(placeholder):
        return code("{{" + placeholder["name"] + (":<n>" if placeholder["named"] else "") + "}}"), placeholder["meaning"]

    return markdown(("placeholder", "what stands there then"), map(body, tables.named("placeholders", "PLACEHOLDER_ROW", "name", "named?", "source", "meaning")))


@table("reserved-headers")
def reserved_table():
    exact = [code(name) for (name,) in rows("reserved_headers", "RESERVED_HEADER")]
    prefixes = [code(name + "*") for (name,) in rows("reserved_headers", "RESERVED_PREFIX")]
    return ", ".join(exact + prefixes) + "."


@table("kinds")
def kind_table():
    return markdown(("kind", "status", "when, and whose template"), ((code(name), status, meaning) for _, name, status, meaning in rows("kinds", "KIND_ROW")))


@table("decisions")
def decision_table():
    return ", ".join(code(name) for _, name, _ in rows("decisions", "DECISION_ROW")) + "."


@table("errors")
def error_table():
    body = ((code(n), "warning" if status == "200" else "error", m.removeprefix("a warning: "), r) for _, n, status, m, r in rows("errors", "ERROR_ROW"))
    return markdown(("code", "", "what it says", "what to do"), body)


NEEDS = {"REQUIRED": "required", "OPTIONAL": "", "DEPENDS": "see there"}


def object_tables(wanted):
    text = []
    for o in tables.policy_objects():
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
    titles = {o["id"]: o["title"] for o in tables.policy_objects()}
    return re.sub(r"\b[A-Z][A-Z_]+\b", lambda m: titles.get(m[0], m[0]), text)


def setting_rows(wanted):
    body = ((code(s["name"]), code(s["default"]), cell_code(s["value"]), ", ".join(s["read_by"]), s["meaning"]) for s in wanted)
    return markdown(("variable", "default", "value", "read by", "what it is"), body)


def cell_code(value):
    return ", ".join(code(word) for word in value.split("|")) if "|" in value else value


@table("settings")
def setting_table():
    groups = {}
    for s in tables.settings():
        if not s["from_run"]:
            groups.setdefault(s["group"], []).append(s)
    return "\n\n".join(f"### {group}\n\n{setting_rows(wanted)}" for group, wanted in groups.items())


@table("settings-from-run")
def from_run_table():
    return setting_rows(s for s in tables.settings() if s["from_run"])


@table("settings-refused")
def refused_setting_table():
    return markdown(("variable", "why"), ((code(name), reason) for name, _, reason in rows("settings", "SETTING_REFUSED")))


@table("settings-passed")
def passed_table():
    def children(readers):
        return ", ".join(READERS[bit] for bit in readers.split(" | "))

    return markdown(("variable", "to", "what it is"), ((code(n), children(r), m) for n, r, m in rows("settings", "SETTING_PASSED")))


@table("client-ip-presets")
def preset_table():
    body = ((code(p["name"]), code(p["header"]), p["form"], p["meaning"]) for p in tables.presets())
    return markdown(("CLIENT_IP_SOURCE", "header of the client's address", "form", "for"), body)


@table("viewer-headers")
def viewer_table():
    known = list(tables.presets())
    body = ((code(n), m, *(code(p["viewer"].get(n)) for p in known)) for _, n, viewer, m in rows("sources", "SOURCE_ROW") if viewer == "1")
    return markdown(("field", "what it is", *(code(p["name"]) for p in known)), body)


@table("identity-refusals")
def identity_refusal_table():
    return markdown(("reason", "what it says"), ((code(n), m) for _, n, m in rows("identity_refusals", "IDENTITY_REFUSAL_ROW")))


WHEN = {"always": "", "nonzero": "a series once it is above zero", "embedded": "without `VALKEY_URL`", "valkey": "with `VALKEY_URL`"}


@table("metrics")
def metric_table():
    def body(m):
        return code(m["name"]), m["type"], ", ".join(map(code, m["labels"])), WHEN[m["when"]], "stable" if m["stable"] else "unstable", m["meaning"]

    return markdown(("family", "type", "labels", "there", "", "what it counts"), map(body, tables.metrics()))


@table("decision-meanings")
def decision_meaning_table():
    return markdown(("decision", "the request was"), ((code(name), meaning) for _, name, meaning in rows("decisions", "DECISION_ROW")))


@table("upstream-errors")
def upstream_error_table():
    body = ((code(name), code(decision.lower()), meaning) for _, name, decision, meaning in rows("upstream_errors", "UPSTREAM_ERROR_ROW"))
    return markdown(("cause", "decision", "what happened"), body)


@table("rule-counts")
def rule_count_table():
    families = {"CONFIG": "edge_config_rule_total", "RATE": "edge_ratelimit_rule_total", "HEADER": "edge_header_rule_total"}
    body = ((code(families[phase]), code(name), meaning) for phase, _, _, name, meaning in rows("rule_counts", "RULE_COUNT_ROW"))
    return markdown(("family", "outcome", "requests"), body)


@table("latency-buckets")
def latency_table():
    return ", ".join(code(le) for _, le in rows("latency_buckets", "LATENCY_BUCKET_ROW")) + ", `+Inf`."


@table("log-fields")
def log_field_table():
    kinds = {"TEXT": "string", "NUMBER": "number", "BOOL": "bool", "RATE": "number", "IDS": "strings", "NAMES": "strings", "SIGNALS": "strings"}
    body = ((code(n), kinds[kind], when, stability, meaning) for _, n, kind, when, stability, meaning in rows("log_fields", "LOG_FIELD_ROW"))
    return markdown(("member", "type", "there", "", "what it says"), body)


OF_TESTS = ("TESTED", "TEST", "TEST_REQUEST", "TEST_CERT", "TEST_EXPECT")
OF_SNAPSHOTS = ("ENVELOPE", "KEYS", "VERIFIED_BOTS")
TABLES["policy-objects"] = lambda: object_tables(lambda o: o not in OF_TESTS + OF_SNAPSHOTS)
TABLES["snapshot-objects"] = lambda: object_tables(lambda o: o in OF_SNAPSHOTS)
TABLES["test-objects"] = lambda: object_tables(lambda o: o in OF_TESTS)
TABLES["cors-objects"] = lambda: object_tables(lambda o: o == "CORS_POLICY")
TABLES["locale-object"] = lambda: object_tables(lambda o: o == "LOCALE")
TABLES["op-object"] = lambda: object_tables(lambda o: o in ("HEADER_RULE", "OP", "FORWARD"))


# --- the files ---


def page(template):
    known = tables.limits(tables.LIMITS_OF + tables.COUNTED_IN)
    text = template.read_text(encoding="utf-8")
    text = re.sub(r"^<!-- table: ([\w-]+) -->$", lambda m: TABLES[m[1]](), text, flags=re.M)
    text = re.sub(r"@([A-Z][A-Z_]+)@", lambda m: str(known[m[1]]), text)
    title, _, rest = text.partition("\n")
    return f"{title}\n\n<!-- Made from templates/{template.name} and the tables in schemas/ by `make reference`. -->\n{rest}"


def vocabulary():
    vocabulary = {
        "phases": list(PHASES.values()),
        "limits": tables.limits(),
        "fields": list(tables.fields()),
        "operators": list(tables.operators()),
        "sources": list(tables.named("sources", "SOURCE_ROW", "name", "viewer?", "meaning")),
        "signals": list(tables.named("signals", "SIGNAL_ROW", "name", "source", "meaning")),
        "key_parts": list(tables.named("key_parts", "KEY_PART_ROW", "name", "named?", "source", "client?", "distinct?", "meaning")),
        "placeholders": list(tables.named("placeholders", "PLACEHOLDER_ROW", "name", "named?", "source", "meaning")),
        "kinds": [{"name": name, "status": int(status)} for _, name, status, _ in rows("kinds", "KIND_ROW")],
        "decisions": [name for _, name, _ in rows("decisions", "DECISION_ROW")],
        "algorithms": [name for _, name in rows("jws_algorithms", "ALGORITHM_ROW")],
        "reserved_headers": [name for (name,) in rows("reserved_headers", "RESERVED_HEADER")],
        "reserved_prefixes": [name for (name,) in rows("reserved_headers", "RESERVED_PREFIX")],
        "path_refusals": list(tables.named("path_refusals", "PATH_REFUSAL_ROW", "name", "meaning")),
        "settings": list(tables.settings()),
        "client_ip_presets": list(tables.presets()),
        "identity_refusals": list(tables.named("identity_refusals", "IDENTITY_REFUSAL_ROW", "name", "meaning")),
        "errors": [{"code": n, "status": int(s), "meaning": m, "remedy": r} for _, n, s, m, r in rows("errors", "ERROR_ROW")],
        "objects": list(tables.policy_objects()),
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
