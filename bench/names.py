"""Names that are inferred of memory snapshots, beside what the recorder noted of the same runs, and beside Mosaic's rules.

    python3 bench/names.py [--keep DIR] [--snapshots DIR]

Every training script of `tests/scripts` runs as if its author had asked PyTorch for a snapshot, while Fathom records it.
Of the bytes at the peak it is counted how many have the right category and the right class of module. `--keep` keeps the
runs, and takes those that are there; `--snapshots` adds snapshots of real cards, of which nobody knows the truth.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from result import FATHOM, PYTHON, ROOT, Table, save

sys.path.insert(0, str(ROOT / "tests"))
from named_scripts import ALL, WORLD

SCORE = ROOT / "target" / "release" / "examples" / "score"
SUMS = ("bytes", "known", "right", "wrong", "in_modules", "class_right", "peer_known", "peer_right")
MOSAIC = (
    "Mosaic (facebookresearch/mosaic, as of November 2026) looks for words in the names of functions, the innermost frame "
    "first: `forward` is an activation, `param` a parameter, `backward` the backward pass, `_init_group` the optimizer. Its "
    "rules are described in `crates/infer/examples/score.rs` in our own words. Its label `backward` counts as right for "
    "gradients, temporaries and workspaces alike."
)


def run(name, folder):
    """The sums of one script."""
    folder.mkdir(parents=True, exist_ok=True)
    snapshot = folder / "snapshot.pickle"
    if not snapshot.exists():
        script = [PYTHON, ROOT / "tests" / "as_snapshot.py", "all", snapshot, ROOT / "tests" / "scripts" / f"{name}.py"]
        command = [FATHOM, "run", "--gpu", "rtx3090", "--out", folder, "--", *script]
        environment = {**os.environ, **(WORLD if name == "distributed_one" else {})}
        subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, check=False)
    recordings = sorted(folder.glob("recording.*.fathom"), key=lambda path: path.stat().st_size)
    sums = {}
    for kind, flags in (("whole", []), ("half", ["--half"])):
        done = subprocess.run([SCORE, recordings[-1], snapshot, *flags], capture_output=True, text=True, check=True)
        sums[kind] = {key: json.loads(done.stdout)["sums"].get(key, 0) for key in SUMS}
    return sums


def row(name, sums):
    def share(part, of):
        return sums[part] / sums[of] if sums[of] else None

    return [
        name, sums["bytes"], share("right", "bytes"), share("wrong", "bytes"), share("class_right", "in_modules"),
        share("peer_right", "bytes"), (sums["peer_known"] - sums["peer_right"]) / sums["bytes"] if sums["bytes"] else None,
    ]  # fmt: skip


def total(rows, kind):
    return {key: sum(sums[kind][key] for sums in rows.values()) for key in SUMS}


def real(folder):
    """How much of real snapshots has a category."""
    rows = []
    for path in sorted(folder.iterdir()):
        if path.suffix not in (".pickle", ".pkl"):
            continue
        with tempfile.NamedTemporaryFile(suffix=".json") as file:
            subprocess.run([FATHOM, "explain", path, "--json", file.name], capture_output=True, check=True)
            report = json.loads(Path(file.name).read_text())
        held = {category["name"]: category["bytes"] for category in report["categories"]}
        allocated = report["peak"]["allocated_bytes"]
        most = max((name for name in held if name != "unknown"), key=held.get)
        rows.append([path.stem[:60], allocated, 1 - held["unknown"] / allocated if allocated else None, most.replace("_", " ")])
    whole = sum(row[1] for row in rows)
    named = sum(row[1] * row[2] for row in rows if row[2] is not None)
    rows.append(["**all**", whole, named / whole, ""])
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--snapshots", type=Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        keep = arguments.keep or Path(temporary)
        rows = {name: run(name, keep / f"all-{name}") for name in ALL}
    columns = {
        "script": "text", "at the peak": "bytes", "right category": "percent", "wrong": "percent",
        "right class": "percent", "Mosaic right": "percent", "Mosaic wrong": "percent",
    }  # fmt: skip
    body = [row(name, sums["whole"]) for name, sums in rows.items()]
    body.append(row("**all**", total(rows, "whole")))
    body.append(row("**all, history of the second half only**", total(rows, "half")))
    notes = [MOSAIC, "What is neither right nor wrong is said to be unknown.", "A class counts if it is the module's own."]
    tables = [Table("", columns, body, notes)]
    if arguments.snapshots:
        kinds = {"snapshot": "text", "at the peak": "bytes", "with a category": "percent", "most of it": "text"}
        sources = ["Sources: `tests/recorded/SOURCES.md`, and the repositories that the files are named after."]
        tables.append(Table("Snapshots of real cards", kinds, real(arguments.snapshots), sources))
    about = (
        "Snapshots have no names. `fathom explain` infers categories and modules from frames, lifetimes and sizes "
        "(`docs/concepts/snapshots.md`); here they are compared with what the recorder noted of the same runs."
    )
    save("names", "Names of snapshots", about, "python3 bench/names.py", tables)


if __name__ == "__main__":
    main()
