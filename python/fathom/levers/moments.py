"""Moments of a script at which levers act: the first call of a model, the making of an optimizer, a forward pass."""

import threading

import torch

from ..modules import Modules


def replace(owner, name, make):
    """Puts `make(inner)` in the place of an attribute; gives the inverse, which leaves later replacements alone."""
    inner = getattr(owner, name)
    ours = make(inner)
    setattr(owner, name, ours)

    def undo():
        if getattr(owner, name) is ours:
            setattr(owner, name, inner)

    return undo


def at_first_call(act):
    """`act({path: module})` before any module is called, once; paths as the recorder gives them."""
    done = []

    def make(inner):
        def __call__(module, *args, **kwargs):
            if not done:
                done.append(True)
                act(by_path())
            return inner(module, *args, **kwargs)

        return __call__

    return replace(torch.nn.Module, "__call__", make)


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


def at_optimizer(act):
    """`act(optimizer)` when one has been made."""

    def make(inner):
        def __init__(optimizer, *args, **kwargs):
            inner(optimizer, *args, **kwargs)
            act(optimizer)

        return __init__

    return replace(torch.optim.Optimizer, "__init__", make)


def around_forward(enter):
    """A context of `enter(module)` from the first module that is called up to the backward pass, or to the next step.

    That is what a script means that writes `with …:` around its forward pass and loss.
    """
    local = threading.local()

    def leave():
        context, local.context = getattr(local, "context", None), None
        if context is not None:
            context.__exit__(None, None, None)

    def make_call(inner):
        def __call__(module, *args, **kwargs):
            is_recomputed = torch._C._current_graph_task_id() != -1  # by a checkpoint, inside a backward pass
            if getattr(local, "context", None) is None and torch.is_grad_enabled() and not is_recomputed:
                context = enter(module)
                if context is not None:
                    context.__enter__()
                    local.context = context
            return inner(module, *args, **kwargs)

        return __call__

    def make_backward(inner):
        def backward(*args, **kwargs):
            leave()
            return inner(*args, **kwargs)

        return backward

    undo = [
        replace(torch.nn.Module, "__call__", make_call),
        replace(torch.autograd, "backward", make_backward),
        replace(torch.autograd, "grad", make_backward),
    ]
    return lambda: (leave(), [inverse() for inverse in undo])
