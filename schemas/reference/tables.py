"""Reads schemas/*.def and the headers that state the limits: a row becomes its arguments, a table a list of objects."""

import json
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCHEMAS = ROOT / "schemas"
LIMITS_OF = ("common/expr/expr.h", "common/http/accept_language.h", "common/http/cors.h", "common/policy/policy.h", "common/policy/ingress.h")
COUNTED_IN = ("spoa/record/counts.h",)
PHASES = {"P_CONFIG": "config", "P_RATE": "rate_limit", "P_HEADERS": "request_headers"}
READERS = {"BY_AGENT": "agent", "BY_HAPROXY": "haproxy", "BY_LAUNCHER": "run", "BY_OFFLINE": "check"}
FORMS = {"ADDRESS": "address", "ADDRESS_PORT": "address:port"}
TOKEN = re.compile(r'\s*(?:("(?:[^"\\]|\\.)*")|([^\s",()]+)|(.))', re.S)


def rows(table, macro):
    """The arguments of each row: strings as str, everything else as the words that stand there, joined by blanks."""
    text = re.sub(r"/\*.*?\*/", "", (SCHEMAS / f"{table}.def").read_text(encoding="utf-8"), flags=re.S)
    text = "\n".join(line for line in text.splitlines() if not line.startswith("#"))
    return [arguments(text, match.end()) for match in re.finditer(rf"^{macro}\(", text, re.M)]


def grouped(table, title, macro):
    """The arguments of each row, behind the title that stands above it."""
    text = (SCHEMAS / f"{table}.def").read_text(encoding="utf-8")
    titles = [(m.start(), arguments(text, m.end())[0]) for m in re.finditer(rf"^{title}\(", text, re.M)]
    for match in re.finditer(rf"^{macro}\(", text, re.M):
        yield [[name for at, name in titles if at < match.start()][-1], *arguments(text, match.end())]


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


def limits(headers=LIMITS_OF):
    found = {}
    for name in headers:
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


def duration(ms):
    """As parse_render_duration writes it."""
    hours, minutes, seconds = ms // 3600000, ms // 60000 % 60, ms // 1000 % 60
    return f"{ms}ms" if 0 < ms < 1000 else f"{hours}h{minutes}m{seconds}s" if hours else f"{minutes}m{seconds}s" if minutes else f"{seconds}s"


def size(n):
    """In the largest unit that leaves no rest."""
    units = ["", "KiB", "MiB", "GiB"]
    while n and n % 1024 == 0 and len(units) > 1:
        n //= 1024
        units.pop(0)
    return f"{n}{units[0]}"


def number(n):
    return str(n)


VALUES = {"STR": "text", "LIST": "comma list, may be empty", "SECRET": "secret", "RATE": "rate, 0 to 1, at most four decimals"}
RANGES = {"DURATION": ("duration", duration), "SIZE": ("size", size), "COUNT": ("number", number)}


def settings():
    """The rows in their groups. A secret's default is nobody's business."""
    sets = {f"ENUM_{name}": words for name, words in rows("settings", "SETTING_ENUM")}
    for group, _, name, kind, default, least, most, readers, meaning in grouped("settings", "SETTING_GROUP", "SETTING_ROW"):
        word, form = RANGES.get(kind, (None, None))
        yield {
            "name": name,
            "group": group,
            "type": "words" if kind in sets else kind.lower(),
            "words": sets[kind].split("|") if kind in sets else None,
            "default": None if kind == "SECRET" or default == "" else default,
            "value": f"{word}, {form(int(least))} to {form(int(most))}" if word else sets.get(kind) or VALUES[kind],
            "read_by": [name for bit, name in READERS.items() if bit in readers.split(" | ")],
            "from_run": "FROM_LAUNCHER" in readers,
            "meaning": meaning,
        }


def metrics():
    """The families of /metrics in their order. METRIC_WORKER is short for a counter without labels."""
    text = (SCHEMAS / "metrics.def").read_text(encoding="utf-8")
    for match in re.finditer(r"^METRIC_(FAMILY|WORKER)\(", text, re.M):
        found = arguments(text, match.end())
        if match[1] == "WORKER":
            found = [*found[:2], "COUNTER", "", "", "ALWAYS", *found[2:]]
        _, name, kind, label, label2, when, stability, meaning = found
        yield {
            "name": name,
            "type": kind.lower(),
            "labels": [one for one in (label, label2) if one],
            "when": when.lower(),
            "stable": stability == "STABLE",
            "meaning": meaning,
        }


def presets():
    sources = {identifier: name for identifier, name, _, _ in rows("sources", "SOURCE_ROW")}
    for identifier, name, header, form, meaning in rows("client_ip_presets", "PRESET_ROW"):
        viewer = {sources[source]: header for preset, source, header in rows("client_ip_presets", "PRESET_VIEWER") if preset == identifier}
        yield {"name": name, "header": header, "form": FORMS[form], "viewer": viewer, "meaning": meaning}


def policy_objects():
    members = {}
    for name, *rest in rows("policy", "MEMBER_ROW"):
        members.setdefault(name, []).append(dict(zip(("name", "type", "need", "default", "schema", "meaning"), rest, strict=True)))
    for identifier, title, meaning in rows("policy", "OBJECT_ROW"):
        yield {"id": identifier, "title": title, "meaning": meaning, "members": members[identifier]}
