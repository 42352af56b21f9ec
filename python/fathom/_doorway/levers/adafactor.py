"""Adafactor instead of Adam: a row and a column per matrix are kept, not two numbers per parameter."""

import torch

from . import other_optimizer

CHANGE = "optimizer = torch.optim.Adafactor(model.parameters(), lr=…)"
ABSENT = "no optimizer of Adam's kind was made"


def apply(options, outcome):
    kind = getattr(torch.optim, "Adafactor", None)
    if kind is None:
        outcome.reason = "this torch has no Adafactor (2.5 and later have)"
        return lambda: None
    return other_optimizer.apply(outcome, kind, kind([torch.zeros(1)]).defaults, {"optim": "adafactor"})
