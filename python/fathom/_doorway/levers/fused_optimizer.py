"""One kernel for the whole step: without the temporaries of the `foreach` way, which are as large as the parameters."""

import inspect

import torch

from ..edits.calls import with_keywords
from .moments import replace

CHANGE = "optimizer = torch.optim.AdamW(…, fused=True)"
ABSENT = "no optimizer of torch.optim that has a fused step was made"

CLASSES = [torch.optim.Adam, torch.optim.AdamW, torch.optim.SGD, torch.optim.Adagrad]


def apply(options, outcome):
    return with_option(outcome, "fused", True)


def with_option(outcome, name, value):
    """The constructors of optimizers get an option that the script did not give."""
    undo = []
    for kind in CLASSES:
        if name in inspect.signature(kind.__init__).parameters and "__init__" in vars(kind):
            undo.append(replaced(kind, outcome, name, value))
    return lambda: [inverse() for inverse in reversed(undo)]


def replaced(kind, outcome, name, value):
    def make(inner):
        def __init__(optimizer, *args, **kwargs):
            if type(optimizer) is not kind:  # a class of its own decides for itself; AdamW is built on Adam
                return inner(optimizer, *args, **kwargs)
            if kwargs.get(name) == value:
                outcome.reason = f"{kind.__name__} has {name}={value} already"
                return inner(optimizer, *args, **kwargs)
            changed = {**kwargs, name: value}
            if name == "fused":
                changed.pop("foreach", None)
            elif kwargs.get("fused"):
                outcome.reason = f"{kind.__name__} is fused: it has no foreach way"
                changed = kwargs
            try:
                inner(optimizer, *args, **changed)
                if changed is not kwargs:
                    outcome.took(f"{kind.__name__}({name}={value})")
                    without = ("foreach",) if name == "fused" else ()
                    outcome.edits.contain(with_keywords, {name: repr(value)}, without, kwargs)
            except (RuntimeError, TypeError) as error:
                outcome.reason = str(error)
                inner(optimizer, *args, **kwargs)

        return __init__

    return replace(outcome, kind, "__init__", make)
