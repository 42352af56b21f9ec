"""Torch's own loops that ask every parameter for its gradient, its device and the like, and call no function.

In a function mode each such question costs a hundred times what it costs otherwise; a model has thousands of parameters.
So nobody looks on where nothing can happen.
"""

import functools
import sys

import torch
from torch.optim.optimizer import _default_to_fused_or_foreach


def install():
    for owner in (torch.optim.Optimizer, torch.nn.Module):
        owner.zero_grad = unseen(owner.zero_grad, only_forgets)
    for optimizer in vars(torch.optim).values():
        if isinstance(optimizer, type) and "_init_group" in vars(optimizer):
            optimizer._init_group = unseen(optimizer._init_group, has_state)
    # Which way to take; every optimizer's module has imported it.
    name = _default_to_fused_or_foreach.__name__
    replacement = unseen(_default_to_fused_or_foreach, lambda *_, **__: True)
    for module in list(sys.modules.values()):
        if vars(module).get(name) is _default_to_fused_or_foreach:
            setattr(module, name, replacement)


def unseen(inner, is_safe):
    """A function that no mode of ours sees into where it is safe."""

    @functools.wraps(inner)
    def call(*args, **kwargs):
        is_ours_alone = torch._C._len_torch_function_stack() == 1
        if not is_ours_alone or torch.compiler.is_dynamo_compiling() or not is_safe(*args, **kwargs):
            return inner(*args, **kwargs)
        with torch._C.DisableTorchFunction():
            return inner(*args, **kwargs)

    return call


def only_forgets(_, set_to_none=True):
    return set_to_none


def has_state(optimizer, *_, **__):
    """Whether an optimizer has made the state of every parameter, which it does where it collects what it needs."""
    return len(optimizer.state) == sum(len(group["params"]) for group in optimizer.param_groups)
