"""Activation checkpointing of chosen modules: their activations are dropped and computed again in the backward pass."""

import functools

import torch
from torch.utils.checkpoint import checkpoint

from . import EXACT
from .moments import at_first_call

LABEL = EXACT
CHANGE = """from torch.utils.checkpoint import checkpoint
# for each module named here, where it is called:
y = checkpoint(module, x, use_reentrant=False)"""
ABSENT = "none of the named modules was called with gradients"


def apply(options, outcome):
    changed = []

    def act(modules):
        for path in options["modules"]:
            module = modules.get(path)
            if module is None:
                outcome.reason = f"there is no module `{path}`"
                continue
            changed.append(module)
            module.forward = recomputed(module.forward, lambda path=path, place=of_class(module): outcome.took(path, place))

    undo = at_first_call(act)

    def inverse():
        undo()
        for module in changed:
            module.__dict__.pop("forward", None)

    return inverse


def of_class(module):
    """Where the module's forward pass is written."""
    code = getattr(type(module).forward, "__code__", None)
    return f"{code.co_filename}:{code.co_firstlineno}" if code else None


def recomputed(forward, note):
    @functools.wraps(forward)
    def checkpointed(*args, **kwargs):
        if not torch.is_grad_enabled():
            return forward(*args, **kwargs)
        note()
        return checkpoint(forward, *args, use_reentrant=False, **kwargs)

    return checkpointed
