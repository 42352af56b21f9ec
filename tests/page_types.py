"""The types that the page's scripts are checked with (crates/page/types), and data held against them.

Only as much of TypeScript is read as these files use: interfaces with a field to a line, unions, lists and `Record`.
"""

import re
from dataclasses import dataclass, field

from conftest import ROOT

FOLDER = ROOT / "crates" / "page" / "types"
# What scripts make of the types; Rust writes nothing of it.
NOT_WRITTEN = ("either.d.ts", "replays.d.ts", "viewer.d.ts")
PLAIN = {
    "string": lambda value: isinstance(value, str),
    "number": lambda value: isinstance(value, (int, float)) and not isinstance(value, bool),
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
}


@dataclass
class Field:
    owner: str
    name: str
    type: str
    is_optional: bool

    def __str__(self):
        return f"{self.owner}.{self.name}"


@dataclass
class Result:
    """What is wrong with some data, and the fields that were more than null and empty."""

    problems: list = field(default_factory=list)
    seen: set = field(default_factory=set)
    # Not even of the kind that was asked for, such as a list instead of a number.
    is_other: bool = False

    def add(self, other):
        self.problems += other.problems
        self.seen |= other.seen


def other(value, kind, where):
    return Result([f"{where} is {str(value)[:60]!r}, not {kind}"], is_other=True)


class Types:
    def __init__(self, text):
        text = re.sub(r"//[^\n]*", "", text)
        self.aliases = dict(re.findall(r"export type (\w+) =\s*([^;]+);", text))
        self.own, self.parents = {}, {}
        for name, parents, body in re.findall(r"export interface (\w+)(?: extends ([\w, ]+))? \{(.*?)\n\}", text, re.S):
            found = re.findall(r"^  (\w+)(\??): ([^;]+);$", body, re.M)
            assert len(found) == body.count(";"), f"a field of {name} is not understood"
            self.own[name] = [Field(name, key, kind, bool(optional)) for key, optional, kind in found]
            self.parents[name] = re.findall(r"\w+", parents)
        assert text.count("interface ") == len(self.own), "an interface is not understood"

    @classmethod
    def of_page(cls):
        return cls("\n".join(path.read_text() for path in sorted(FOLDER.glob("*.d.ts")) if path.name not in NOT_WRITTEN))

    def all_fields(self):
        return {str(each) for fields in self.own.values() for each in fields}

    def fields(self, name):
        inherited = {key: each for parent in self.parents[name] for key, each in self.fields(parent).items()}
        return {**inherited, **{each.name: each for each in self.own[name]}}

    def options(self, kind):
        """The parts of a union, names of other unions resolved."""
        parts = [part.strip() for part in kind.split("|") if part.strip()]
        return [one for part in parts for one in (self.options(self.aliases[part]) if part in self.aliases else [part])]

    def check(self, value, kind, where):
        """Against the part of a union that it is most like."""
        results = [self.check_one(value, one, where) for one in self.options(kind)]
        return min(results, key=lambda one: (one.is_other, len(one.problems)))

    def check_one(self, value, kind, where):
        if kind in self.own:
            return self.check_fields(value, kind, where)
        result = Result()
        if kind.endswith("[]") and isinstance(value, list):
            for number, one in enumerate(value):
                result.add(self.check(one, kind[:-2], f"{where}[{number}]"))
        elif kind.startswith("Record<string, ") and isinstance(value, dict):
            for key, one in value.items():
                result.add(self.check(one, kind[len("Record<string, ") : -1], f"{where}.{key}"))
        elif not (PLAIN[kind](value) if kind in PLAIN else kind == f'"{value}"'):
            return other(value, kind, where)
        return result

    def check_fields(self, value, name, where):
        if not isinstance(value, dict):
            return other(value, name, where)
        fields = self.fields(name)
        result = Result([f"{where}.{key} is not in {name}" for key in value if key not in fields])
        for key, each in fields.items():
            if key in value:
                result.add(self.check(value[key], each.type, f"{where}.{key}"))
                result.seen |= {str(each)} if value[key] not in (None, []) else set()
            elif not each.is_optional:
                result.problems.append(f"{where} has no {key}, which {name} has")
        return result
