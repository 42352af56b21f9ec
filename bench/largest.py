"""The largest batch that `fathom sweep` finds, beside running every batch size near the limit, on ten models.

    python3 bench/largest.py [MODEL …]

Each brute-force run is a cold `fathom run` on the card itself. Ends with an error if any answer differs.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from result import FATHOM, PYTHON, ROOT, Table, save

COMMAND = [str(PYTHON), str(ROOT / "tests" / "scripts" / "resnet_flags.py")]
MODELS = """alexnet vgg11 resnet18 resnet50 densenet121 googlenet mobilenet_v2 squeezenet1_0 shufflenet_v2_x1_0
efficientnet_b0""".split()
MEMORY = "6GiB"

# Batch sizes below and above the answer that are run.
BELOW, ABOVE = 2, 5


def fathom(verb, flags, words):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "answer.json"
        command = [str(FATHOM), verb, "--json", str(path), "--memory", MEMORY, *flags, "--", *COMMAND, *words]
        subprocess.run(command, cwd=ROOT, capture_output=True, check=False)
        return json.loads(path.read_text())


def compare(model):
    """The model, what sweep found, what brute force found, trials of sweep and their time."""
    words = ["--model", model]
    answer = fathom("sweep", ["--vary", "batch=2..4000", "--set", "batch=--batch-size {}", "--fresh"], words)
    (largest,) = answer["largest"]
    found = largest["value"]
    fits = {}
    for batch in range(found - BELOW, found + ABOVE + 1):
        report = fathom("run", ["--record", "off"], [*words, "--batch-size", str(batch)])
        fits[batch] = report["verdict"] == "fits"
    brute = max(batch for batch, fit in fits.items() if fit)
    row = [model, found, brute, answer["trials"]["run"], answer["wall_seconds"]]
    print(row, flush=True)
    return row


ABOUT = f"""ResNet-like training of torchvision's models at 224 × 224 with SGD and momentum on a card with {MEMORY}: what
`fathom sweep --vary batch=2..4000` answers, and the largest batch that fits when every size from {BELOW} below to
{ABOVE} above that answer is run by itself."""

if __name__ == "__main__":
    asked = sys.argv[1:] or MODELS
    rows = [compare(model) for model in asked]
    wrong = [model for model, found, brute, *_ in rows if found != brute]
    columns = {"model": "text", "sweep": "count", "brute force": "count", "trials": "count", "time": "seconds"}
    if asked == MODELS:
        save("largest", "The largest batch", ABOUT, "python3 bench/largest.py", [Table("", columns, rows)])
    sys.exit(f"the answers differ: {wrong}" if wrong else 0)
