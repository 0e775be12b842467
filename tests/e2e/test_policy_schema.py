"""The JSON Schemas of policies, snapshots and tests say what schemas/*.def say, and agree with the compiler on the corpus of
tests/cases/policy/documents, which tests/unit/test_policy_documents.c holds the compiler to."""

import json
import re

import jsonschema
import pytest

import policy_rows
from edge import ROOT

NAMES = ("policy", "snapshot", "tests")
SCHEMAS = {name: policy_rows.schema(name) for name in NAMES}
VALIDATORS = {name: policy_rows.validator(name) for name in NAMES}


# ---- the tables ----


def table(name, macro):
    text = re.sub(r"/\*.*?\*/", "", (ROOT / f"schemas/{name}.def").read_text(), flags=re.S)
    for row in re.finditer(rf'^{macro}\(((?:[^"()]|"(?:\\.|[^"\\])*")*)\)', text, flags=re.M):
        cells = re.findall(r'"(?:\\.|[^"\\])*"|[^,\s][^,]*', row[1])
        yield [json.loads(cell) if cell.startswith('"') else cell.strip() for cell in cells]


OBJECTS = {row[0]: row[1:] for row in table("policy", "OBJECT_ROW")}
MEMBERS = [row for row in table("policy", "MEMBER_ROW")]
KINDS = [row[1] for row in table("kinds", "KIND_ROW")]


def place_of(object_id):
    """The schema of an object: the roots are the policy and the snapshot, all others are definitions."""
    if object_id == "CONFIG":
        return SCHEMAS["policy"]
    if object_id == "ENVELOPE":
        return SCHEMAS["snapshot"]
    for name in NAMES:
        if object_id.lower() in SCHEMAS[name]["$defs"]:
            return SCHEMAS[name]["$defs"][object_id.lower()]
    raise AssertionError(f"no schema has {object_id}")


def members_of(object_id):
    return [row for row in MEMBERS if row[0] == object_id]


def default_of(text):
    try:
        return json.loads(text), True
    except ValueError:
        return None, False


def description_of(kind, default, schema, meaning):
    notes = [kind] if kind.startswith("duration") else []
    if default and not default_of(default)[1]:
        notes.append(f"default: {default}")
    if schema != "1":
        notes.append(f"schema {schema}")
    return meaning + (f" ({'; '.join(notes)})" if notes else "")


def resolved(node):
    while "$ref" in node:
        file, _, path = node["$ref"].partition("#/$defs/")
        homes = [file.removesuffix(".schema.json")] if file else NAMES
        home = next(SCHEMAS[name] for name in homes if not path or path in SCHEMAS[name]["$defs"])
        node = home["$defs"][path] if path else home
    return node


# ---- the schemas against the tables ----


@pytest.mark.parametrize("name", NAMES)
def test_each_schema_is_one_of_draft_2020_12(name):
    jsonschema.Draft202012Validator.check_schema(SCHEMAS[name])


@pytest.mark.parametrize("object_id", OBJECTS)
def test_an_object_has_the_members_of_the_table_in_its_order_and_no_others(object_id):
    node = place_of(object_id)
    rows = members_of(object_id)
    assert list(node["properties"]) == [row[1] for row in rows]
    assert node["additionalProperties"] is False
    assert node["type"] == "object"
    assert node.get("required", []) == [row[1] for row in rows if row[3] == "REQUIRED"]
    assert [node["title"], node["description"]] == OBJECTS[object_id]


@pytest.mark.parametrize("row", MEMBERS, ids=lambda row: f"{row[0]}.{row[1]}")
def test_a_member_has_the_type_range_default_and_meaning_of_the_table(row):
    object_id, name, kind, _, default, schema, meaning = row
    node = place_of(object_id)["properties"][name]
    assert node["description"] == description_of(kind, default, schema, meaning)
    value, is_json = default_of(default)
    assert ("default" in node) == is_json and node.get("default") == value
    target = resolved(node)
    if bounds := re.fullmatch(r"int (\d+)\.\.(\d+)", kind):
        assert (target["type"], target["minimum"], target["maximum"]) == ("integer", int(bounds[1]), int(bounds[2]))
    elif kind.startswith("enum ") and name != "content_type":
        words, null = kind[5:].removesuffix(", or null").split("|"), kind.endswith(", or null")
        assert target["enum"] == words + [None] * null
    elif kind == "bool":
        assert target["type"] == "boolean"
    elif kind.startswith("duration "):
        assert node["$ref"].endswith("#/$defs/duration")
    elif kind == "time":
        assert node["$ref"].endswith("#/$defs/time")
    elif (object_ref := re.fullmatch(r"([\[{])([A-Z_]+)[\]}]", kind)) and object_ref[2] in OBJECTS:
        item = target["items"] if object_ref[1] == "[" else target
        assert resolved(item) is place_of(object_ref[2])
    elif object_ref := re.fullmatch(r"\{name: ([A-Z_]+)\}", kind):
        assert resolved(target["additionalProperties"]) is place_of(object_ref[1])
    elif kind.startswith("["):
        assert target["type"] == "array"


