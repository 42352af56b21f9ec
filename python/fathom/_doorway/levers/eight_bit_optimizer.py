"""Moments of Adam in eight bits, by a package that has them; without one, a stand-in shows what they would take."""

import importlib
import importlib.util

from ..edits import Blocked
from ..edits.calls import with_function
from . import frameworks, stand_in
from .moments import at_optimizer

CHANGE = "optimizer = bitsandbytes.optim.AdamW8bit(model.parameters(), lr=…)"
ABSENT = "no optimizer of Adam's kind was made"

# Where each package has them, and what transformers' Trainer calls them.
PACKAGES = {"bitsandbytes": ("bitsandbytes.optim", "adamw_bnb_8bit"), "torchao": ("torchao.optim", "adamw_torch_8bit")}

KEPT = ("params", "lr", "betas", "eps", "weight_decay")


def apply(options, outcome):
    package = next((name for name in PACKAGES if importlib.util.find_spec(name) is not None), None)

    def of_transformers(get):
        # The Trainer makes it by itself.
        is_adam = str(getattr(get("optim"), "value", get("optim"))).startswith("adamw_torch")
        return {"optim": PACKAGES[package][1]} if package and is_adam else None

    def act(optimizer):
        name = type(optimizer).__name__
        if outcome.framework or name not in ("Adam", "AdamW"):
            return
        outcome.took(f"{name} → {name}8bit")
        if package is None:
            stand_in.put(optimizer, stand_in.EightBit)
            outcome.edits.contain(absent)
            return
        module = PACKAGES[package][0]
        outcome.edits.contain(with_function, f"{module}.{name}8bit", KEPT, optimizer)
        stand_in.become(optimizer, getattr(importlib.import_module(module), f"{name}8bit"), KEPT)

    undo = [frameworks.arguments(outcome, {"transformers": of_transformers}), at_optimizer(outcome, act)]
    return lambda: [inverse() for inverse in reversed(undo)]


def absent(edits):
    why = "the peak is that of a stand-in which keeps tensors of the same sizes"
    raise Blocked("", f"bitsandbytes is not installed (`pip install bitsandbytes`): {why}")
