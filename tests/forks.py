"""Runs parts of a script as forks of one process: torch is imported once, and the card must be untouched until then."""

import atexit
import gc
import os
import sys
import traceback

import torch

AT_ONCE = 2


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


def each(names, run):
    """`run(name)` in a process of its own for each name; those that failed end this process, too."""
    running, failed = {}, []
    assert not torch.cuda.is_initialized(), "CUDA does not survive a fork"
    gc.freeze()  # what they share need not be looked through

    def wait():
        pid, status = os.wait()
        name = running.pop(pid)
        if status:
            failed.append(name)

    for name in names:
        pid = os.fork()
        if pid == 0:
            torch.set_num_threads(1)
            leave(lambda: run(name))  # noqa: B023  it runs at once
        running[pid] = name
        if len(running) == AT_ONCE:
            wait()
    while running:
        wait()
    if failed:
        sys.exit(f"these failed by themselves: {', '.join(failed)}")
