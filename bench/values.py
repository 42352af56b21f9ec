"""What it costs to know values: time of a step, time of a decision, memory of the host.

    python3 bench/values.py [--quick]       needs `make build .venvs/peers/peers.stamp`

With and without values in one run, taking turns. `--quick` looks at two models and saves nothing. Ends with an error where
a step takes more than so many times as long, or the host's memory passes its bound.
"""

import argparse
import statistics
import sys

import tools
from processes import taking_turns
from result import Table, save
from scale import run

# What was promised for a step; `--quick` takes few steps on a machine that others use, and only looks for what is far off.
MOST, MOST_QUICK = 1.5, 2.0
# Many small layers, with the recorder and values.
LAYERS, HOST_BYTES = "3200", 3 << 29
# Of the host's memory, from a short run to a long one.
SHORT, LONG, GROWTH = 20, 100, 1.05

STEPS, ROUNDS, SECONDS = dict.fromkeys(tools.OURS, 6), 6, 60
# These decide by proposals that their weights give: a forward pass is computed on the CPU in every step.
DECIDES = ("detection",)

ABOUT = """*With values*, functions on the card leave recipes, and what a script reads is computed by the CPU's kernels if it
decides something. *Without* is the same run with `--values off`; *alone* are values without the recorder (`--record off`),
*neither* is without both. A step is the median of the steps after the first, in processor time. Models whose shapes follow from their weights compute a forward pass in every
step, and are compared with that pass on the CPU itself. Memory of the host is that of the whole tree of processes, as
in the table of scale, with the recorder on."""


def steps_of(answer):
    if "error" in answer:
        raise SystemExit(f"error: {answer['error']}")
    return statistics.median(answer["steps"][1:])


def step(model, rounds=ROUNDS, seconds=SECONDS):
    found = {tool: steps_of(answer) for tool, answer in taking_turns(model, STEPS, rounds, seconds).items()}
    row = [tools.NAMES[model], *found.values(), found["fathom"] / found["recorder"]]
    print(row, flush=True)
    return row


def decision(model):
    """A step with values, without, and a forward pass on the CPU."""
    turns = {"fathom": 2, "recorder": 2}
    found = {tool: steps_of(answer) for tool, answer in taking_turns(model, turns, 2, 0).items()}
    forward = steps_of(tools.estimate("forward", model, 3))
    row = [tools.NAMES[model], *found.values(), forward, found["fathom"] / forward]
    print(row, flush=True)
    return row


def host(steps):
    """Bytes of the host for so many steps of GPT-2."""
    return run(["gpt2.py", "1"], ["--gpu", tools.CARD], steps)[2]


def layers():
    _, _, tree, _ = run(["layers.py", LAYERS], ["--gpu", tools.CARD])
    _, _, without, _ = run(["layers.py", LAYERS], ["--gpu", tools.CARD, *tools.OURS["neither"]])
    row = [f"{int(LAYERS):,} small layers", tree, without]
    print(row, flush=True)
    return row


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    if parser.parse_args().quick:
        steps, small = [step(model, 2, 0) for model in ("gpt2", "resnet50")], layers()
        growth, bound = 1.0, MOST_QUICK
    else:
        steps, small, bound = [step(model) for model in tools.NAMES if model not in DECIDES], layers(), MOST
        decisions, taken = [decision(model) for model in DECIDES], [host(SHORT), host(LONG)]
        growth = taken[1] / taken[0]
        publish(steps, decisions, [small, [f"GPT-2, {LONG} steps", taken[1], None], [f"GPT-2, {SHORT} steps", taken[0], None]])
    problems = [f"{row[0]}: {row[-1]:.2f} ×" for row in steps if row[-1] > bound]
    problems += [f"{small[0]}: {small[1]} bytes of the host"] * (small[1] > HOST_BYTES)
    problems += [f"{growth:.2f} × the memory after {LONG} steps"] * (growth > GROWTH)
    sys.exit(f"beyond the bounds: {problems}" if problems else 0)


def publish(steps, decisions, memory):
    times = {"with values": "seconds", "without": "seconds"}
    tables = [
        Table("A step", {"model": "text", **times, "alone": "seconds", "neither": "seconds", "ratio": "number"}, steps, [f"At most {MOST} × is the aim."]),
        Table("A step that computes a forward pass", {"model": "text", **times, "pass on the CPU": "seconds",
              "against the CPU": "number"}, decisions),
        Table("Memory of the host", {"run": "text", "with everything": "bytes", "without": "bytes"}, memory),
    ]  # fmt: skip
    save("values", "Values", ABOUT, "python3 bench/values.py", tables, ("torch", "transformers"), tools.python())


if __name__ == "__main__":
    main()
