"""Writes docs/reference/schemas: a JSON Schema for each answer that `--json` gives.

They are made from the types that the page's scripts are checked with, and that tests hold against the data both ways
(crates/page/types), and from answers.d.ts for what no page holds. Fields are only ever added, so a schema lets fields
pass that it does not know: a file of a newer Fathom is valid too.
"""

import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "docs" / "reference" / "schemas"
sys.path.insert(0, str(ROOT / "tests"))

# Which interface is the whole of an answer, and what the answer is.
ANSWERS = {
    "report": ("Report", "What `fathom run --json` writes"),
    "explain": ("Explanation", "What `fathom explain --json` writes of a recording or a snapshot"),
    "fit": ("FitAnswer", "What `fathom fit --json` writes"),
    "sweep": ("SweepAnswer", "What `fathom sweep --json` writes"),
    "diff": ("Difference", "What `fathom diff --json` writes"),
    "replay": ("ReplayAnswer", "What `fathom replay --json` writes"),
    "check": ("CheckAnswer", "What `fathom check --json` writes"),
    "cards": ("CardsAnswer", "What `fathom run --gpu A,B --json` writes"),
    "oom": ("OomAnswer", "What `fathom explain --json` writes of texts"),
    "document": ("DocumentAnswer", "What `fathom report` writes beside its document"),
    "baseline": ("BaselineFile", "What `fathom run --save-baseline` writes"),
}
PLAIN = ("string", "number", "boolean", "null")


def types():
    from page_types import FOLDER as OF_PAGE
    from page_types import NOT_WRITTEN, Types

    paths = [path for path in sorted(OF_PAGE.glob("*.d.ts")) if path.name not in NOT_WRITTEN]
    return Types("\n".join(path.read_text() for path in [*paths, ROOT / "packaging" / "answers.d.ts"]))


class Schema:
    """One answer; the interfaces that it uses become definitions."""

    def __init__(self, types):
        self.types, self.definitions = types, {}

    def of(self, kind):
        options = [self.one(option) for option in self.types.options(kind)]
        texts = [option["const"] for option in options if "const" in option]
        if len(texts) == len(options) > 1:
            return {"enum": texts}
        plain = [option["type"] for option in options if list(option) == ["type"]]
        if len(plain) == len(options) > 1:
            return {"type": plain}
        return options[0] if len(options) == 1 else {"anyOf": options}

    def one(self, kind):
        if kind in self.types.own:
            self.define(kind)
            return {"$ref": f"#/$defs/{kind}"}
        if kind.endswith("[]"):
            return {"type": "array", "items": self.of(kind[:-2])}
        if kind.startswith("Record<string, "):
            return {"type": "object", "additionalProperties": self.of(kind[len("Record<string, ") : -1])}
        return {"type": kind} if kind in PLAIN else {"const": kind.strip('"')}

    def define(self, name):
        if name not in self.definitions:
            self.definitions[name] = {}  # it may name itself
            self.definitions[name] = self.fields(name)

    def fields(self, name):
        fields = self.types.fields(name)
        needed = [key for key, each in fields.items() if not each.is_optional]
        return {"type": "object", "required": needed, "properties": {key: self.of(each.type) for key, each in fields.items()}}


def schema(name):
    interface, title = ANSWERS[name]
    made = Schema(types())
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": f"fathom.{name}/1", "description": title}
    body = made.fields(interface)
    return {**head, **body, "$defs": dict(sorted(made.definitions.items()))}


def text(name):
    return json.dumps(schema(name), indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for each in ANSWERS:
        (FOLDER / f"{each}.schema.json").write_text(text(each))
