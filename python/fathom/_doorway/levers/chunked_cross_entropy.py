"""Cross entropy over parts of the rows, each computed again in the backward pass: no second copy of all logits."""

import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint

from .moments import replace

CHANGE = """loss = sum(checkpoint(F.cross_entropy, part, target, reduction="sum", use_reentrant=False)
           for part, target in zip(logits.split(rows), targets.split(rows))) / (targets != -100).sum()"""
ABSENT = "no cross entropy of more than 16 million logits was computed"

# Fewer logits are not worth it; a part has about this many.
LARGE = 1 << 24
PART = 1 << 22


def apply(options, outcome):
    large = options.get("large", LARGE)

    def make(inner):
        def cross_entropy(input, target, weight=None, size_average=None, ignore_index=-100, reduce=None,
                          reduction="mean", label_smoothing=0.0):  # fmt: skip
            is_plain = input.dim() == 2 and target.dim() == 1 and weight is None and not label_smoothing
            if not is_plain or reduction == "none" or input.numel() < large or size_average or reduce:
                return inner(input, target, weight, size_average, ignore_index, reduce, reduction, label_smoothing)
            outcome.took(f"{tuple(input.shape)} logits")
            rows = max(1, min(PART, large) // input.shape[1])

            def part(logits, targets):
                return inner(logits, targets, ignore_index=ignore_index, reduction="sum")

            total = sum(
                checkpoint(part, logits, targets, use_reentrant=False)
                for logits, targets in zip(input.split(rows), target.split(rows))
            )
            return total / (target != ignore_index).sum() if reduction == "mean" else total

        return cross_entropy

    return replace(outcome, F, "cross_entropy", make)

