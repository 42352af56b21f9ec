"""Linear layer and cross entropy in parts: all logits are never there. What it means is only text: it is tried in a copy."""

import torch.nn.functional as F

from ..edits import linear_loss
from .chunked_cross_entropy import LARGE
from .moments import replace

CHANGE = "loss = linear_cross_entropy(hidden, head, targets)   # a few rows at a time: never all logits"
ABSENT = "no cross entropy of more than 16 million logits was computed"


def apply(options, outcome):
    large = options.get("large", LARGE)

    def make(inner):
        def cross_entropy(input, target, weight=None, size_average=None, ignore_index=-100, reduce=None,
                          reduction="mean", label_smoothing=0.0):  # fmt: skip
            is_plain = weight is None and not label_smoothing and reduction == "mean" and not size_average and not reduce
            if is_plain and input.numel() >= large and target.numel() * input.shape[1] == input.numel() and not outcome.sites:
                outcome.edits.contain(linear_loss.write, tuple(input.shape), ignore_index)
                if outcome.edits.all:
                    outcome.took(f"{tuple(input.shape)} logits")
                else:
                    outcome.reason = next(iter(outcome.edits.blocked), None)
            return inner(input, target, weight, size_average, ignore_index, reduce, reduction, label_smoothing)

        return cross_entropy

    return replace(outcome, F, "cross_entropy", make)
