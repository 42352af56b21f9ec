"""How long an estimate takes: `fathom` with everything on, MemTracker, a count of live bytes, the meta device.

    python3 bench/speed.py [--quick] [MODEL …]       needs `make build .venvs/peers/peers.stamp`

All in one run, model by model, the tools taking turns, so that what else the machine does hits all alike; ratios are what
counts. `--quick` looks at one model and saves nothing. Ends with an error where `fathom` is less than three times as fast as MemTracker, or slower
than the meta device.
"""

import argparse
import statistics
import subprocess
import sys
import time

import tools
from processes import Warm, taking_turns
from result import FATHOM, Table, save

ESTIMATES = 3
# Steps of each in a round, and rounds, as far as they begin within so many seconds: some steps of MemTracker's take a
# minute.
STEPS = {"fathom": 6, "phantom": 4, "memtracker": 1, "livebytes": 1, "meta": 1}
ROUNDS, SECONDS = 8, 40
# Where few kernels make up a step, as in the LSTM, both are fast.
AIM, LEAST = 50, 3

ABOUT = """One process per tool and model, all at once, taking turns of a few steps. *A step* is the median of the steps
after the first, with everything
imported and the model built, in processor time: the same clock around the same `step()` of the same training for each.
Fathom's is with everything on: the recorder with modules, operators and lines, which joins and writes the step's
events within it, and true values of small tensors; *bare* is PyTorch on the phantom without any of it. MemTracker and
the count of live bytes run under FakeTensorMode, whose caches are warm after the first step. MemTracker fails at frozen
parameters, and fake tensors where peft moves its adapters: both were helped over it, so that LoRA can be compared.
*An estimate* is what a
question costs: build the model, take two steps. Fathom's is a fork of a warm process (`python/fathom/_warm/server.py`), from
the request until that process has ended and its recording is written, on the wall's clock; the peers' are in processor
time, without any start of a process, when everything is imported. *Cold* is the whole `fathom run` with its report,
imports included."""


def median_step(answer):
    return None if "error" in answer else statistics.median(answer["steps"][1:])


def whole(answer):
    return None if "error" in answer else answer["build"] + sum(answer["steps"][:2])


def ratio(theirs, ours):
    return None if theirs is None else theirs / ours


def cold(model):
    """Seconds of `fathom run` with its report."""
    command = [str(FATHOM), "run", "--quiet", "--gpu", tools.CARD, "--steps", "2", "--"]
    began = time.perf_counter()
    subprocess.run([*command, str(tools.python()), str(tools.MODELS / f"{model}.py")], capture_output=True, check=True)
    return time.perf_counter() - began


def measure(model):
    """The rows of both tables, and what went wrong."""
    found = taking_turns(model, STEPS, ROUNDS, SECONDS)
    with Warm(model) as warm:
        estimates = [warm.estimate() for _ in range(ESTIMATES)]
    forked = statistics.median(seconds for seconds, _ in estimates)
    steps = {tool: median_step(answer) for tool, answer in found.items()}
    wholes = {tool: whole(answer) for tool, answer in found.items()}
    ours, name = steps["fathom"], tools.NAMES[model]
    step = [name, ours, *(steps[tool] for tool in ("phantom", "memtracker", "livebytes", "meta"))]
    step += [ratio(steps["memtracker"], ours), ratio(steps["livebytes"], ours), ratio(steps["meta"], ours)]
    estimate = [name, forked, *(wholes[tool] for tool in ("memtracker", "livebytes", "meta"))]
    estimate += [ratio(wholes["memtracker"], forked), cold(model)]
    notes = [f"{tool} on {name}: {answer['error']}" for tool, answer in found.items() if "error" in answer]
    print(step, estimate, notes, flush=True)
    return step, estimate, notes


def quick(model):
    """The ratios alone: a row as in the table of steps."""
    answers = taking_turns(model, {"fathom": 4, "memtracker": 1, "meta": 1}, 2, 0)
    ours, tracker, meta = map(median_step, answers.values())
    row = [tools.NAMES[model], ours, None, tracker, None, meta, ratio(tracker, ours), None, ratio(meta, ours)]
    print(row, flush=True)
    return row


STEP = {
    "model": "text",
    "fathom": "seconds",
    "bare": "seconds",
    "MemTracker": "seconds",
    "live bytes": "seconds",
    "meta": "seconds",
    "against MemTracker": "ratio",
    "against live bytes": "ratio",
    "against meta": "ratio",
}
ESTIMATE = {
    "model": "text",
    "fathom, forked": "seconds",
    "MemTracker": "seconds",
    "live bytes": "seconds",
    "meta": "seconds",
    "against MemTracker": "ratio",
    "fathom, cold": "seconds",
}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("models", nargs="*")
    options = parser.parse_args()
    models = options.models or list(tools.NAMES)
    if options.quick:
        steps = [quick("resnet50")]
    else:
        steps, estimates, notes = zip(*map(measure, models))
    if not options.quick and models == list(tools.NAMES):
        ratios = [row[6] for row in steps if row[6] is not None]
        reached = sum(each >= AIM for each in ratios)
        summary = f"Of {len(ratios)} models that MemTracker can run, a step of {reached} is at least {AIM} times as fast."
        tables = [Table("A step", STEP, steps, [summary, *(line for lines in notes for line in lines)]), Table("An estimate", ESTIMATE, estimates)]
        save("speed", "Speed", ABOUT, "python3 bench/speed.py", tables, ("torch", "transformers"), tools.python())
    slow = [row[0] for row in steps if row[6] is not None and row[6] < LEAST or row[8] is not None and row[8] < 1]
    sys.exit(f"below the bounds: {slow}" if slow else 0)


if __name__ == "__main__":
    main()
