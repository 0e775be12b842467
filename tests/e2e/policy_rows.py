"""Rows about policy documents: tests/cases/policy/documents, made from a base document as tests/unit/policy_cases.h says, and the JSON Schemas."""

import copy
import json
import re

import jsonschema

from edge import ROOT

FOLDER = ROOT / "tests/cases/policy"


def _step(at, key):
    return at[int(key)] if isinstance(at, list) else at[key]


def _parent(document, pointer):
    *way, last = pointer.split("/")[1:]
    for key in way:
        document = _step(document, key)
    return document, last


def put(document, pointer, value):
    at, key = _parent(document, pointer)
    if isinstance(at, list):
        at[int(key)] = value
    else:
        at[key] = value


def _numbered(value, number):
    return json.loads(json.dumps(value, ensure_ascii=False).replace("#", str(number)))


def document_of(row):
    if "document" in row:
        return row["document"]
    document = json.loads((FOLDER / f"{row['base']}.json").read_text())
    for pointer, value in row.get("set", {}).items():
        put(document, pointer, copy.deepcopy(value))
    for pointer in row.get("remove", []):
        at, key = _parent(document, pointer)
        del at[int(key) if isinstance(at, list) else key]
    for pointer, (text, n) in row.get("repeat", {}).items():
        put(document, pointer, text * n)
    for pointer, (n, item) in row.get("fill", {}).items():
        put(document, pointer, [_numbered(item, i) for i in range(n)])
    for pointer, (name, n, value) in row.get("members", {}).items():
        at, key = _parent(document, pointer)
        _step(at, key).update({_numbered(name, i): value for i in range(n)})
    return document


def rows(name):
    return json.loads((FOLDER / "documents" / f"{name}.json").read_text())


_END = re.compile(r"\$(?=$|[|)])")


def _ecma_pattern(validator, pattern, instance, schema):
    """In ECMA-262 `$` is the very end of a text; Python's also matches before a last line end."""
    if validator.is_type(instance, "string") and not re.search(_END.sub(r"\\Z", pattern), instance):
        yield jsonschema.ValidationError(f"{instance!r} does not match {pattern!r}")


_Validator = jsonschema.validators.extend(jsonschema.Draft202012Validator, {"pattern": _ecma_pattern})


def schema(name):
    return json.loads((ROOT / f"schemas/{name}.schema.json").read_text())


def validator(name):
    text = schema(name)
    place = (ROOT / f"schemas/{name}.schema.json").as_uri()
    return _Validator(text, resolver=jsonschema.RefResolver(place, text))


def pointer_of(error):
    return "".join(f"/{key}" for key in error.absolute_path)
