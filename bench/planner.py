"""Recomputation that a plan of `fathom fit` needs, beside two habits and PyTorch's own two planners.

    python3 bench/planner.py [--quick]       needs `make build .venvs/peers/peers.stamp`

The peak of each habit, and of what torch.compile's partitioner makes of a budget, is measured on the phantom; then
`fathom fit` is asked for a plan within that peak. Compared is the share of the forward pass that is computed twice, in
operations as PyTorch counts them. Last, a sweep over budgets: asking for less must never give a higher peak. `--quick`
compares one habit on a small model and saves nothing. Ends with an error where a habit was better than the plan.
"""

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import tools
from result import FATHOM, PYTHON, ROOT, Table, save

HALVES = [f"{side}.{level}" for side in ("down", "up") for level in range(4)]


def transformer(layers, batch):
    """The script and its words, the blocks, and what `torch_planners.py` calls it."""
    script = [str(ROOT / "tests/scripts/blocks_flags.py"), "--depth", str(layers), "--batch-size", str(batch)]
    return script, [f"blocks.{index}" for index in range(layers)], f"transformer:{layers}:{batch}"


MODELS = {
    "transformer, 24 layers": transformer(24, 16),
    "U-Net, 16 blocks": ([str(ROOT / "bench/unet.py")], [f"{half}.{part}" for half in HALVES for part in (0, 1)], "unet"),
}
QUICK = {"transformer, 9 layers": transformer(9, 8)}

# Of what PyTorch's planners are given.
BUDGETS, SHARES = (0.5, 0.2), (0.8, 0.6)

ABOUT = """A transformer of 24 equal blocks and a U-Net of 16 residual blocks, both with AdamW. The peak of a habit is what
its run reserves without a limit on the phantom. `activation_memory_budget` is torch.compile's partitioner; it is carried
out on the phantom (the graphs it makes are run operator by operator, nothing is fused), and its operations are counted in
these graphs. The plan is what `fathom fit --try checkpoint` gives for a card with just that much memory and the context,
and its peak is measured on that card: there PyTorch gives cached segments back before it gives up, which a run without a
limit never does. `torch.distributed._tools.sac_ilp` plans under FakeTensorMode, with the speed of an A100 given to it,
since it asks a driver; PyTorch has nothing that carries such a plan out, so its peak and its time are its own predictions,
and the plan beside it is for the same share of the measured peak."""


def fathom(verb, flags, command, env=None):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "answer.json"
        words = [str(FATHOM), verb, "--json", str(path), *flags, "--", str(PYTHON), *command]
        subprocess.run(words, cwd=ROOT, env={**os.environ, **(env or {})}, capture_output=True, check=False)
        return json.loads(path.read_text())


def measure(command, modules):
    """Reserved peak and context of a run with these modules checkpointed."""
    env = {"FATHOM_LEVERS": json.dumps([{"lever": "checkpoint", "modules": modules}])} if modules else {}
    peak = fathom("run", ["--record", "off"], command, env)["peak"]
    return peak["reserved_bytes"], peak["device_bytes"] - peak["reserved_bytes"]


def count(command):
    """Operations of each module's forward pass."""
    with tempfile.TemporaryDirectory() as folder:
        words = [str(FATHOM), "run", "--record", "off", "--steps", "1", "--out", folder, "--", str(PYTHON), *command]
        subprocess.run(words, cwd=ROOT, env={**os.environ, "FATHOM_FLOPS": "on"}, capture_output=True, check=False)
        (path,) = Path(folder).glob("flops.*.json")
        return json.loads(path.read_text())["flops"]


def share(flops, modules):
    """Which part of the forward pass is computed twice."""
    below = lambda path: any(path == module or path.startswith(module + ".") for module in modules)  # noqa: E731
    return sum(number for path, number in flops.items() if below(path)) / sum(flops.values())


def plan(command, memory):
    """Reserved peak of the plan within so much memory, and the modules that it computes again as a whole."""
    answer = fathom("fit", ["--fresh", "--headroom", "0%", "--memory", f"{memory}B", "--try", "checkpoint,selective-checkpoint"], command)
    if answer["chosen"] is None:
        fits = answer["baseline"]["fits"]
        return (answer["baseline"]["peak_reserved_bytes"], []) if fits else (None, [])
    chosen = answer["plans"][answer["chosen"]]
    whole = (lever["modules"] for lever in chosen["levers"] if lever["id"] == "checkpoint")
    return chosen["peak_reserved_bytes"], [module for modules in whole for module in modules]


