"""Smaller batches whose gradients add up: the same number of samples per step, fewer at a time.

The batches of each DataLoader become a part of what they were; the optimizer steps when all parts have passed.
"""

import functools
import types

import torch

from . import CHANGES_STATISTICS, NUMERICALLY_EQUAL
from .moments import at_first_call, at_optimizer, replace

LABEL = NUMERICALLY_EQUAL
CHANGE = """loader = DataLoader(…, batch_size=batch_size // parts)
(loss / parts).backward()
if (index + 1) % parts == 0:
    optimizer.step(); optimizer.zero_grad()"""
ABSENT = "the script has no DataLoader: give the flag of its batch size with --set"


def apply(options, outcome):
    parts = int(options.get("parts", 2))
    undo = [
        replace(torch.utils.data.DataLoader, "__init__", lambda inner: smaller(inner, parts, outcome)),
        replace(torch.autograd, "backward", lambda inner: scaled(inner, parts)),
        at_optimizer(lambda optimizer: gate(optimizer, parts)),
        at_first_call(lambda modules: warn(modules, outcome)),
    ]
    return lambda: [inverse() for inverse in undo]


def smaller(inner, parts, outcome):
    @functools.wraps(inner)
    def __init__(loader, dataset, batch_size=1, *args, **kwargs):
        if not isinstance(batch_size, int) or batch_size % parts:
            outcome.reason = f"a batch of {batch_size} cannot be divided into {parts} equal parts"
            return inner(loader, dataset, batch_size, *args, **kwargs)
        outcome.took(f"DataLoader: {batch_size} → {batch_size // parts}")
        inner(loader, dataset, batch_size // parts, *args, **kwargs)

    return __init__


def scaled(inner, parts):
    @functools.wraps(inner)
    def backward(tensors, *args, **kwargs):
        tensors = (tensors,) if isinstance(tensors, torch.Tensor) else tensors
        return inner(tuple(tensor / parts for tensor in tensors), *args, **kwargs)

    return backward


def gate(optimizer, parts):
    """Of `parts` steps that the script asks for, the last is one; gradients stay until then."""
    zero, asked = optimizer.zero_grad, [0]

    @functools.wraps(type(optimizer).step)
    def gated(_, *args, **kwargs):
        asked[0] += 1
        if asked[0] % parts == 0:
            return type(optimizer).step(optimizer, *args, **kwargs)  # its class may be another lever's

    def zero_grad(set_to_none=True):
        if asked[0] % parts == 0:
            zero(set_to_none=set_to_none)

    # A bound method: schedulers look into it.
    optimizer.step, optimizer.zero_grad = types.MethodType(gated, optimizer), zero_grad


def warn(modules, outcome):
    """BatchNorm sees smaller batches."""
    kinds = {type(module).__name__ for module in modules.values()}
    if any(name.startswith("BatchNorm") for name in kinds):
        outcome.label = CHANGES_STATISTICS
