"""What peers answer for eleven trainings, beside PyTorch's own allocator and `fathom run`.

    python3 bench/peers.py [--quick] [--keep FOLDER]       needs `make build .venvs/peers/peers.stamp`

Every tool is run, none is quoted. FOLDER keeps each answer, and what is there already is not run again. `--quick` runs
two small models and saves nothing. Ends with an error if Fathom's answer is not PyTorch's own, to the byte.
"""

import argparse
import json
import statistics
import sys
from pathlib import Path

import tools
from result import Table, save

# Column and tool, by how much they look at.
PEERS = {
    "MemTracker": "memtracker",
    "live bytes": "livebytes",
    "torchinfo": "torchinfo",
    "accelerate": "accelerate",
    "DeepSpeed": "deepspeed",
}
QUICK = ("resnet50", "lstm")

ABOUT = """Eleven trainings of two steps each, built by the same code for every tool. The reference is PyTorch's own
`max_memory_allocated`, with its caching allocator at work on a phantom A100 and no recorder, but
true values of small tensors, which shapes and branches of some of these models depend on. `fathom run` is the same
allocator watched by the recorder: its column shows that watching changes nothing, not that cards behave so, which only
measured cards can show (see accuracy). Fake tensors are asked twice, by `MemTracker` of
`torch.distributed._tools` and by adding up the storages that are alive; both see two steps. MemTracker fails at frozen
parameters, and fake tensors where peft moves its adapters: both were helped over it. The others look at the model:
torchinfo's `summary` (its estimated total), the arithmetic of `accelerate estimate-memory` (training with Adam) on our
model instead of one from the hub, and DeepSpeed's `estimate_zero2_model_states_mem_needs` for one card. They do not claim
to know activations: their error is what a reader of their number is off by."""


def answers(model, keep):
    """What each tool says of one model: {column: answer}."""
    path = keep / f"peers-{model}.json" if keep else None
    if path and path.exists():
        return json.loads(path.read_text())
    ours = {"bytes": tools.report(model)["peak"]["allocated_bytes"]}
    found = {"PyTorch": tools.estimate("fathom", model, flags=("--record", "off")), "fathom": ours}
    found |= {column: tools.estimate(tool, model) for column, tool in PEERS.items()}
    print(model, {column: each.get("bytes", each.get("error")) for column, each in found.items()}, flush=True)
    if path:
        path.write_text(json.dumps(found))
    return found


def error(answer, truth):
    return None if "error" in answer else answer["bytes"] / truth - 1


def tables(found):
    """Errors by model, what went wrong, and each tool's errors in short."""
    columns = ["fathom", *PEERS]
    truths = {model: answer["PyTorch"]["bytes"] for model, answer in found.items()}
    errors = {model: [error(answer[column], truths[model]) for column in columns] for model, answer in found.items()}
    rows = [[tools.NAMES[model], truths[model], *errors[model]] for model in found]
    notes = [f"{tools.NAMES[model]}: {tools.words(model)}." for model in found]
    notes += [
        f"{column} on {tools.NAMES[model]}: {answer[column]['error']}"
        for column in columns
        for model, answer in found.items()
        if "error" in answer[column]
    ]
    every = {column: [row[at] for row in errors.values() if row[at] is not None] for at, column in enumerate(columns)}
    short = [
        [column, len(each), *(f([abs(e) for e in each]) for f in (statistics.median, max)), sum(e < -0.01 for e in each)]
        for column, each in every.items()
        if each
    ]
    head = {"model": "text", "PyTorch": "bytes", **dict.fromkeys(columns, "error")}
    brief = {"tool": "text", "models": "count", "median error": "percent", "worst": "percent", "too low by 1 %": "count"}
    return [Table("Error of the allocated peak", head, rows, notes), Table("In short", brief, short)]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--keep", type=Path)
    options = parser.parse_args()
    models = QUICK if options.quick else tools.NAMES
    found = {model: answers(model, options.keep) for model in models}
    if not options.quick:
        packages = ("torch", "torchinfo", "accelerate", "deepspeed", "peft", "transformers", "diffusers", "torchvision")
        save("peers", "Peers, by running them", ABOUT, "python3 bench/peers.py", tables(found), packages, tools.python())
    wrong = [model for model, each in found.items() if each["fathom"] != {"bytes": each["PyTorch"].get("bytes")}]
    sys.exit(f"fathom and PyTorch differ: {wrong}" if wrong else 0)


if __name__ == "__main__":
    main()