def test_limits_in_words_are_limits_of_the_schema():
    for object_id, name, kind, _, _, _, meaning in MEMBERS:
        node = place_of(object_id)["properties"][name]
        if bounds := re.match(r"(\d+) to (\d+)\b", meaning):
            assert (node["minItems"], node["maxItems"]) == (int(bounds[1]), int(bounds[2])), name
        elif kind.startswith("[") and (most := re.search(r"at most (\d+)", meaning)):
            assert node["maxItems"] == int(most[1]), name


def test_the_words_of_the_tables_are_the_words_of_the_schema():
    defs = SCHEMAS["policy"]["$defs"]
    condition = defs["condition"]["properties"]
    assert condition["field"]["enum"] == [row[1] for row in table("fields", "FIELD_ROW")]
    assert condition["field"]["enumDescriptions"] == [row[8] for row in table("fields", "FIELD_ROW")]
    assert condition["operator"]["enum"] == [row[1] for row in table("operators", "OPERATOR_ROW")]
    assert list(defs["template_choice"]["properties"]) == KINDS + ["misdirected"]
    assert defs["defaults"]["properties"]["responses"]["required"] == [kind for kind in KINDS if kind != "forbidden"]
    assert defs["issuer"]["properties"]["algorithm"]["enum"] == [row[1] for row in table("jws_algorithms", "ALGORITHM_ROW")]
    assert list(SCHEMAS["tests"]["$defs"]["settings_seen"]["properties"]["responses"]["properties"]) == KINDS


def accepted(definition, value):
    text = {"$ref": f"policy.schema.json#/$defs/{definition}"}
    return VALIDATORS["policy"].evolve(schema=text).is_valid(value)


def condition(field, operator, value, key=None):
    return {"field": field, "operator": operator, "value": value, **({} if key is None else {"key": key})}


TYPES = {"STRING": "text", "INT": 7, "IP": "192.0.2.1", "BOOL": True, "SIGNAL": "no_accept"}
OPERATORS = [(row[1], row[3] == "1", row[5]) for row in table("operators", "OPERATOR_ROW")]


@pytest.mark.parametrize("row", table("fields", "FIELD_ROW"), ids=lambda row: row[1])
def test_a_field_takes_the_operators_values_key_and_phases_of_its_type(row):
    _, field, kind, _, key, phases, *_ = row
    name = None if key == "NONE" else "a"
    for operator, is_set, types in OPERATORS:
        fits = f"T_{kind}" in types
        value = TYPES[kind]
        assert accepted("expression", condition(field, operator, [value] if is_set else value, name)) == fits, operator
        assert not accepted("expression", condition(field, operator, value if is_set else [value], name)), operator
    for other, value in TYPES.items():
        is_any_text = kind == "STRING" and isinstance(value, str)
        assert accepted("expression", condition(field, "eq", value, name)) == (other == kind or is_any_text), other
    assert not accepted("expression", condition(field, "eq", TYPES[kind], "a" if key == "NONE" else None))
    in_config = phases == "P_ALL" or "P_CONFIG" in phases
    assert accepted("config_expression", condition(field, "eq", TYPES[kind], name)) == in_config


@pytest.mark.parametrize("row", table("key_parts", "KEY_PART_ROW"), ids=lambda row: row[1])
def test_a_key_part_is_written_as_the_table_says(row):
    _, name, named, _, _, distinct, _ = row
    distinct_of = SCHEMAS["policy"]["$defs"]["rate_rule"]["properties"]["distinct_of"]
    for text, fits in ((name, named == "0"), (f"{name}:a", named == "1"), (f"{name}:", False), (name.upper(), False)):
        assert accepted("key_part", text) == (fits and name != "path"), text
        assert jsonschema.Draft202012Validator(distinct_of).is_valid(text) == (fits and distinct == "1"), text


def operation(**members):
    return {"op": "set", "name": "X-A", "value": "1", **members}


