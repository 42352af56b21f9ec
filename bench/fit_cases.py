"""What `fathom fit` finds for the five case studies on cards of 24, 16 and 8 GB.

    python3 bench/fit_cases.py [FOLDER]

FOLDER keeps the answer of each run as JSON, and what is there already is not run again.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from result import ROOT, Table, save

CASES = {
    "uni3d-dp3": "uni3d-128x512",
    "stdiff": "document",
    "bev-graph": "before",
    "dit3d": "before",
    "avatar": "document",
}
# In decimal, so that no card of the catalogue changes a row.
SIZES = ["24GB", "16GB", "8GB"]
GIB = 1 << 30

ABOUT = """`fathom fit --memory SIZE -- python examples/CASE/train.py --config …`, nothing else given. Every peak is that of
a run on the phantom, with the context; operations are counted. Where nothing fits, the tightest plan and what explains
the peak."""
COLUMNS = {
    "case": "text",
    "as it is": "bytes",
    "card": "text",
    "plan": "text",
    "needs": "bytes",
    "label": "text",
    "more operations": "percent",
    "trials": "count",
}


def answer(case, config, size, folder):
    path = folder / f"{case}-{size}.json"
    if not path.exists():
        script = ["examples/" + case + "/train.py", "--config", f"examples/{case}/{config}.yaml"]
        command = ["target/release/fathom", "fit", "--quiet", "--fresh", "--memory", size.replace("GB", "000MB"), "--json", str(path), "--"]
        subprocess.run([*command, ".venv/bin/python", *script], cwd=ROOT, capture_output=True, check=False)
    return json.loads(path.read_text())


def words(plan):
    """A plan in words; of checkpoints their number."""

    def one(lever):
        match lever["id"]:
            case "checkpoint":
                return f"checkpoints of {len(lever['modules'])} modules"
            case "accumulate":
                return f"batches in {lever['parts']} parts"
            case "allocator":
                return lever["settings"]
            case other:
                return other

    return " + ".join(one(lever) for lever in plan["levers"])


def row(case, size, answer):
    base = answer["baseline"]
    start, trials = [case, base["device_bytes"], size], answer["trials"]
    if base["fits"]:
        return [*start, "none is needed", base["device_bytes"], "", None, trials]
    plans, chosen = answer["plans"], answer["chosen"]
    plan = plans[chosen] if chosen is not None else min(plans, key=lambda plan: plan["peak_reserved_bytes"])
    needs = [plan["device_bytes"], plan["label"], plan["cost"]["flops_ratio"] - 1, trials]
    if chosen is not None:
        return [*start, words(plan), *needs]
    cause = answer["causes"][0]
    why = f"**none fits**; tightest: {words(plan)}. {cause['bytes'] / GIB:.0f} GiB: {cause['title']}"
    return [*start, why, *needs]


def main(folder):
    rows = [row(case, size, answer(case, CASES[case], size, folder)) for case in CASES for size in SIZES]
    save("fit", "The five case studies, made to fit", ABOUT, "python3 bench/fit_cases.py", [Table("", COLUMNS, rows)])


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as folder:
            main(Path(folder))
