"""Writes `docs/benchmarks.md` from `bench/results/*.json`; a test fails when the two differ.

    python3 bench/publish.py
"""

import json

from result import RESULTS, ROOT, UNITS

PAGE = ROOT / "docs" / "benchmarks.md"

# What stands first matters most; results without a place here would not be shown, so that is an error.
ORDER = ["accuracy", "cards", "litgpt", "peers", "speed", "scale", "values", "rust", "planner", "largest", "fit", "ranks", "names"]

START = """# Benchmarks

Written by `python3 bench/publish.py` from `bench/results/`; do not edit it by hand. `make bench` measures everything
again, `make bench-quick` a part of it in minutes. Times are of a shared machine: compare them as ratios within a table.
"""


def render():
    """The whole page."""
    unknown = {path.stem for path in RESULTS.glob("*.json")} - set(ORDER)
    if unknown:
        raise SystemExit(f"error: bench/publish.py has no place for {sorted(unknown)}\nhint: add it to ORDER")
    paths = [RESULTS / f"{name}.json" for name in ORDER]
    return "\n".join([START, *(section(json.loads(path.read_text())) for path in paths if path.exists())])


def section(result):
    machine = result["machine"]
    versions = ", ".join(f"{name} {version}" for name, version in result["versions"].items())
    hardware = f"{machine['processor']}, {machine['cores']} cores, {machine['memory_bytes'] / 2**30:.0f} GiB"
    how = f"`{result['command']}`, {result['date']}; {versions}; {hardware}."
    head = [f"## {result['title']}", "", result["about"], "", how, ""]
    return "\n".join([*head, *(table(each) for each in result["tables"])])


def table(table):
    units = list(table["columns"].values())
    side = ["---" if unit == "text" else "---:" for unit in units]
    body = [[cell(value, unit) for value, unit in zip(row, units, strict=True)] for row in table["rows"]]
    lines = [f"### {table['title']}", ""] if table["title"] else []
    lines += ["| " + " | ".join(row) + " |" for row in [list(table["columns"]), side, *body]]
    return "\n".join([*lines, "", *(f"- {note}" for note in table["notes"]), *([""] if table["notes"] else [])])


def cell(value, unit):
    text = "–" if value is None else UNITS[unit](value)
    return text.replace("|", "\\|")


if __name__ == "__main__":
    PAGE.write_text(render())
    print(f"{PAGE.relative_to(ROOT)}: written")