@pytest.mark.parametrize("row", table("placeholders", "PLACEHOLDER_ROW"), ids=lambda row: row[1])
def test_a_placeholder_is_written_as_the_table_says(row):
    _, name, named, *_ = row
    assert accepted("op", operation(value=f"{{{{{name}}}}}")) == (named == "0")
    assert accepted("op", operation(value=f"{{{{{name}:a}}}}")) == (named == "1")
    assert not accepted("op", operation(value=f"{{{{{name.upper()}}}}}"))


def reserved_names():
    for (name,) in table("reserved_headers", "RESERVED_HEADER"):
        yield name
    for (prefix,) in table("reserved_headers", "RESERVED_PREFIX"):
        yield f"{prefix}a"


@pytest.mark.parametrize("name", reserved_names())
def test_a_reserved_header_is_no_ones_to_write_or_count_by_in_any_spelling(name):
    for spelling in (name, name.upper(), name.title(), name.replace("-", "_")):
        assert not accepted("op", operation(name=spelling))
        assert not accepted("key_part", f"header:{spelling}")
        assert not accepted("expression", condition("http.request.headers", "eq", "a", spelling))
    assert accepted("op", operation(name=f"not-{name}"))


# ---- the corpus ----


def faults_of(document):
    validator = VALIDATORS["snapshot" if isinstance(document, dict) and "active" in document else "policy"]
    return [f"{policy_rows.pointer_of(e)}: {e.message[:200]}" for e in validator.iter_errors(document)]


def by_name(row):
    return row["name"]


@pytest.mark.parametrize("row", policy_rows.rows("valid"), ids=by_name)
def test_what_the_compiler_accepts_the_schema_accepts(row):
    assert faults_of(policy_rows.document_of(row)) == []


@pytest.mark.parametrize("row", policy_rows.rows("invalid"), ids=by_name)
def test_of_what_the_compiler_refuses_the_schema_refuses_what_it_can_see(row):
    assert bool(faults_of(policy_rows.document_of(row))) == row["schema_sees"]


@pytest.mark.parametrize("row", policy_rows.rows("tests"), ids=by_name)
def test_files_with_tests_are_told_apart_from_others(row):
    assert VALIDATORS["tests"].is_valid(row["document"]) == row["valid"]


# ---- what the corpus covers ----


def canonical(pointer):
    """The pointer as the table writes places: items of lists as [], names of maps as <name>."""
    path = re.sub(r"/(active|candidate)(?=/)", "", pointer)
    path = re.sub(r"^/global/(responses|cors_policies)/[^/]+", r"/global/\1/<name>", path)
    return re.sub(r"/\d+", "[]", path).lstrip("/").replace("/", ".")


def place_in_table(object_id, name):
    title = OBJECTS[object_id][0]
    return name if object_id in ("CONFIG", "ENVELOPE") else f"{title}.{name}"


IN_POLICIES = [row for row in MEMBERS if not row[0].startswith("TEST")]


@pytest.mark.parametrize("code,need", [("bad_type", None), ("missing", "REQUIRED")])
def test_every_member_has_rows_of_the_wrong_type_and_of_its_absence(code, need):
    told = {canonical(fault["path"]) for row in policy_rows.rows("invalid") for fault in row["faults"] if fault["code"] == code}
    wanted = {place_in_table(row[0], row[1]) for row in IN_POLICIES if need in (None, row[3])}
    assert wanted - told - ({"active"} if code == "missing" else set()) == set()


def places(document, pointer=""):
    """Every place of a document, as a pointer."""
    yield pointer
    if isinstance(document, (dict, list)):
        for key, value in document.items() if isinstance(document, dict) else enumerate(document):
            yield from places(value, f"{pointer}/{key}")


def test_every_member_is_used_by_a_document_that_is_valid():
    used = set()
    for row in policy_rows.rows("valid"):
        used |= {canonical(place) for place in places(policy_rows.document_of(row))}
    assert {place_in_table(row[0], row[1]) for row in IN_POLICIES} - used == set()


def test_the_corpus_uses_only_codes_of_the_table_and_each_name_once():
    codes = {row[1] for row in table("errors", "ERROR_ROW")}
    for name in ("valid", "invalid", "texts", "tests"):
        names = [row["name"] for row in policy_rows.rows(name)]
        assert len({*names}) == len(names)
    faults = [fault for name in ("invalid", "texts") for row in policy_rows.rows(name) for fault in row["faults"]]
    assert {fault["code"] for fault in faults} <= codes
    assert len(policy_rows.rows("invalid")) >= 250 and len(policy_rows.rows("valid")) >= 60
