"""Runs every case in a process of its own: `fathom run --steps 0 --out DIR -- python tests/detectors/all.py FOLDER [CASE…]`.

Torch is imported once and each case is a fork, so this must not touch CUDA. A case leaves FOLDER/<case>.json, which says
what is expected and in which process it ran: its recording is DIR/recording.<pid>.0.fathom.
"""

import atexit
import gc
import json
import os
import sys
import traceback
from pathlib import Path

import torch
import torch._dynamo  # the first optimizer of each case would import it

import attention, blowups, copies, layers, shapes, training  # noqa: E401, F401
from case import CASES

AT_ONCE = 2


def run(name, folder):
    case = CASES[name]
    torch.set_num_threads(1)
    said = {"pid": os.getpid(), "file": case["file"], "lines": case["lines"], "expected": case["expected"]}
    said["bytes"] = case["function"]()
    (folder / f"{name}.json").write_text(json.dumps(said))


def leave(act):
    """Ends the process with what the doorway does at its end, but without taking all of torch down."""
    try:
        act()
        atexit._run_exitfuncs()
        sys.stderr.flush()
        os._exit(0)
    except BaseException:
        traceback.print_exc()
        os._exit(1)


def main(folder, *names):
    running, failed = {}, []
    assert not torch.cuda.is_initialized(), "CUDA does not survive a fork"
    gc.freeze()  # what the cases share need not be looked through

    def wait():
        pid, status = os.wait()
        name = running.pop(pid)
        if status:
            failed.append(name)

    for name in names or CASES:
        pid = os.fork()
        if pid == 0:
            leave(lambda: run(name, Path(folder)))
        running[pid] = name
        if len(running) == AT_ONCE:
            wait()
    while running:
        wait()
    if failed:
        sys.exit(f"these cases failed by themselves: {', '.join(failed)}")


if __name__ == "__main__":
    main(*sys.argv[1:])
