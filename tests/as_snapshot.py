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
    runpy.run_path(sys.argv[0], run_name="__main__")
finally:
    torch.cuda.memory._dump_snapshot(out)
