"""Reads the Prometheus text format strictly: what a scraper might forgive is a failure here."""

import re

NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*\Z")
SAMPLE = re.compile(r"([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)\Z")
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\\\|\\"|\\n)*)"(,|\Z)')
SUFFIXES = {"histogram": ("_bucket", "_sum", "_count"), "summary": ("", "_sum", "_count")}


class Family:
    def __init__(self, name, text):
        self.name, self.help, self.type = name, text, None
        self.samples = {}  # (sample name, sorted labels) -> value


def parse_labels(text):
    labels, at = [], 0
    while at < len(text):
        match = LABEL.match(text, at)
        assert match, f"bad labels: {text!r}"
        labels.append((match[1], match[2]))
        at = match.end()
    names = [name for name, _ in labels]
    assert len(names) == len(set(names)), f"a label twice: {text!r}"
    return tuple(sorted(labels))


def comment(line, families, family):
    """A HELP line opens a family, TYPE follows it; nothing else begins with #."""
    _, kind, rest = line.split(" ", 2)
    name, _, text = rest.partition(" ")
    assert NAME.match(name) and text, line
    if kind == "HELP":
        assert name not in families, f"a second HELP of {name}"
        families[name] = Family(name, text)
        return families[name]
    assert kind == "TYPE" and family is not None and family.name == name and family.type is None, line
    assert text in ("counter", "gauge", "histogram", "summary", "untyped"), line
    family.type = text
    return family


def sample(line, family):
    match = SAMPLE.match(line)
    assert match, f"not a sample: {line!r}"
    name, labels, value = match[1], parse_labels(match[2] or ""), float(match[3])
    assert family is not None and family.type is not None, f"a sample before its TYPE: {line!r}"
    allowed = [family.name + suffix for suffix in SUFFIXES.get(family.type, ("",))]
    assert name in allowed, f"{name} inside the family {family.name}"
    assert (name, labels) not in family.samples, f"the series of {line!r} stands there twice"
    family.samples[(name, labels)] = value


def parse(text):
    """{family name: Family}; an AssertionError names the line that breaks a rule."""
    assert text.endswith("\n"), "the last line has no end"
    families, family = {}, None
    for line in text[:-1].split("\n"):
        if line.startswith("#"):
            family = comment(line, families, family)
        else:
            sample(line, family)
    return families


def value(families, name, **labels):
    """One series' value; an unknown name or label set is a KeyError."""
    return families[name].samples[(name, tuple(sorted(labels.items())))]
