"""LoRA: the model is frozen, and small matrices beside its linear layers are trained. A proposal: it is written by hand, with peft.

The stand-in puts two matrices beside each linear layer of numbered blocks, as `target_modules="all-linear"` does.
"""

import functools

import torch

from ..edits import Blocked
from .moments import at_first_call, at_optimizer

CHANGE = """model = peft.get_peft_model(model, peft.LoraConfig(r=16, target_modules="all-linear"))
# before the optimizer is made; only the new matrices are trained"""
ABSENT = "no model with linear layers in numbered blocks was called"

RANK = 16


def apply(options, outcome):
    optimizers = []

    def act(modules, changes):
        chosen = {path: module for path, module in modules.items() if is_target(path, module)}
        if not chosen or not optimizers:
            return
        for module in modules.values():
            for parameter in module.parameters(recurse=False):
                if parameter.requires_grad:
                    parameter.requires_grad_(False)
                    changes.note(parameter, lambda parameter: parameter.requires_grad_(True))
        for path, module in chosen.items():
            optimizers[0].param_groups[0]["params"] += beside(module, outcome, path)
            changes.note(module, lambda module: vars(module).pop("forward", None))
            outcome.took(path, "")
        outcome.edits.contain(by_hand)

    undo = [at_optimizer(outcome, optimizers.append), at_first_call(outcome, act)]
    return lambda: [inverse() for inverse in reversed(undo)]


def is_target(path, module):
    """A linear layer of a numbered block; transformers' `Conv1D` is one with its matrix the other way round."""
    is_linear = isinstance(module, torch.nn.Linear) or type(module).__name__ == "Conv1D"
    return is_linear and any(part.isdigit() for part in path.split("."))


def beside(module, outcome, path):
    """Puts the two matrices beside a layer; gives them."""
    rows, columns = module.weight.shape
    inner, outer = (columns, rows) if isinstance(module, torch.nn.Linear) else (rows, columns)
    like = module.weight
    down = torch.nn.Parameter(torch.zeros(RANK, inner, device=like.device, dtype=like.dtype))
    up = torch.nn.Parameter(torch.zeros(outer, RANK, device=like.device, dtype=like.dtype))

    def make(theirs):
        @functools.wraps(theirs)
        def forward(x, *args, **kwargs):
            more = torch.nn.functional.linear(torch.nn.functional.linear(x, down), up)
            return theirs(x, *args, **kwargs) + more

        return forward

    module.forward = outcome.party.replacing(module.forward, make, path)
    return [down, up]


def by_hand(edits):
    peak = "the peak is that of a stand-in with matrices of rank 16 beside all linear layers"
    raise Blocked("", f"LoRA is written by hand, with peft: {peak}")
