"""Puts another function in the place of one of `torch.distributed`, under every name it has there."""

import sys

import torch.distributed as dist
from torch.distributed import distributed_c10d

from .. import border

# What goes wrong where we stand in for other ranks: PyTorch's own function answers then, as far as it can.
WORLD = border.Party("another rank could not be stood in for")


def replace(name, make):
    """`make(inner)` gives the new function; nothing happens in a torch that has no such function."""
    inner = getattr(distributed_c10d, name, None)
    if inner is None:
        return
    modules = {id(module): module for module in (distributed_c10d, dist, *sys.modules.values())}.values()
    is_place = lambda module: getattr(module, "__name__", "").startswith("torch.distributed")  # noqa: E731
    WORLD.instead_in([each for each in modules if is_place(each) and vars(each).get(name) is inner], name, make)
