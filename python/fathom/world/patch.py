"""Puts another function in the place of one of `torch.distributed`, under every name it has there."""

import functools
import sys

import torch.distributed as dist
from torch.distributed import distributed_c10d


def replace(name, make):
    """`make(inner)` gives the new function; nothing happens in a torch that has no such function."""
    inner = getattr(distributed_c10d, name, None)
    if inner is None:
        return
    made = functools.wraps(inner)(make(inner))
    for module in (distributed_c10d, dist, *list(sys.modules.values())):
        if getattr(module, "__name__", "").startswith("torch.distributed") and vars(module).get(name) is inner:
            setattr(module, name, made)