class Compared:
    """One model: what others reserve and compute twice, beside the plan within the same peak."""

    def __init__(self, name, command, blocks, key):
        self.name, self.command, self.blocks, self.key = name, command, blocks, key
        self.flops = count(command)
        self.plain, self.context = measure(command, [])

    def beside(self, other, peak, twice, memory=None):
        """A row: another's peak and share, and the plan's."""
        ours, chosen = plan(self.command, (memory or peak) + self.context)
        row = [self.name, other, peak, twice, ours, None if ours is None else share(self.flops, chosen)]
        print(row, flush=True)
        return row

    def habits(self):
        root = round(math.sqrt(len(self.blocks)))
        for habit, modules in {"every block": self.blocks, f"every {root}-th block": self.blocks[::root]}.items():
            yield self.beside(habit, measure(self.command, modules)[0], share(self.flops, modules))

    def budgets(self, notes):
        """What torch.compile makes of a budget; without one nothing is computed again."""
        answers = [planned("budget", self.key, each) for each in (1.0, *BUDGETS)]
        failed = next((answer["error"] for answer in answers if "error" in answer), None)
        if failed:
            notes.append(f"activation_memory_budget on {self.name}: {failed}")
            return
        whole, *answers = answers
        for each, answer in zip(BUDGETS, answers):
            twice = (answer["backward"] - whole["backward"]) / whole["forward"]
            yield self.beside(f"activation_memory_budget {each}", answer["reserved"], twice)

    def predicted(self, notes):
        """What sac_ilp says, of the same share of what the script reserves."""
        answer = planned("ilp", self.key, *SHARES)
        if "error" in answer:
            notes.append(f"sac_ilp on {self.name}: {answer['error']}")
            return
        for each in answer["plans"]:
            memory = int(each["share"] * self.plain)
            row = self.beside(f"{each['share']:.0%}", each["peak"], each["again"], memory)
            yield [*row[:2], each["peak"] / answer["peak"], row[3], row[4] and row[4] / self.plain, row[5]]

    def sweep(self):
        """Plans for less and less memory; a sentence of what they reserved."""
        least = measure(self.command, self.blocks)[0]
        budgets = [self.plain - (self.plain - least) * part // 5 for part in range(6)]
        peaks = [plan(self.command, budget + self.context)[0] for budget in budgets]
        assert all(a is None or b is None or b <= a for a, b in zip(peaks, peaks[1:])), (budgets, peaks)
        within, took = (", ".join("–" if b is None else f"{b >> 20}" for b in each) for each in (budgets, peaks))
        return f"Less memory never gave a higher peak: the {self.name} within {within} MiB reserved {took} MiB."


def planned(*words):
    """An answer of PyTorch's planners."""
    command = [str(tools.python()), str(ROOT / "bench" / "torch_planners.py"), *map(str, words)]
    return tools.answered(command, tools.bare())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    models = [Compared(name, *each) for name, each in (QUICK if options.quick else MODELS).items()]
    rows, notes = [row for model in models for row in model.habits()], []
    if not options.quick:
        budgets = [row for model in models for row in model.budgets(notes)]
        predicted = [row for model in models for row in model.predicted(notes)]
        notes += [model.sweep() for model in models]
        measured = {"model": "text", "other": "text", "its peak": "bytes", "computed twice": "percent"}
        measured |= {"plan's peak": "bytes", "plan computes twice": "percent"}
        foretold = {"model": "text", "asked for": "text", "its peak, predicted": "percent"}
        foretold |= {"time again, predicted": "percent", "plan's peak": "percent", "plan computes twice": "percent"}
        tables = [Table("At equal peak", measured, rows + budgets, notes)]
        tables += [Table("sac_ilp, by shares of the peak", foretold, predicted)] if predicted else []
        save("planner", "Planning of checkpoints", ABOUT, "python3 bench/planner.py", tables)
    worse = [row for row in rows if row[4] is None or row[2] < row[4] or row[3] < row[5]]
    sys.exit(f"a habit was better: {worse}" if worse else 0)


if __name__ == "__main__":
    main()
