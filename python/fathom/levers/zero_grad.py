"""Gradients are given back right after the step: they are not there during the next forward pass."""

import torch

from . import EXACT
from .moments import at_optimizer, replace

LABEL = EXACT
CHANGE = """optimizer.step()
optimizer.zero_grad(set_to_none=True)   # here, not before the next backward pass"""
ABSENT = "gradients are given back before the next forward pass already"


def apply(options, outcome):
    owing = set()  # optimizers whose gradients we dropped and the script has not

    def act(optimizer):
        zero = optimizer.zero_grad

        def zero_grad(set_to_none=True):
            owing.discard(id(optimizer))
            return zero(set_to_none=True)

        def dropped(*_):
            held = sum(p.grad is not None for group in optimizer.param_groups for p in group["params"])
            zero(set_to_none=True)
            if held:
                owing.add(id(optimizer))

        optimizer.zero_grad = zero_grad
        optimizer.register_step_post_hook(dropped)

    def make(inner):
        def __call__(module, *args, **kwargs):
            # Still owing when a model is called: here the script would have held its gradients.
            if owing and torch.is_grad_enabled():
                outcome.took(f"gradients of {len(owing)} optimizer{'s' if len(owing) > 1 else ''}")
            return inner(module, *args, **kwargs)

        return __call__

    def make_backward(inner):
        def backward(*args, **kwargs):
            if owing:
                outcome.reason = "the script keeps gradients across steps"
            return inner(*args, **kwargs)

        return backward

    undo = [
        at_optimizer(act),
        replace(torch.nn.Module, "__call__", make),
        replace(torch.autograd, "backward", make_backward),
    ]
    return lambda: [inverse() for inverse in undo]
