"""Whether a loss is a mean over targets of which some are ignored: of parts of a batch it is a mean of means then.

A part with few targets weighs as much as one with many. Where every part ignores as many, as models do that shift their
labels by one, both are the same.
"""

import torch

from ..guard import undisturbed
from ..values import values

# Seconds for values that have to be computed.
PATIENCE = 0.2

AMONG_SAMPLES = "the loss compares the samples of a batch with each other: in smaller batches there are fewer to compare with"

ADDED = "\n# the loss is a mean over targets that are not ignored: of parts it is a mean of means, which weighs them otherwise"


def follow(outcome):
    """Sets `outcome.means_of_means` when two losses of one size ignore different numbers of targets."""
    counts = {}

    def called(args, kwargs):
        targets, ignored = argument(args, kwargs, 1, "target"), argument(args, kwargs, 4, "ignore_index", -100)
        is_mean = argument(args, kwargs, 6, "reduction", "mean") == "mean"
        is_index = isinstance(targets, torch.Tensor) and not targets.is_floating_point()
        if not (is_mean and is_index):
            return
        with undisturbed():
            known = known_values(targets)
            if is_among_samples(argument(args, kwargs, 0, "input"), known):
                outcome.reason = AMONG_SAMPLES
            if outcome.means_of_means or outcome.framework == "transformers":
                return  # its Trainer divides by the number of targets in all parts
            count = int((known == ignored).sum()) if known is not None else None
        if count is None:
            outcome.means_of_means = ignored != -100
            return
        outcome.means_of_means = counts.setdefault(targets.numel(), count) != count

    undo = [outcome.party.around(torch.nn.functional, "cross_entropy", before=called)]
    return lambda: [inverse() for inverse in undo]


def is_among_samples(logits, targets):
    """Whether each row of logits is a sample beside all others of its batch, of which it is to find itself or its pair."""
    rows, classes = logits.shape if logits.dim() == 2 else (0, 0)
    if rows < 2 or targets is None or targets.dim() != 1:
        return False
    is_each_another = classes == rows and bool((targets == torch.arange(rows)).all())
    return is_each_another or classes == rows - 1 and bool((targets == targets[0]).all())


def argument(args, kwargs, place, name, default=None):
    return args[place] if place < len(args) else kwargs.get(name, default)


def known_values(tensor):
    if not tensor.is_cuda:
        return tensor
    found = values.get()
    return found.value(tensor, PATIENCE)[0] if found is not None else None
