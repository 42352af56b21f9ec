"""The largest batch that `fathom sweep` finds, beside running every batch size near the limit, on ten models.

    python3 bench/largest.py [MODEL …]

Each brute-force run is a cold `fathom run` on the card itself. Ends with an error if any answer differs.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FATHOM = ROOT / "target" / "release" / "fathom"
COMMAND = [str(ROOT / ".venv" / "bin" / "python"), str(ROOT / "tests" / "scripts" / "resnet_flags.py")]
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


def agrees(model):
    words = ["--model", model]
    answer = fathom("sweep", ["--vary", "batch=2..4000", "--set", "batch=--batch-size {}", "--fresh"], words)
    (largest,) = answer["largest"]
    found = largest["value"]
    fits = {}
    for batch in range(found - BELOW, found + ABOVE + 1):
        report = fathom("run", ["--record", "off"], [*words, "--batch-size", str(batch)])
        fits[batch] = report["verdict"] == "fits"
    brute = max(batch for batch, fit in fits.items() if fit)
    print(f"| {model} | {found} | {brute} | {answer['trials']['run']} | {answer['wall_seconds']:.0f} s |", flush=True)
    return found == brute


if __name__ == "__main__":
    print(f"on a card with {MEMORY}\n| model | sweep | brute force | trials | time |\n| --- | --- | --- | --- | --- |")
    wrong = [model for model in sys.argv[1:] or MODELS if not agrees(model)]
    sys.exit(f"the answers differ: {wrong}" if wrong else 0)
