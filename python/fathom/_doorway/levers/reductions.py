"""Whether a loss is a mean over the batch or a sum, seen in its graph: gradients of parts are divided by their number only
where it is a mean.
"""

import itertools

import torch

MEAN, SUM = "a mean", "a sum"
# By a number that is counted on the card: a mean over targets that are not masked.
RATIO = "a sum that is divided by a count"
# By a number that is no size of what is summed up: what it stands for is not known.
WEIGHTED = "a sum that is weighted"

# Numbers become others here; what was reduced lies below.
THROUGH = ("Add", "Sub", "Neg", "ToCopy", "Unsqueeze", "Squeeze", "View", "Clone", "Alias", "Expand", "Stack", "Select")

# Nodes that are looked at, at most.
MOST = 500

# A factor from here on is a weight, and no division by the size of a batch.
WEIGHT = 0.5


def of(tensors):
    """What these numbers consist of; what is none of these kinds is left out."""
    found, seen = set(), set()
    waiting = [(tensor.grad_fn, None) for tensor in tensors if tensor.grad_fn is not None]
    while waiting and len(seen) < MOST:
        node, divisor = waiting.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        name = node.name().rpartition("::")[2]
        inner = [each for each, _ in node.next_functions]
        if name.startswith("Mean") or getattr(node, "_saved_reduction", None) == 1:
            found.add(MEAN)
        elif name.startswith("Sum") or getattr(node, "_saved_reduction", None) == 2:
            found.add(of_sum(node, divisor))
        elif name.startswith("Div"):
            waiting.append((inner[0], times(divisor, number(node))))
        elif name.startswith("Mul"):
            factor = number(node)
            is_weight = factor is None or WEIGHT <= abs(factor) or not factor
            waiting += [(each, divisor if is_weight else times(divisor, 1 / factor)) for each in inner]
        elif name.startswith(THROUGH):
            waiting += [(each, divisor) for each in inner]
    return found


def of_sum(node, divisor):
    if divisor is None:
        return SUM
    if divisor == "count":
        return RATIO
    sizes = getattr(node, "_saved_self_sym_sizes", ())
    whole = {int(size) for size in itertools.accumulate(sizes, lambda one, other: one * other)}
    return MEAN if round(abs(divisor)) in whole else WEIGHTED


def number(node):
    """The constant that a node multiplies with or divides by; `None` if it is something on the card."""
    other = getattr(node, "_saved_other", None)
    if isinstance(other, torch.Tensor):
        return other.item() if other.device.type == "cpu" and other.numel() == 1 and not other.requires_grad else None
    return other if isinstance(other, (int, float)) else None


def times(divisor, more):
    if more is None or divisor == "count":
        return "count"
    return more if divisor is None else divisor * more
