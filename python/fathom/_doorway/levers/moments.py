"""Moments of a script at which levers act: the first call of a model, the making of an optimizer, a forward pass."""

import threading
import weakref

import torch

from ..modules import Modules


def replace(outcome, owner, name, make):
    """Puts `make(inner)` in the place of an attribute; gives the inverse, which leaves later replacements alone."""
    return outcome.party.instead(owner, name, make)


class Changes:
    """What a lever has changed, and the way back. Nothing of it is held: a script that drops its model gets the memory
    back with a lever as without one."""

    def __init__(self):
        self.made = []

    def note(self, changed, inverse):
        """`inverse(changed)` is the way back, if that is still there then."""
        self.made.append((weakref.ref(changed), inverse))

    def undo(self):
        while self.made:
            reference, inverse = self.made.pop()
            changed = reference()
            if changed is not None:
                inverse(changed)


def at_first_call(outcome, act):
    """`act({path: module}, changes)` before any module is called, once; paths as the recorder gives them. Gives what undoes
    the changes."""
    waiting, changes = [act], Changes()

    def first(*_):
        if waiting:
            waiting.pop()(by_path(), changes)

    undo = outcome.party.around(torch.nn.Module, "__call__", before=first)
    return lambda: (undo(), changes.undo())


def by_path():
    """Every module of the process under its path."""
    modules = Modules()
    modules.search()
    found = {}
    for reference, number in modules.known.values():
        module = reference() if reference is not None else None
        if module is not None:
            found[modules.paths[number]] = module
    return found


def at_optimizer(outcome, act):
    """`act(optimizer)` when one has been made."""

    def made(_, args, kwargs, result, error):
        if error is None:
            act(args[0])

    return outcome.party.around(torch.optim.Optimizer, "__init__", after=made)


def around_forward(outcome, enter):
    """A context of `enter(module)` from the first module that is called up to the backward pass, or to the next step.

    That is what a script means that writes `with …:` around its forward pass and loss.
    """
    local = threading.local()

    def begin(args, _):
        is_recomputed = torch._C._current_graph_task_id() != -1  # by a checkpoint, inside a backward pass
        if getattr(local, "context", None) is None and torch.is_grad_enabled() and not is_recomputed:
            context = enter(args[0])
            if context is not None:
                context.__enter__()
                local.context = context

    def leave(*_):
        context, local.context = getattr(local, "context", None), None
        if context is not None:
            context.__exit__(None, None, None)

    undo = [
        outcome.party.around(torch.nn.Module, "__call__", before=begin),
        outcome.party.around(torch.autograd, "backward", before=leave),
        outcome.party.around(torch.autograd, "grad", before=leave),
    ]
    return lambda: (leave(), [inverse() for inverse in reversed(undo)])
