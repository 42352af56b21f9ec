"""The switch that a library has for checkpoints in its own models, or the argument of its Trainer."""

import torch

from ..border import keep_theirs
from ..edits.places import place_of
from . import frameworks
from .moments import at_first_call

CHANGE = "model.gradient_checkpointing_enable()"
ABSENT = "no model of transformers, diffusers or timm with a switch for checkpoints was called"

# Checkpoints of the kind that needs no inputs with gradients, as frozen parts would.
MODERN = {"use_reentrant": False}


def apply(options, outcome):
    def of_trainer(get):
        if get("gradient_checkpointing") is True:
            outcome.reason = "the script has it on already"
            return None
        return {"gradient_checkpointing": True}

    def act(modules, changes):
        if outcome.framework:
            return
        for module in outermost(modules.values()):
            switch = switch_of(module)
            if switch is None:
                continue
            if is_on(module):
                outcome.reason = "the script has it on already"
                continue
            on, off, line = switch
            try:
                on(module)
            except Exception as error:
                keep_theirs(error)
                outcome.reason = str(error).partition("\n")[0]
                continue
            changes.note(module, off)
            outcome.took(type(module).__name__)
            outcome.change = line.format("model")
            outcome.edits.contain(write, module, line)
            outcome.meets_batch_norm |= any(isinstance(part, torch.nn.modules.batchnorm._BatchNorm) for part in module.modules())

    undo = [frameworks.arguments(outcome, {"transformers": of_trainer}), at_first_call(outcome, act)]
    return lambda: [inverse() for inverse in reversed(undo)]


def write(edits, module, line):
    place = place_of(module)
    place.write(edits, [line.format(place.expression)])


def outermost(modules):
    """Models that are trained and have a switch, without what they consist of."""
    have = [module for module in modules if switch_of(module) and any(p.requires_grad for p in module.parameters())]
    inner = {id(part) for module in have for part in module.modules() if part is not module}
    return [module for module in have if id(module) not in inner]


def switch_of(module):
    """(on, off, line)"""
    kind = type(module)
    if getattr(module, "supports_gradient_checkpointing", False) and callable(getattr(module, "gradient_checkpointing_enable", None)):
        line = '{}.gradient_checkpointing_enable(gradient_checkpointing_kwargs={{"use_reentrant": False}})'
        return (
            lambda it: it.gradient_checkpointing_enable(gradient_checkpointing_kwargs=dict(MODERN)),
            lambda it: it.gradient_checkpointing_disable(),
            line,
        )
    if getattr(module, "_supports_gradient_checkpointing", False) and hasattr(kind, "enable_gradient_checkpointing"):
        return kind.enable_gradient_checkpointing, kind.disable_gradient_checkpointing, "{}.enable_gradient_checkpointing()"
    if kind.__module__.startswith("timm.") and hasattr(kind, "set_grad_checkpointing"):
        return kind.set_grad_checkpointing, lambda it: it.set_grad_checkpointing(False), "{}.set_grad_checkpointing()"
    return None


def is_on(module):
    flags = ("is_gradient_checkpointing", "grad_checkpointing")
    return any(getattr(module, flag, False) is True for flag in flags)
