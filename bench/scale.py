"""What estimates take of the host: its memory by card and by model, and how time grows with the model.

    python3 bench/scale.py [--quick]       needs `make build .venvs/peers/peers.stamp`

Memory is that of the whole tree of processes of `fathom run`, the recorder on. `--quick` looks at the 1 B model and saves
nothing. Ends with an error if a model of 13 B parameters (1 B with `--quick`) takes more than 4 GiB of the host.
"""

import argparse
import json
import math
import os
import statistics
import sys
import tempfile
from pathlib import Path

import tools
from processes import Warm, largest
from result import FATHOM, Table, save

BOUND = 4 << 30

# Cards, and how many sequences of GPT-2 fill each.
CARDS = {"rtx4060": 6, "rtx3090": 19, "a100-80g": 70}
PARAMETERS = ("1B", "7B", "13B")
LAYERS = (4, 8, 16, 32)

ABOUT = """Memory of the host is the sum over all processes of `fathom run`, pages that several share divided among them
(PSS), the most that was seen in looks 50 ms apart; *largest process* is the kernel's own mark. What lies on the card takes
none of it: what there is are Python, torch and the libraries of the model. Time is of an estimate, building and two steps,
as in the table of speed: for Fathom a fork of a warm process with the recorder on, for the others in a warm process.
The exponent is the slope of a straight line through the logarithms: 1 is linear."""


def run(words, flags, steps=2):
    """Memory and report of `fathom run` of a model."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "report.json"
        command = [str(FATHOM), "run", "--quiet", "--json", str(path), "--steps", str(steps), *flags, "--"]
        command += [str(tools.python()), str(tools.MODELS / words[0]), *words[1:]]
        _, seconds, tree, process = largest(command, {**os.environ, "STEPS": str(steps)})
        return json.loads(path.read_text()), seconds, tree, process


def by_card():
    for card, sequences in CARDS.items():
        report, seconds, tree, process = run(["gpt2.py", str(sequences)], ["--gpu", card])
        assert report["verdict"] == "fits", (card, report["verdict"])
        row = [report["gpu"]["name"], sequences, report["peak"]["device_bytes"], tree, process, seconds]
        print(row, flush=True)
        yield row


def by_parameters(sizes):
    for size in sizes:
        report, seconds, tree, process = run(["llama.py", size], [])
        row = [size, report["parameters"]["total"], report["peak"]["device_bytes"], tree, process, seconds]
        print(row, flush=True)
        yield row


def by_layers():
    """Seconds of an estimate by the number of layers, for each tool; then the exponents."""
    rows = []
    for layers in LAYERS:
        model = f"llama:{layers}"
        with Warm(model) as warm:
            ours = statistics.median(warm.estimate()[0] for _ in range(3))
        answers = [tools.estimate(tool, model) for tool in ("memtracker", "livebytes")]
        rows.append([str(layers), ours, *(None if "error" in a else a["build"] + sum(a["steps"]) for a in answers)])
        print(rows[-1], answers[0].get("error"), answers[1].get("error"), flush=True)
    return rows, ["exponent", *(exponent(rows, column) for column in (1, 2, 3))]


def exponent(rows, column):
    """The slope of log seconds over log layers; None where a tool did not answer."""
    if any(row[column] is None for row in rows):
        return None
    x, y = [math.log(int(row[0])) for row in rows], [math.log(row[column]) for row in rows]
    return statistics.linear_regression(x, y).slope


def tables():
    memory = {"on the card": "bytes", "host, all processes": "bytes", "largest process": "bytes", "time": "seconds"}
    rows, slopes = by_layers()
    grown = dict(zip(("fathom", "MemTracker", "live bytes"), slopes[1:]))
    notes = [f"Exponent of {tool}: " + ("–" if slope is None else f"{slope:.2f}") for tool, slope in grown.items()]
    return [
        Table("By card", {"card": "text", "sequences": "count", **memory}, list(by_card()),
              ["GPT-2, as in the table of peers, but for the number of sequences."]),
        Table("By model", {"model": "text", "parameters": "count", **memory}, list(by_parameters(PARAMETERS)),
              [f"{tools.words('llama')}; built on a card without a limit."]),
        Table("An estimate by layers", {"layers": "text", **dict.fromkeys(grown, "seconds")}, rows, notes),
    ]  # fmt: skip


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    if options.quick:
        rows = list(by_parameters(PARAMETERS[:1]))
    else:
        found = tables()
        rows = found[1].rows
        save("scale", "Scale", ABOUT, "python3 bench/scale.py", found, ("torch", "transformers"), tools.python())
    worst = max(row[3] for row in rows)
    sys.exit(f"{worst} bytes of the host, more than {BOUND}" if worst > BOUND else 0)


if __name__ == "__main__":
    main()
