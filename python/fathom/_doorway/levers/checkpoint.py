"""Activation checkpointing of chosen modules: their activations are dropped and computed again in the backward pass.

BatchNorm inside of them sees each batch twice. With the momentum m' = 1 - sqrt(1 - m) two updates by the same batch are
what one was with m, so its running statistics stay those of the script but for rounding.
"""

import functools

import torch
from torch.utils.checkpoint import checkpoint, checkpoint_sequential, create_selective_checkpoint_contexts

from ..edits import checkpoint_text
from ..file_owner import is_library
from .moments import at_first_call

CHANGE = """from torch.utils.checkpoint import checkpoint
# for each module named here, where it is called:
y = checkpoint(module, x, use_reentrant=False)"""
OF_NORMS = (
    "# each BatchNorm inside of them: norm.momentum = 1 - (1 - norm.momentum) ** 0.5, for it sees each batch twice"
)
OF_SEQUENTIALS = "torch.utils.checkpoint.checkpoint_sequential(module, parts, x, use_reentrant=False)   # "
ABSENT = "none of the named modules was called with gradients"


def apply(options, outcome):
    costly = checkpoint_text.costly() if options.get("keeps_products") else None
    how = {"context_fn": functools.partial(create_selective_checkpoint_contexts, costly)} if costly else {}

    def act(modules, changes):
        outcome.edits.contain(checkpoint_text.write, modules, options["modules"], bool(costly))
        norms, parts = {}, []
        for path in options["modules"]:
            module = modules.get(path)
            if module is None:
                outcome.reason = f"there is no module `{path}`"
                continue
            changes.note(module, lambda module: vars(module).pop("forward", None))
            norms.update({norm: norm.momentum for norm in checkpoint_text.recomputed_norms(module, bool(costly))})
            note = functools.partial(outcome.took, path, of_class(module))
            count = None if costly else checkpoint_text.parts_of(module)
            make = functools.partial(recomputed, note=note, how=how)
            if count is not None:
                parts.append(f"{path} in {count} parts")
                make = functools.partial(in_parts, note=note, layers=list(module.children()), count=count)
            module.forward = outcome.party.replacing(module.forward, make, path)

        for norm, momentum in norms.items():
            changes.note(norm, lambda norm, momentum=momentum: setattr(norm, "momentum", momentum))
            norm.momentum = 1 - (1 - momentum) ** 0.5
            outcome.meets_batch_norm = True
        if parts:
            outcome.change = OF_SEQUENTIALS + ", ".join(parts)
        if norms:
            outcome.change = f"{outcome.change or options.get('change', CHANGE)}\n{OF_NORMS}"

    return at_first_call(outcome, act)


def of_class(module):
    """Where the module's forward pass is written, if the user wrote it."""
    code = getattr(type(module).forward, "__code__", None)
    return f"{code.co_filename}:{code.co_firstlineno}" if code and not is_library(code.co_filename) else None


def in_parts(forward, note, layers, count):
    @functools.wraps(forward)
    def checkpointed(x):
        if not torch.is_grad_enabled():
            return forward(x)
        note()
        return checkpoint_sequential(layers, count, x, use_reentrant=False)

    return checkpointed


def recomputed(forward, note, how):
    @functools.wraps(forward)
    def checkpointed(*args, **kwargs):
        if not torch.is_grad_enabled():
            return forward(*args, **kwargs)
        note()
        return checkpoint(forward, *args, use_reentrant=False, **how, **kwargs)

    return checkpointed
