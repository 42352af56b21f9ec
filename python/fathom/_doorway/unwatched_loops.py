"""Torch's own loops that ask every parameter for its gradient, its device and the like, and call no function.

In a function mode each such question costs a hundred times what it costs otherwise; a model has thousands of parameters.
So nobody looks on where nothing can happen.
"""

import torch
from torch.optim.optimizer import _default_to_fused_or_foreach

from . import border, native
from .border import DOORWAY


def install():
    for owner in (torch.optim.Optimizer, torch.nn.Module):
        DOORWAY.within(owner, "zero_grad", unwatched(only_forgets))
    for optimizer in vars(torch.optim).values():
        if isinstance(optimizer, type) and "_init_group" in vars(optimizer):
            DOORWAY.within(optimizer, "_init_group", unwatched(has_state))
    # Which way to take; every optimizer's module has imported it.
    theirs = _default_to_fused_or_foreach
    ours = native.Within(DOORWAY.native, theirs.__name__, theirs, unwatched(lambda *_, **__: True))
    border.put_everywhere(theirs.__name__, theirs, ours)


def unwatched(is_safe):
    """No mode of ours sees into a call where that is safe."""

    def choose(args, kwargs):
        return torch._C.DisableTorchFunction() if native.is_mode_alone() and is_safe(*args, **kwargs or {}) else None

    return choose


def only_forgets(_, set_to_none=True):
    return set_to_none


def has_state(optimizer, *_, **__):
    """Whether an optimizer has made the state of every parameter, which it does where it collects what it needs."""
    return len(optimizer.state) == sum(len(group["params"]) for group in optimizer.param_groups)
