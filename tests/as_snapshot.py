"""Runs a script as if its author had asked PyTorch for a memory snapshot: `as_snapshot.py STACKS OUT SCRIPT [ARGUMENT …]`.

STACKS is `all` (frames of Python and C++, PyTorch's default) or `python`.
"""

import runpy
import sys

import torch

stacks, out, *sys.argv = sys.argv[1:]
torch.cuda.init()
torch.cuda.memory._record_memory_history(stacks=stacks)
try:
    kept = runpy.run_path(sys.argv[0], run_name="__main__")  # what the script made lives as long as in a run of its own
finally:
    torch.cuda.memory._dump_snapshot(out)
