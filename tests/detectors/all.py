"""Runs every case in a process of its own: `fathom run --steps 0 --out DIR -- python tests/detectors/all.py FOLDER [CASE…]`.

Torch is imported once and each case is a fork, so this must not touch CUDA. A case leaves FOLDER/<case>.json, which says
what is expected and in which process it ran: its recording is DIR/recording.<pid>.0.fathom.
"""

import json
import os
import sys
from pathlib import Path

import torch._dynamo  # noqa: F401  the first optimizer of each case would import it

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import architectures, attention, blowups, copies, inference, layers, loops, shapes, training, words  # noqa: E401, F401
import forks
from case import CASES


def run(name, folder):
    case = CASES[name]
    said = {"pid": os.getpid(), "file": case["file"], "lines": case["lines"], "expected": case["expected"]}
    said["bytes"] = case["function"]()
    (folder / f"{name}.json").write_text(json.dumps(said))


def main(folder, *names):
    forks.each(names or CASES, lambda name: run(name, Path(folder)))


if __name__ == "__main__":
    main(*sys.argv[1:])
